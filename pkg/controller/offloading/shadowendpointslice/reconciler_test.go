package shadowendpointslice

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

var key = types.NamespacedName{Namespace: "shop-rome", Name: "shop-x"}

// world is one provider with one ShadowEndpointSlice of cluster rome.
type world struct {
	*testing.T
	client.Client
	reconciler *reconciler
	clock      *clocktesting.FakePassiveClock
	events     *events.FakeRecorder
	writes     int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, corev1beta1.AddToScheme, authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme, networkingv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{T: t, events: events.NewFakeRecorder(100), clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))}
	for _, object := range objects {
		if _, is := object.(*offloadingv1beta1.ShadowEndpointSlice); is && !slices.ContainsFunc(objects, isService) {
			objects = append(slices.Clone(objects), serviceOf("rome"))
		}
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.writes++
			o.SetUID("made-here")
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
	w.reconciler = &reconciler{Client: w.Client, Options: Options{
		Own: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16"), netip.MustParsePrefix("10.21.0.0/16")}, Live: w.Client, Events: w.events, Clock: w.clock,
	}}
	return w
}

func isService(o client.Object) bool { _, is := o.(*corev1.Service); return is }

// serviceOf is the Service that the endpoints belong to, of the given consumer or of nobody's.
func serviceOf(origin string) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "shop"}}
	if origin != "" {
		service.Labels = map[string]string{offloadingv1beta1.OriginLabel: origin}
	}
	return service
}

// pass reconciles once and returns how many writes that took.
func (w *world) pass() (writes int, err error) {
	before := w.writes
	_, err = w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	return w.writes - before, err
}

func (w *world) slice() *discoveryv1.EndpointSlice {
	w.Helper()
	var slice discoveryv1.EndpointSlice
	if err := w.Get(context.Background(), key, &slice); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.Fatal(err)
	}
	return &slice
}

func (w *world) addresses() (addresses []string) {
	w.Helper()
	for _, endpoint := range w.slice().Endpoints {
		addresses = append(addresses, endpoint.Addresses...)
	}
	return addresses
}

func (w *world) said() (said []string) {
	for {
		select {
		case e := <-w.events.Events:
			said = append(said, e)
		default:
			return said
		}
	}
}

func shadow(addresses ...string) *offloadingv1beta1.ShadowEndpointSlice {
	s := &offloadingv1beta1.ShadowEndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "shadow-uid",
			Labels: map[string]string{
				offloadingv1beta1.OriginLabel: "rome", discoveryv1.LabelServiceName: "shop",
				discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
			},
			Annotations: map[string]string{corev1beta1.OriginUIDAnnotation: "u", offloadingv1beta1.ReflectedKeysAnnotation: "abcd", "note": "kept",
				offloadingv1beta1.AskedAnnotation: "forged"}},
		Spec: offloadingv1beta1.ShadowEndpointSliceSpec{Template: offloadingv1beta1.EndpointSliceTemplate{
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}},
		}},
	}
	for i, address := range addresses {
		s.Spec.Template.Endpoints = append(s.Spec.Template.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{address},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(true)},
			NodeName:   ptr.To("a-node-of-the-provider"),
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprint("web-", i), Namespace: "kube-system", UID: "x"},
		})
	}
	return s
}

func announcing(name, origin string, cidrs ...string) *authv1beta1.ResourceSlice {
	return &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + origin, Name: name,
			Labels: map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: origin}},
		Spec: authv1beta1.ResourceSliceSpec{PodCIDRs: cidrs},
	}
}

