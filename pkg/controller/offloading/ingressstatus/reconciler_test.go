package ingressstatus

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/mirror"
)

const (
	milan  = "milan"
	tenant = corev1beta1.TenantNamespacePrefix + milan
)

// served is an Ingress whose addresses these managers wrote.
func served(managers ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-1",
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}}}
	i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	entry := func(manager, subresource, fields string) {
		i.ManagedFields = append(i.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource,
			Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "networking.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)})
	}
	entry("kubectl", "", `{"f:spec":{"f:rules":{}}}`)
	for _, manager := range managers {
		entry(manager, "status", `{"f:status":{"f:loadBalancer":{"f:ingress":{}}}}`)
	}
	return i
}

func offloadedTo(cluster string, namespaces ...string) *offloadingv1beta1.NamespaceMap {
	m := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: corev1beta1.TenantNamespacePrefix + cluster, Name: cluster,
		Labels: map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: cluster}}}
	m.Spec.DesiredMapping = map[string]string{}
	for _, namespace := range namespaces {
		m.Spec.DesiredMapping[namespace] = namespace + "-rome"
	}
	return m
}

func virtualNode(cluster string) *offloadingv1beta1.VirtualNode {
	vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: corev1beta1.TenantNamespacePrefix + cluster, Name: cluster}}
	vn.Spec.ClusterID = corev1beta1.ClusterID(cluster)
	return vn
}

func template(config offloadingv1beta1.ReflectorConfig, args ...string) *offloadingv1beta1.VkOptionsTemplate {
	t := &offloadingv1beta1.VkOptionsTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: offloadingv1beta1.DefaultVkOptionsTemplate}}
	t.Spec.ReflectorsConfig = map[string]offloadingv1beta1.ReflectorConfig{"ingress": config}
	t.Spec.ExtraArgs = args
	return t
}

// world is an API server that counts writes.
type world struct {
	client client.WithWatch
	writes int
	fails  func(o any) error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{fails: func(any) error { return nil }}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&networkingv1.Ingress{}).
		WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.fails(list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := w.fails(o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	return w
}

func (w *world) reconcile(t *testing.T, live client.Reader) error {
	t.Helper()
	r := &reconciler{Client: w.client, Options: Options{Namespace: "liqo", Live: live}}
	var failure error
	for _, request := range watch.Requests(t.Context(), r, metadataOfAll(), watch.If(spoken)) {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			failure = err
		}
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "none"}}); err != nil {
		failure = err
	}
	return failure
}

func (w *world) addresses(t *testing.T) int {
	t.Helper()
	var ingress networkingv1.Ingress
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &ingress); err != nil {
		t.Fatal(err)
	}
	return len(ingress.Status.LoadBalancer.Ingress)
}

var on = offloadingv1beta1.ReflectorConfig{NumWorkers: 3, StatusBack: true}

