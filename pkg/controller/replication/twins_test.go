package replication

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
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
			if changed := k.copySpec(mine, theirs); changed != !maps.Equal(tc.copied, tc.want) {
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

// Only the copy of a map with twins that was made in the same peering is taken over by another map.
func TestCopiesWithTwinsAreTakenOverInTheirPeering(t *testing.T) {
	twins := map[string]string{"shop": "shop-rome"}
	for name, tc := range map[string]struct {
		made, now string
		twins     map[string]string
		want      bool
	}{
		"the same peering":                  {"p1", "p1", twins, true},
		"an earlier one, which was ended":   {"p0", "p1", twins, false},
		"before peerings were written down": {"", "p1", twins, false},
		"a certificate that names none":     {"", "", twins, false},
		"without twins":                     {"p1", "p1", nil, false},
	} {
		theirs := &offloadingv1beta1.NamespaceMap{Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: tc.twins}}
		theirs.Annotations = map[string]string{corev1beta1.OriginPeeringAnnotation: tc.made}
		if got := holdsTwins(theirs, tc.now); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if holdsTwins(&authv1beta1.ResourceSlice{}, "p1") {
		t.Error("a slice has twins")
	}
}