func TestLifeOfAnEndpointSlice(t *testing.T) {
	w := newWorld(t, shadow("10.10.0.1", "10.10.0.2"), announcing("a", "rome", "10.10.0.0/16"))
	if writes, err := w.pass(); writes != 1 || err != nil {
		t.Fatalf("creating it took %d writes, %v", writes, err)
	}
	got := w.slice()
	if !metav1.IsControlledBy(got, shadow()) || got.Labels[offloadingv1beta1.ManagedByLabel] != offloadingv1beta1.ManagedByShadowEndpointSlice ||
		got.Labels[discoveryv1.LabelManagedBy] != offloadingv1beta1.EndpointSliceManager || got.Labels[discoveryv1.LabelServiceName] != "shop" {
		t.Errorf("metadata is %+v", got.ObjectMeta)
	}
	note := got.Annotations[offloadingv1beta1.AskedAnnotation]
	if diff := cmp.Diff(map[string]string{"note": "kept", offloadingv1beta1.AskedAnnotation: note}, got.Annotations); diff != "" || note == "" || note == "forged" {
		t.Error(diff)
	}
	want := discoveryv1.Endpoint{
		Addresses: []string{"10.10.0.1"}, Conditions: shadow("10.10.0.1").Spec.Template.Endpoints[0].Conditions, NodeName: ptr.To("rome"),
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "web-0", Namespace: key.Namespace},
	}
	if diff := cmp.Diff(want, got.Endpoints[0]); diff != "" {
		t.Error(diff)
	}
	// API servers put in what the consumer did not say, which is no change.
	port := discoveryv1.EndpointPort{Name: ptr.To(""), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](80)}
	if diff := cmp.Diff([]discoveryv1.EndpointPort{port}, got.Ports); diff != "" {
		t.Error(diff)
	}
	if writes, err := w.pass(); writes != 0 || err != nil {
		t.Errorf("with everything in place there were %d writes, %v", writes, err)
	}
	// Somebody at the provider changes it and adds a label: the first is undone, the second stays.
	got.Endpoints = nil
	got.Labels["theirs"] = "1"
	if err := w.Update(context.Background(), got); err != nil {
		t.Fatal(err)
	}
	if writes, err := w.pass(); writes != 1 || err != nil || len(w.slice().Endpoints) != 2 || w.slice().Labels["theirs"] != "1" {
		t.Errorf("%d writes, %v: %+v", writes, err, w.slice())
	}
	if writes, _ := w.pass(); writes != 0 {
		t.Error("it is written endlessly")
	}
	if said := w.said(); len(said) != 1 || !strings.HasPrefix(said[0], "Warning "+offloadingv1beta1.ReasonRemoteChangeReverted+" ") {
		t.Errorf("events: %v", said)
	}
}

// What vanishes at home vanishes at the provider, and nothing else does.
func TestLabelsThatVanishAreTakenAway(t *testing.T) {
	for name, forgotten := range map[string]bool{"": false, "of an EndpointSlice that an earlier version made": true} {
		t.Run(name, func(t *testing.T) {
			first := shadow("10.10.0.1")
			first.Labels["tier"] = "front"
			w := newWorld(t, first, announcing("a", "rome", "10.10.0.0/16"))
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			theirs := w.slice()
			theirs.Labels["theirs"], theirs.Annotations["theirs"] = "1", "1"
			if forgotten {
				delete(theirs.Annotations, offloadingv1beta1.AskedAnnotation)
			}
			if err := w.Update(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			if writes, err := w.pass(); writes != 0 || err != nil {
				t.Errorf("%d writes, %v", writes, err)
			}
			become := func(change func(*offloadingv1beta1.ShadowEndpointSlice)) {
				t.Helper()
				var s offloadingv1beta1.ShadowEndpointSlice
				if err := w.Get(t.Context(), key, &s); err != nil {
					t.Fatal(err)
				}
				change(&s)
				if err := w.Update(t.Context(), &s); err != nil {
					t.Fatal(err)
				}
				if writes, err := w.pass(); writes != 1 || err != nil {
					t.Errorf("%d writes, %v", writes, err)
				}
			}
			if forgotten {
				become(func(s *offloadingv1beta1.ShadowEndpointSlice) { s.Labels["more"] = "1" })
			}
			become(func(s *offloadingv1beta1.ShadowEndpointSlice) {
				delete(s.Labels, "tier")
				delete(s.Annotations, "note")
			})
			got := w.slice()
			_, label := got.Labels["tier"]
			_, annotation := got.Annotations["note"]
			if label || annotation || got.Labels["theirs"] != "1" || got.Annotations["theirs"] != "1" {
				t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
			}
			if writes, err := w.pass(); writes != 0 || err != nil {
				t.Errorf("%d writes at rest, %v", writes, err)
			}
		})
	}
}

// What the provider's rules refuse may be allowed tomorrow.
func TestARefusalIsTriedAgain(t *testing.T) {
	for name, refusal := range map[string]error{
		"an admission policy without a reason": apierrors.NewInvalid(schema.GroupKind{Kind: "EndpointSlice"}, key.Name, nil),
		"a webhook without a code":             apierrors.NewBadRequest("admission webhook denied the request"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shadow("10.10.0.1"), announcing("a", "rome", "10.10.0.0/16"))
			w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal }})
			for range 2 {
				result, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
				if err != nil || result.RequeueAfter != reconcile.RefusedRetry {
					t.Errorf("again in %s, %v", result.RequeueAfter, err)
				}
			}
			if said := w.said(); len(said) != 1 || !strings.Contains(said[0], offloadingv1beta1.ReasonEndpointSliceInvalid) {
				t.Errorf("events: %q", said)
			}
		})
	}
}

