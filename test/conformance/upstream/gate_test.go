package upstream

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// cluster is an API server that says of a NamespaceOffloading that it is in progress until it was asked a few times.
type cluster struct {
	t        *testing.T
	mu       sync.Mutex
	answers  int
	requests []string
	spec     offloadingv1beta1.NamespaceOffloadingSpec
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	request := r.Method + " " + r.URL.Path
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		request += " as " + authorization
	}
	const offloadings = "/apis/offloading.liqo.io/v1beta1/namespaces/e2e-1/namespaceoffloadings"
	switch r.Method + " " + r.URL.Path {
	case "POST /api/v1/namespaces":
		c.answer(w, http.StatusCreated, &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "e2e-1"},
		})
	case "POST " + offloadings:
		var o offloadingv1beta1.NamespaceOffloading
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			c.t.Error(err)
		}
		c.spec, o.Generation = o.Spec, 1
		c.answer(w, http.StatusCreated, &o)
	case "GET " + offloadings + "/offloading":
		c.answers++
		o := &offloadingv1beta1.NamespaceOffloading{
			TypeMeta:   metav1.TypeMeta{Kind: "NamespaceOffloading", APIVersion: offloadingv1beta1.GroupVersion.String()},
			ObjectMeta: metav1.ObjectMeta{Name: "offloading", Namespace: "e2e-1", Generation: 1},
			Status:     offloadingv1beta1.NamespaceOffloadingStatus{ObservedGeneration: 1, OffloadingPhase: offloadingv1beta1.InProgressOffloadingPhaseType},
		}
		if c.answers > 2 {
			o.Status.OffloadingPhase = offloadingv1beta1.ReadyOffloadingPhaseType
		}
		c.answer(w, http.StatusOK, o)
	case "GET /api/v1/nodes":
		c.answer(w, http.StatusOK, &corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "milan"},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: offloadingv1beta1.VirtualNodeTaint, Effect: "NoExecute"}, {Key: "other", Effect: "NoSchedule"}}},
		}}})
	default:
		http.NotFound(w, r)
	}
	c.requests = append(c.requests, request)
}

func (c *cluster) answer(w http.ResponseWriter, code int, object runtime.Object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		c.t.Error(err)
	}
}

// open opens a gate to a cluster, and returns a client that goes through it.
func open(t *testing.T, c *cluster, change func(*rest.Config)) kubernetes.Interface {
	t.Helper()
	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	gate, err := OpenGate(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, BearerToken: "administrator"}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	config, err := clientcmd.BuildConfigFromFlags("", gate.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func TestANamespaceIsOffloadedBeforeItsCreatorKnowsIt(t *testing.T) {
	c := &cluster{t: t}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	created, err := open(t, c, func(*rest.Config) {}).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil || created.Name != "e2e-1" {
		t.Fatalf("created %v, error %v", created, err)
	}
	if c.answers != 3 {
		t.Errorf("the answer came after %d looks at the NamespaceOffloading, which is ready at the third", c.answers)
	}
	if diff := cmp.Diff(offloadingv1beta1.NamespaceOffloadingSpec{NamespaceMappingStrategy: "EnforceSameName", PodOffloadingStrategy: "Remote"}, c.spec); diff != "" {
		t.Errorf("the NamespaceOffloading differs (-want +got):\n%s", diff)
	}
}

func TestNodesAreShownWithoutTheTaintOfVirtualOnes(t *testing.T) {
	list, err := open(t, &cluster{t: t}, func(*rest.Config) {}).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]corev1.Taint{{Key: "other", Effect: "NoSchedule"}}, list.Items[0].Spec.Taints); diff != "" {
		t.Errorf("taints differ (-want +got):\n%s", diff)
	}
}

func TestWhoeverComesStaysWhoHeIs(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(*rest.Config)
		want   string
	}{
		"the gate's certificate is the administrator's": {func(*rest.Config) {}, " as Bearer administrator"},
		"a token is passed on":                          {func(c *rest.Config) { c.BearerToken = "pod" }, " as Bearer pod"},
		"a token without a certificate is passed on":    {func(c *rest.Config) { *c = *rest.AnonymousClientConfig(c); c.BearerToken = "pod" }, " as Bearer pod"},
		"who has neither is nobody":                     {func(c *rest.Config) { *c = *rest.AnonymousClientConfig(c) }, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := &cluster{t: t}
			if _, err := open(t, server, c.change).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fmt.Sprint([]string{"GET /api/v1/nodes" + c.want}), fmt.Sprint(server.requests)); diff != "" {
				t.Errorf("requests differ (-want +got):\n%s", diff)
			}
		})
	}
}
