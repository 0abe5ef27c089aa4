package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/reflection"
)

// V4: what a provider offers to consumers' pods is what its configuration lists.
func TestWhatConsumersPodsMayUse(t *testing.T) {
	gvisor := &corev1.PodSpec{RuntimeClassName: ptr.To("gvisor"), AutomountServiceAccountToken: ptr.To(false)}
	robot := &corev1.PodSpec{ServiceAccountName: "robot"}
	for name, tc := range map[string]struct {
		consumers             v1alpha1.Consumers
		runtimeClass, account bool
	}{
		"by default":                  {v1alpha1.Consumers{}, false, false},
		"a RuntimeClass":              {v1alpha1.Consumers{RuntimeClasses: []string{"kata", "gvisor"}}, true, false},
		"another RuntimeClass":        {v1alpha1.Consumers{RuntimeClasses: []string{"kata"}}, false, false},
		"all RuntimeClasses":          {v1alpha1.Consumers{RuntimeClasses: []string{v1alpha1.Any}}, true, false},
		"a ServiceAccount":            {v1alpha1.Consumers{ServiceAccounts: []string{"robot"}}, false, true},
		"all ServiceAccounts":         {v1alpha1.Consumers{ServiceAccounts: []string{v1alpha1.Any}}, false, true},
		"another ServiceAccount only": {v1alpha1.Consumers{ServiceAccounts: []string{"default"}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			rules := podRules(tc.consumers)
			if errs := reflection.CheckShadowPod(gvisor, rules); (len(errs) == 0) != tc.runtimeClass {
				t.Errorf("a pod with a RuntimeClass: %v", errs)
			}
			if errs := reflection.CheckShadowPod(robot, rules); (len(errs) == 0) != tc.account {
				t.Errorf("a pod with a ServiceAccount: %v", errs)
			}
		})
	}
}