// V7: a consumer cannot make Services here point at whatever it likes.
func TestV7HostileAddresses(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.18.0.3"}, {Type: corev1.NodeHostName, Address: "n"}}}}
	for name, tc := range map[string]struct {
		announced, wanted, published []string
	}{
		"only what was announced":         {[]string{"10.10.0.0/16"}, []string{"10.10.0.1", "10.11.0.1"}, []string{"10.10.0.1"}},
		"another provider's pods":         {[]string{"10.10.0.0/16", "10.30.0.0/16"}, []string{"10.10.0.1", "10.30.0.1"}, []string{"10.10.0.1", "10.30.0.1"}},
		"nothing announced":               {nil, []string{"10.10.0.1"}, nil},
		"our pods":                        {[]string{"10.20.0.0/16"}, []string{"10.20.0.1"}, nil},
		"our Services, among much":        {[]string{"10.0.0.0/8"}, []string{"10.21.0.1", "10.10.0.1"}, nil},
		"our nodes":                       {[]string{"172.18.0.0/24"}, []string{"172.18.0.3", "172.18.0.9"}, nil},
		"the metadata service":            {[]string{"169.254.0.0/16"}, []string{"169.254.169.254"}, nil},
		"metadata services, among much":   {[]string{"100.64.0.0/10", "168.63.0.0/16"}, []string{"100.100.100.200", "168.63.129.16", "100.64.0.1"}, []string{"100.64.0.1"}},
		"everything":                      {[]string{"0.0.0.0/0"}, []string{"8.8.8.8", "127.0.0.1"}, nil},
		"an IPv4 address in IPv6 clothes": {[]string{"10.10.0.0/16"}, []string{"::ffff:10.10.0.1"}, nil},
		"nonsense":                        {[]string{"10.10.0.0/16", "x"}, []string{"", "kubernetes.default", strings.Repeat("1", 1000)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, node.DeepCopy(), shadow(tc.wanted...), announcing("a", "rome", tc.announced...),
				announcing("b", "turin", "10.11.0.0/16", "8.8.8.0/24"))
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.published, w.addresses()); diff != "" {
				t.Error(diff)
			}
			said := w.said()
			if wanted := len(tc.published) < len(tc.wanted); wanted != (len(said) == 1 && strings.Contains(said[0], offloadingv1beta1.ReasonAddressNotAnnounced)) {
				t.Errorf("events: %q", said)
			}
			if len(said) == 1 && len(said[0]) > 2000 {
				t.Errorf("an event of %d bytes", len(said[0]))
			}
			if writes, _ := w.pass(); writes != 0 || len(w.said()) != 0 {
				t.Error("it is said or written again and again")
			}
		})
	}
}

func TestEndpointsFollowWhatIsAnnounced(t *testing.T) {
	w := newWorld(t, shadow("10.10.0.1"), announcing("a", "rome"))
	if _, err := w.pass(); err != nil || len(w.addresses()) != 0 {
		t.Fatalf("%v, %v", w.addresses(), err)
	}
	if err := w.Update(context.Background(), announcingNow(w, "10.10.0.0/16")); err != nil {
		t.Fatal(err)
	}
	if writes, err := w.pass(); writes != 1 || err != nil || len(w.addresses()) != 1 {
		t.Errorf("%d writes, %v: %v", writes, err, w.addresses())
	}
}

