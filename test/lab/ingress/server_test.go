package ingress

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

const class = "lab"

// newServer is a server whose caches hold some objects.
func newServer(t *testing.T, ingresses []*networkingv1.Ingress, services []*corev1.Service, slices []*discoveryv1.EndpointSlice) *server {
	t.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	add := func(indexer cache.Indexer, object any) {
		if err := indexer.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range ingresses {
		add(factory.Networking().V1().Ingresses().Informer().GetIndexer(), i)
		if err := client.Tracker().Add(i); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range services {
		add(factory.Core().V1().Services().Informer().GetIndexer(), s)
	}
	for _, s := range slices {
		add(factory.Discovery().V1().EndpointSlices().Informer().GetIndexer(), s)
	}
	return &server{
		class: class, client: client, ingresses: factory.Networking().V1().Ingresses().Lister(),
		services: factory.Core().V1().Services().Lister(), slices: factory.Discovery().V1().EndpointSlices().Lister(),
	}
}

// ofClass is an Ingress of a class that leads from a host to port http of Service web.
func ofClass(class, host string) *networkingv1.Ingress {
	i := ingressOf("shop", 1, "", path{host, "/", "Prefix", "web"})
	i.Name, i.Spec.IngressClassName = host, &class
	i.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Name = "http"
	return i
}

func TestRequestsTakeTurnsOverReadyEndpoints(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}
	name, ready, unready := "http", true, false
	var slices []*discoveryv1.EndpointSlice
	for _, said := range []string{"one", "two"} {
		pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, said+" at "+r.Host) }))
		t.Cleanup(pod.Close)
		address, err := url.Parse(pod.URL)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(address.Port())
		if err != nil {
			t.Fatal(err)
		}
		port, slice := int32(number), &discoveryv1.EndpointSlice{ObjectMeta: *meta.DeepCopy()}
		slice.Name = said
		slice.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port}}
		slice.Endpoints = []discoveryv1.Endpoint{
			{Addresses: []string{address.Hostname()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
			{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &unready}},
		}
		slices = append(slices, slice)
	}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	s := newServer(t, []*networkingv1.Ingress{ofClass(class, "a.example.com"), ofClass("other", "b.example.com")}, []*corev1.Service{service}, slices)
	ask := func(host string) (int, string) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+host+":80/", http.NoBody))
		return w.Code, w.Body.String()
	}
	seen := map[string]int{}
	for range 4 {
		code, body := ask("a.example.com")
		if code != http.StatusOK {
			t.Fatalf("answer %d: %s", code, body)
		}
		seen[body]++
	}
	if seen["one at a.example.com:80"] != 2 || seen["two at a.example.com:80"] != 2 {
		t.Errorf("both endpoints twice wanted, with the request's own host: %v", seen)
	}
	if code, body := ask("b.example.com"); code != http.StatusNotFound {
		t.Errorf("an Ingress of another class was answered: %d %s", code, body)
	}
	without := newServer(t, []*networkingv1.Ingress{ofClass(class, "a.example.com")}, []*corev1.Service{service}, nil)
	w := httptest.NewRecorder()
	without.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://a.example.com/", http.NoBody))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a Service without endpoints answers %d", w.Code)
	}
}

func TestPublish(t *testing.T) {
	mine, other := ofClass(class, "a.example.com"), ofClass("other", "b.example.com")
	s := newServer(t, []*networkingv1.Ingress{mine, other}, nil, nil)
	client := s.client.(*fake.Clientset)
	for _, i := range []*networkingv1.Ingress{mine, other} {
		if err := s.publish(t.Context(), cache.MetaObjectToName(i), "192.0.2.7"); err != nil {
			t.Fatal(err)
		}
	}
	updated, err := client.NetworkingV1().Ingresses("shop").Get(t.Context(), mine.Name, metav1.GetOptions{})
	if err != nil || len(updated.Status.LoadBalancer.Ingress) != 1 || updated.Status.LoadBalancer.Ingress[0].IP != "192.0.2.7" {
		t.Errorf("status %+v, error %v", updated.Status, err)
	}
	writes := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == "update" {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("%d writes, want one: that of the Ingress of its own class", writes)
	}
}
