package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"liqo.io/liqo/pkg/config/v1alpha1"
)

// Something always counts a consumer's pods: its grant, or the quota of each namespace.
func TestPodsAreCountedByGrantOrQuota(t *testing.T) {
	five := resource.MustParse("5")
	for name, tc := range map[string]struct {
		enforced bool
		quota    corev1.ResourceList
		want     string
	}{
		"grants are enforced":            {true, corev1.ResourceList{"services": five}, ""},
		"they are not":                   {false, corev1.ResourceList{"services": five}, "5k"},
		"they are not, without a quota":  {false, nil, "5k"},
		"the administrator counts, too":  {true, corev1.ResourceList{shadowPodCount: five}, "5"},
		"the administrator's own number": {false, corev1.ResourceList{shadowPodCount: five}, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &v1alpha1.ControllerManager{}
			config.ControllerManager.EnableResourceEnforcement, config.Offloading.TwinNamespaces.Quota = tc.enforced, tc.quota
			hard := twinHard(config)
			limit, counted := hard[shadowPodCount]
			if counted != (tc.want != "") {
				t.Fatalf("the quota counts ShadowPods: %t, want %q", counted, tc.want)
			}
			if counted && limit.Cmp(resource.MustParse(tc.want)) != 0 {
				t.Errorf("the quota allows %s ShadowPods, want %s", limit.String(), tc.want)
			}
		})
	}
}