func announcingNow(w *world, cidrs ...string) *authv1beta1.ResourceSlice {
	w.Helper()
	slice := &authv1beta1.ResourceSlice{}
	if err := w.Get(context.Background(), types.NamespacedName{Namespace: "liqo-tenant-rome", Name: "a"}, slice); err != nil {
		w.Fatal(err)
	}
	slice.Spec.PodCIDRs = cidrs
	return slice
}

func TestReadiness(t *testing.T) {
	peer := func(networking bool, connection, server string) *corev1beta1.ForeignCluster {
		f := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "rome"}}
		f.Status.Modules.Networking.Enabled = networking
		if connection != "" {
			f.Status.Modules.Networking.Conditions = []corev1beta1.Condition{{Type: corev1beta1.NetworkConnectionStatus, Status: connection}}
		}
		if server != "" {
			f.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.APIServerStatus, Status: server}}
		}
		return f
	}
	for name, tc := range map[string]struct {
		peer *corev1beta1.ForeignCluster
		want bool
	}{
		"nothing is known":              {nil, true},
		"a consumer without data plane": {peer(false, "", ""), true},
		"a tunnel that works":           {peer(true, corev1beta1.StatusEstablished, ""), true},
		"a tunnel that does not":        {peer(true, corev1beta1.StatusError, ""), false},
		"a tunnel of earlier times":     {peer(false, corev1beta1.StatusError, ""), true},
		"an API server that answers":    {peer(false, "", corev1beta1.StatusEstablished), true},
		"an API server that does not":   {peer(false, "", corev1beta1.StatusError), false},
		"under way":                     {peer(true, corev1beta1.StatusPending, corev1beta1.StatusPending), true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{shadow("10.10.0.1"), announcing("a", "rome", "10.10.0.0/16")}
			if tc.peer != nil {
				objects = append(objects, tc.peer)
			}
			w := newWorld(t, objects...)
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if got := *w.slice().Endpoints[0].Conditions.Ready; got != tc.want {
				t.Errorf("ready is %v", got)
			}
		})
	}
}

func TestEndpointSlicesOfOthersAreLeftAlone(t *testing.T) {
	owned := func(uid types.UID) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, AddressType: discoveryv1.AddressTypeIPv4}
		if uid != "" {
			earlier := shadow()
			earlier.UID = uid
			s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(earlier, offloadingv1beta1.GroupVersion.WithKind("ShadowEndpointSlice"))}
		}
		return s
	}
	for name, tc := range map[string]struct {
		theirs *discoveryv1.EndpointSlice
		events int
	}{"somebody's": {owned(""), 1}, "an earlier shadow's": {owned("earlier"), 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shadow("10.10.0.1"), announcing("a", "rome", "10.10.0.0/16"), tc.theirs)
			for range 3 {
				if writes, _ := w.pass(); writes != 0 {
					t.Fatal("it was written")
				}
			}
			if said := w.said(); len(said) != tc.events {
				t.Errorf("events: %v", said)
			}
		})
	}
}

func TestAnotherAddressFamily(t *testing.T) {
	w := newWorld(t, shadow("10.10.0.1"), announcing("a", "rome", "10.10.0.0/16", "fd00:10::/48"))
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	var s offloadingv1beta1.ShadowEndpointSlice
	if err := w.Get(context.Background(), key, &s); err != nil {
		t.Fatal(err)
	}
	s.Spec.Template.AddressType, s.Spec.Template.Endpoints[0].Addresses = discoveryv1.AddressTypeIPv6, []string{"fd00:10::1"}
	if err := w.Update(context.Background(), &s); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.slice(); got.AddressType != discoveryv1.AddressTypeIPv6 || len(got.Endpoints) != 1 {
		t.Errorf("became %+v", got)
	}
	s.Spec.Template.AddressType = discoveryv1.AddressTypeFQDN
	if err := w.Update(context.Background(), &s); err != nil {
		t.Fatal(err)
	}
	if writes, _ := w.pass(); writes != 0 || len(w.said()) != 1 {
		t.Error("names were published, or nothing was said")
	}
}
