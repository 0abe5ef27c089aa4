package replication

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/peer"
)

// What a NamespaceMap and its copy say, and what is left of the copy, is decided by what is known here: a twin of which nothing is known
// stays until somebody says so.
func TestTwinsOfWhichNothingIsKnownAreKept(t *testing.T) {
	k := kinds()[1]
	for name, tc := range map[string]struct {
		spec, copied map[string]string
		// known are in the status at home.
		known     []string
		confirmed string
		want      map[string]string
		held      string
	}{
		"in step": {spec: map[string]string{"shop": "shop-rome"}, copied: map[string]string{"shop": "shop-rome"}, want: map[string]string{"shop": "shop-rome"}},
		"not offloaded any more": {
			copied: map[string]string{"shop": "shop-rome"}, known: []string{"shop"}, want: nil,
		},
		"unknown, as after a restore": {
			spec: map[string]string{"shop": "shop-rome"}, copied: map[string]string{"shop": "shop-rome", "cart": "cart-rome"},
			want: map[string]string{"shop": "shop-rome", "cart": "cart-rome"}, held: "cart",
		},
		"nothing is known at all": {copied: map[string]string{"cart": "cart-rome"}, want: map[string]string{"cart": "cart-rome"}, held: "cart"},
		"confirmed, one of two": {
			copied: map[string]string{"cart": "cart-rome", "desk": "desk-rome"}, confirmed: "cart,other", want: map[string]string{"desk": "desk-rome"}, held: "desk",
		},
		"offloaded again": {
			spec: map[string]string{"cart": "cart-2"}, copied: map[string]string{"cart": "cart-rome"}, want: map[string]string{"cart": "cart-2"},
		},
		"not what we can have sent": {copied: map[string]string{"cart; rm -rf /": "cart-rome", "desk": "Desk"}, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			mine := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}, Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: tc.spec}}
			if tc.confirmed != "" {
				mine.Annotations = map[string]string{offloadingv1beta1.ConfirmedRemovalsAnnotation: tc.confirmed}
			}
			for _, namespace := range tc.known {
				mine.Status.CurrentMapping = map[string]offloadingv1beta1.RemoteNamespaceStatus{namespace: {Phase: offloadingv1beta1.MappingAccepted}}
			}
			theirs := &offloadingv1beta1.NamespaceMap{Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: maps.Clone(tc.copied)}}
			if changed := k.copySpec(mine, theirs, false); changed != !maps.Equal(tc.copied, tc.want) {
				t.Errorf("changed: %v", changed)
			}
			if diff := cmp.Diff(tc.want, theirs.Spec.DesiredMapping); diff != "" {
				t.Error(diff)
			}
			k.pull(mine, theirs, time.Unix(1, 0))
			said := meta.FindStatusCondition(mine.Status.Conditions, offloadingv1beta1.RemovalsHeldCondition)
			if (said != nil) != (tc.held != "") {
				t.Fatalf("the condition is %v", said)
			}
			way := "kubectl annotate namespacemap -n liqo-tenant-milan milan --overwrite liqo.io/confirmed-removals=" + tc.held
			if said != nil && !strings.HasSuffix(said.Message, way) {
				t.Errorf("it says %q, want the way out: %s", said.Message, way)
			}
		})
	}
}

// The copy of a map with twins is never deleted for the sake of another map: with it would go all that its twins hold.
func TestCopiesWithTwinsAreTakenOver(t *testing.T) {
	for name, tc := range map[string]struct {
		remote client.Object
		want   bool
	}{
		"with twins":    {&offloadingv1beta1.NamespaceMap{Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome"}}}, true},
		"without twins": {&offloadingv1beta1.NamespaceMap{}, false},
		"a slice":       {&authv1beta1.ResourceSlice{}, false},
		"none":          {nil, false},
	} {
		if got := holdsTwins(tc.remote); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What an earlier peering wanted is not wanted any more, nor held: the provider keeps what of it holds data.
func TestACopyOfAnEarlierPeeringIsTakenOver(t *testing.T) {
	k := kinds()[1]
	mine := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", UID: "new"},
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome"}, OriginUIDs: map[string]string{"shop": "uid-shop"}}}
	for name, tc := range map[string]struct {
		made string
		want offloadingv1beta1.NamespaceMapSpec
	}{
		"of an earlier peering": {"p0", mine.Spec},
		"of this one, as after a restore": {"p1", offloadingv1beta1.NamespaceMapSpec{
			DesiredMapping: map[string]string{"shop": "shop-rome", "cart": "cart-rome"}, OriginUIDs: map[string]string{"shop": "uid-shop", "cart": "uid-cart"}}},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := &offloadingv1beta1.NamespaceMap{Spec: offloadingv1beta1.NamespaceMapSpec{
				DesiredMapping: map[string]string{"shop": "shop-rome", "cart": "cart-rome"}, OriginUIDs: map[string]string{"cart": "uid-cart"}}}
			theirs.Annotations = map[string]string{corev1beta1.OriginPeeringAnnotation: tc.made, corev1beta1.OriginUIDAnnotation: "old"}
			if !k.shape(theirs, mine, origin{"rome", "p1"}) {
				t.Error("nothing is to be written")
			}
			if diff := cmp.Diff(tc.want, theirs.Spec); diff != "" {
				t.Error(diff)
			}
			if theirs.Annotations[corev1beta1.OriginPeeringAnnotation] != "p1" || theirs.Annotations[corev1beta1.OriginUIDAnnotation] != "new" {
				t.Errorf("it says %v", theirs.Annotations)
			}
		})
	}
}

// A peer of an earlier release drops the fields of a copy that it does not know: its answer counts all the same.
func TestThePeerThatDropsAFieldAnswers(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := offloadingv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		version string
		want    int
	}{
		"nothing changed, as the field was dropped":  {"7", 1},
		"the copy changed, of which the watch tells": {"8", 0},
	} {
		t.Run(name, func(t *testing.T) {
			spec := offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome"}}
			local := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}, Spec: spec}
			local.Spec.OriginUIDs = map[string]string{"shop": "uid-shop"}
			home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(local).WithStatusSubresource(local).Build()
			key := client.ObjectKeyFromObject(local)
			if err := home.Get(t.Context(), key, local); err != nil {
				t.Fatal(err)
			}
			remote := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "milan", ResourceVersion: "7"}, Spec: spec,
				Status: offloadingv1beta1.NamespaceMapStatus{CurrentMapping: map[string]offloadingv1beta1.RemoteNamespaceStatus{
					"shop": {RemoteNamespace: "shop-rome", Phase: offloadingv1beta1.MappingAccepted}}}}
			wanted := remote.DeepCopy()
			wanted.Spec.OriginUIDs = local.Spec.OriginUIDs
			away := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
					o.SetResourceVersion(tc.version)
					return nil
				}}).Build()
			f := &reflector{target: target{namespace: "liqo-tenant-milan", remoteNamespace: "liqo-tenant-rome", clusterID: "milan"},
				home: &Reconciler{client: home, options: Options{ClusterID: "rome", Clock: clock.RealClock{}}}}
			p := &pass{kind: kinds()[1], local: local, remote: remote, wanted: wanted, clients: peer.Clients{Client: away}}
			if err := f.update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			live := &offloadingv1beta1.NamespaceMap{}
			if err := home.Get(t.Context(), key, live); err != nil {
				t.Fatal(err)
			}
			if got := len(live.Status.CurrentMapping); got != tc.want {
				t.Errorf("the status is %+v", live.Status)
			}
		})
	}
}
