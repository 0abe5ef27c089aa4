package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// world is one cluster.
type world struct {
	*testing.T
	client.Client
	r      *reconciler
	writes int
}

func newWorld(t *testing.T, endpoints bool, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, ipamv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{T: t}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.writes++
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			w.writes++
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	w.r = &reconciler{Client: w.Client, Options: Options{Namespace: "liqo", Endpoints: endpoints, Live: w.Client}}
	return w
}

// settle reconciles until nothing is written, and returns what there is.
func (w *world) settle() (ips []string, err error) {
	w.Helper()
	for range 5 {
		before := w.writes
		if _, err = w.r.Reconcile(context.Background(), ctrl.Request{}); w.writes == before {
			break
		}
	}
	var list ipamv1alpha1.IPList
	if err := w.List(context.Background(), &list); err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		ip := &list.Items[i]
		ips = append(ips, strings.TrimSpace(fmt.Sprintf("%s/%s %s %v %s", ip.Namespace, ip.Name, ip.Spec.IP, ptr.Deref(ip.Spec.Masquerade, false), portsOf(ip))))
	}
	slices.Sort(ips)
	return ips, err
}

// portsOf are the ports of an IP, with their protocols where these are not TCP.
func portsOf(ip *ipamv1alpha1.IP) string {
	var all []string
	for _, p := range ip.Spec.Ports {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%d/%s", p.Port, p.Protocol), "/TCP"))
	}
	return strings.Join(all, ",")
}

func at(clusterIP string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIP: clusterIP}}
}

func endpointsAt(name string, port int32, addresses ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(port)}}}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return slice
}

func made(name string, address networkingv1beta1.IP, managed string) *ipamv1alpha1.IP {
	return &ipamv1alpha1.IP{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: name, Labels: map[string]string{
		ipamv1alpha1.IPTypeLabel: ipamv1alpha1.IPTypeAPIServer, "liqo.io/managed": managed}}, Spec: ipamv1alpha1.IPSpec{IP: address}}
}

func TestTheAPIServerHasItsIPs(t *testing.T) {
	cluster := "liqo/api-server 10.96.0.1 true 443"
	for name, tc := range map[string]struct {
		endpoints bool
		objects   []client.Object
		want      []string
		err       string
	}{
		"one for its ClusterIP":               {objects: []client.Object{at("10.96.0.1")}, want: []string{cluster}},
		"of IPv6 too":                         {objects: []client.Object{at("fd00::1")}, want: []string{"liqo/api-server fd00::1 true 443"}},
		"its ClusterIP changed":               {objects: []client.Object{at("10.96.0.1"), made("api-server", "10.97.0.1", "true")}, want: []string{cluster}},
		"somebody changed it":                 {objects: []client.Object{at("10.96.0.1"), made("api-server", "10.96.0.1", "true")}, want: []string{cluster}},
		"it was one for each endpoint before": {objects: []client.Object{at("10.96.0.1"), made("api-server-192-168-0-1", "192.168.0.1", "true")}, want: []string{cluster}},
		"somebody else's stays":               {objects: []client.Object{at("10.96.0.1"), made("mine", "10.9.9.9", "false")}, want: []string{cluster, "liqo/mine 10.9.9.9 false"}},
		"also if it has the name":             {objects: []client.Object{at("10.96.0.1"), made("api-server", "10.9.9.9", "")}, want: []string{"liqo/api-server 10.9.9.9 false"}, err: "is not ours"},
		"nothing is concluded from nothing":   {objects: []client.Object{made("api-server", "10.96.0.1", "true")}, want: []string{"liqo/api-server 10.96.0.1 false"}, err: "not found"},
		"nor of a Service without address":    {objects: []client.Object{at(""), made("api-server", "10.96.0.1", "true")}, want: []string{"liqo/api-server 10.96.0.1 false"}},
		"one for each endpoint": {endpoints: true, objects: []client.Object{at("10.96.0.1"), made("api-server", "10.96.0.1", "true"), endpointsAt("a", 6443, "192.168.0.1", "192.168.0.2"),
			endpointsAt("b", 6443, "fd00::1")}, want: []string{"liqo/api-server-192-168-0-1 192.168.0.1 true 6443", "liqo/api-server-192-168-0-2 192.168.0.2 true 6443",
			"liqo/api-server-fd00-0000-0000-0000-0000-0000-0000-0001 fd00::1 true 6443"}},
		"no endpoints are known": {endpoints: true, objects: []client.Object{at("10.96.0.1"), made("api-server", "10.96.0.1", "true")}, want: []string{"liqo/api-server 10.96.0.1 false"}},
		"nor their port": {endpoints: true, objects: []client.Object{endpointsAt("a", 0, "192.168.0.1"), made("api-server-x", "192.168.0.9", "true")},
			want: []string{"liqo/api-server-x 192.168.0.9 false"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.endpoints, tc.objects...)
			got, err := w.settle()
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			before := w.writes
			if _, _ = w.settle(); w.writes != before {
				t.Errorf("with everything in place there were %d writes", w.writes-before)
			}
		})
	}
}

// Only the IPs that stand for the API server are of interest.
func TestOurs(t *testing.T) {
	r := &reconciler{Options: Options{Namespace: "liqo"}}
	elsewhere, other := made("a", "10.0.0.1", "true"), made("a", "10.0.0.1", "true")
	elsewhere.Namespace, other.Labels = "default", nil
	if !r.ours(made("a", "10.0.0.1", "true")) || r.ours(elsewhere) || r.ours(other) {
		t.Error("it is not known which IPs stand for the API server")
	}
}
