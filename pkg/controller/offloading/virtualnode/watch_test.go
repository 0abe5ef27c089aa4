package virtualnode

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// Who forgot the label of a Configuration adds it later.
func TestConfigurationsComeAndGoWithTheirLabel(t *testing.T) {
	of := func(peer string) *networkingv1beta1.Configuration {
		c := &networkingv1beta1.Configuration{}
		c.Labels = map[string]string{corev1beta1.RemoteClusterIDLabel: peer}
		return c
	}
	for name, tc := range map[string]struct {
		before, after *networkingv1beta1.Configuration
		want          bool
	}{
		"it gets the label":    {&networkingv1beta1.Configuration{}, of("milan"), true},
		"it loses the label":   {of("milan"), &networkingv1beta1.Configuration{}, true},
		"another peer's":       {of("milan"), of("turin"), true},
		"something else of it": {of("milan"), of("milan"), false},
	} {
		if got := cameOrWent().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