func TestAddressesGoWithTheirProvider(t *testing.T) {
	ours := mirror.Speaker(milan)
	elsewhere := template(on)
	elsewhere.Name = "other"
	named := virtualNode(milan)
	named.Spec.VkOptionsTemplateRef = &corev1.ObjectReference{Name: "other"}
	for name, tc := range map[string]struct {
		managers []string
		objects  []client.Object
		stay     bool
	}{
		"the provider is here": {[]string{ours}, []client.Object{offloadedTo(milan, "shop"), virtualNode(milan), template(on)}, true},
		"unoffloaded":          {[]string{ours}, []client.Object{offloadedTo(milan, "other"), virtualNode(milan), template(on)}, false},
		"unpeered":             {[]string{ours}, []client.Object{template(on)}, false},
		"another provider took over": {[]string{ours}, []client.Object{offloadedTo("paris", "shop"), virtualNode("paris"), template(on)},
			false},
		"its last virtual node is gone":       {[]string{ours}, []client.Object{offloadedTo(milan, "shop"), template(on)}, false},
		"nothing comes back any more":         {[]string{ours}, []client.Object{offloadedTo(milan, "shop"), virtualNode(milan), template(offloadingv1beta1.ReflectorConfig{NumWorkers: 3})}, false},
		"the kind is off":                     {[]string{ours}, []client.Object{offloadedTo(milan, "shop"), virtualNode(milan), template(offloadingv1beta1.ReflectorConfig{StatusBack: true})}, false},
		"the kind is on by an argument":       {[]string{ours}, []client.Object{offloadedTo(milan, "shop"), virtualNode(milan), template(offloadingv1beta1.ReflectorConfig{StatusBack: true}, "--ingress-reflection-workers=3")}, true},
		"a template of its own":               {[]string{ours}, []client.Object{offloadedTo(milan, "shop"), named, elsewhere, template(offloadingv1beta1.ReflectorConfig{})}, true},
		"no template: nobody knows":           {[]string{ours}, []client.Object{offloadedTo(milan, "shop"), virtualNode(milan)}, true},
		"somebody else's addresses":           {[]string{"nginx-ingress-controller"}, nil, true},
		"somebody else wrote there, too":      {[]string{ours, "nginx-ingress-controller"}, nil, true},
		"a provider with a similar name":      {[]string{mirror.Speaker("milan2")}, []client.Object{offloadedTo(milan, "shop"), virtualNode(milan), template(on)}, false},
		"a field manager that only sounds so": {[]string{mirror.FieldManager}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(slices.Clone(tc.objects), served(tc.managers...))...)
			if err := w.reconcile(t, w.client); err != nil {
				t.Fatal(err)
			}
			want := map[bool]int{true: 1}[tc.stay]
			if got := w.addresses(t); got != want {
				t.Errorf("%d addresses, want %d", got, want)
			}
			if w.writes != 1-want {
				t.Errorf("%d writes, want %d", w.writes, 1-want)
			}
		})
	}
}

// Nothing is removed on missing knowledge: neither when something cannot be read, nor when only a cache says so.
func TestAddressesStayWhileNobodyKnows(t *testing.T) {
	unreadable := errors.New("the connection was lost")
	for name, fails := range map[string]func(o any) error{
		"NamespaceMaps": func(o any) error {
			if _, is := o.(*offloadingv1beta1.NamespaceMapList); is {
				return unreadable
			}
			return nil
		},
		"VirtualNodes": func(o any) error {
			if _, is := o.(*offloadingv1beta1.VirtualNodeList); is {
				return unreadable
			}
			return nil
		},
		"templates": func(o any) error {
			if _, is := o.(*offloadingv1beta1.VkOptionsTemplate); is {
				return unreadable
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, offloadedTo(milan, "shop"), virtualNode(milan), served(mirror.Speaker(milan)))
			w.fails = fails
			if err := w.reconcile(t, w.client); !errors.Is(err, unreadable) {
				t.Errorf("error %v", err)
			}
			if w.addresses(t) != 1 || w.writes > 0 {
				t.Error("the addresses are gone")
			}
		})
	}
	t.Run("a cache that lags", func(t *testing.T) {
		w := newWorld(t, served(mirror.Speaker(milan)))
		live := newWorld(t, offloadedTo(milan, "shop"), virtualNode(milan), template(on))
		if err := w.reconcile(t, live.client); err != nil {
			t.Fatal(err)
		}
		if w.addresses(t) != 1 || w.writes > 0 {
			t.Error("the addresses are gone")
		}
	})
}

func TestStrip(t *testing.T) {
	ingress := served(mirror.Speaker(milan))
	if _, err := Strip(ingress); err != nil {
		t.Fatal(err)
	}
	if provider, alone := speaker(ingress); provider != milan || !alone {
		t.Errorf("after it nobody knows who wrote the addresses: %q %v", provider, alone)
	}
	if diff := cmp.Diff([]int{0, 0, 1}, []int{len(ingress.Labels), len(ingress.Annotations), len(ingress.ManagedFields)}); diff != "" {
		t.Error(diff)
	}
}
