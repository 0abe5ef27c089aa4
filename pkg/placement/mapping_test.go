package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestEffectiveMapping(t *testing.T) {
	accepted := func(name string) offloadingv1beta1.RemoteNamespaceStatus {
		return offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: name, Phase: offloadingv1beta1.MappingAccepted}
	}
	type answers = map[string]offloadingv1beta1.RemoteNamespaceStatus
	for name, tc := range map[string]struct {
		desired map[string]string
		current answers
		want    map[string]string
	}{
		"wanted and accepted":                        {map[string]string{"a": "a-rome"}, answers{"a": accepted("a-rome")}, map[string]string{"a": "a-rome"}},
		"W1: accepted but never wanted":              {map[string]string{"a": "a-rome"}, answers{"kube-system": accepted("stolen")}, map[string]string{}},
		"accepted under another name than wanted":    {map[string]string{"a": "a-rome"}, answers{"a": accepted("elsewhere")}, map[string]string{}},
		"wanted and not answered":                    {map[string]string{"a": "a-rome"}, nil, map[string]string{}},
		"wanted and refused":                         {map[string]string{"a": "a-rome"}, answers{"a": {RemoteNamespace: "a-rome", Phase: offloadingv1beta1.MappingCreationLoopBackOff}}, map[string]string{}},
		"wanted and being removed":                   {map[string]string{"a": "a-rome"}, answers{"a": {RemoteNamespace: "a-rome", Phase: offloadingv1beta1.MappingTerminating}}, map[string]string{}},
		"a phase that nobody knows is no acceptance": {map[string]string{"a": "a-rome"}, answers{"a": {RemoteNamespace: "a-rome", Phase: "accepted"}}, map[string]string{}},
		"an empty wish is no wish":                   {map[string]string{"a": ""}, answers{"a": accepted("")}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, EffectiveMapping(tc.desired, tc.current)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever a provider reports, nothing is in force that is not wanted here, under that name.
func TestEffectiveMappingIsWithinTheWish(t *testing.T) {
	names := rapid.SampledFrom([]string{"", "a", "b", "kube-system", "a-rome"})
	rapid.Check(t, func(t *rapid.T) {
		desired := rapid.MapOf(names, names).Draw(t, "desired")
		current := rapid.MapOf(names, rapid.Custom(func(t *rapid.T) offloadingv1beta1.RemoteNamespaceStatus {
			return offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: names.Draw(t, "name"),
				Phase: rapid.SampledFrom([]offloadingv1beta1.MappingPhase{"", "Accepted", "Terminating", "CreationLoopBackOff", "accepted"}).Draw(t, "phase")}
		})).Draw(t, "current")
		for local, twin := range EffectiveMapping(desired, current) {
			if desired[local] != twin || current[local].Phase != offloadingv1beta1.MappingAccepted || current[local].RemoteNamespace != twin {
				t.Fatalf("%q -> %q is in force", local, twin)
			}
		}
	})
}
