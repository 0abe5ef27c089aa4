package inputs

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

func TestOfPeer(t *testing.T) {
	key := func(name, peer string, age time.Duration) networkingv1beta1.PublicKey {
		return networkingv1beta1.PublicKey{ObjectMeta: metav1.ObjectMeta{
			Namespace: "liqo-tenant-milan", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age)),
			Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer},
		}}
	}
	elsewhere := key("milan", "milan", time.Hour)
	elsewhere.Namespace = "liqo-tenant-turin"
	for name, tc := range map[string]struct {
		all  []networkingv1beta1.PublicKey
		want string
	}{
		"none":                              {nil, ""},
		"one of any name":                   {[]networkingv1beta1.PublicKey{key("my-key", "milan", 0)}, "my-key"},
		"the name is no label":              {[]networkingv1beta1.PublicKey{key("milan", "", time.Hour)}, ""},
		"another cluster's":                 {[]networkingv1beta1.PublicKey{key("milan", "turin", time.Hour), key("my-key", "milan", 0)}, "my-key"},
		"one in another namespace":          {[]networkingv1beta1.PublicKey{elsewhere}, ""},
		"of several the oldest":             {[]networkingv1beta1.PublicKey{key("milan", "milan", 0), key("my-key", "milan", time.Hour), key("a", "milan", time.Minute)}, "my-key"},
		"of several of one second by names": {[]networkingv1beta1.PublicKey{key("b", "milan", 0), key("a", "milan", 0), key("c", "milan", 0)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got := ""
				if found := OfPeer(tc.all, "milan"); found != nil {
					got = found.Name
				}
				if got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				slices.Reverse(tc.all)
			}
		})
	}
}
