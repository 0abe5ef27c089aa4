package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/reflection"
)

// V4: what a provider offers to consumers' pods is what its configuration lists.
func TestWhatConsumersPodsMayUse(t *testing.T) {
	gvisor := &corev1.PodSpec{RuntimeClassName: ptr.To("gvisor"), AutomountServiceAccountToken: ptr.To(false)}
	adding := func(names ...corev1.Capability) *corev1.PodSpec {
		debugger := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger",
			SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: names}}}}
		return &corev1.PodSpec{AutomountServiceAccountToken: ptr.To(false), EphemeralContainers: []corev1.EphemeralContainer{debugger},
			Containers: []corev1.Container{{Name: "copy", SecurityContext: debugger.SecurityContext}}}
	}
	general, netadmin := adding("SYS_PTRACE"), adding("NET_ADMIN", "NET_RAW")
	robot := &corev1.PodSpec{ServiceAccountName: "robot"}
	for name, tc := range map[string]struct {
		consumers             v1alpha1.Consumers
		runtimeClass, account bool
		general, netadmin     bool
	}{
		"by default":                  {v1alpha1.Consumers{}, false, false, false, false},
		"a RuntimeClass":              {v1alpha1.Consumers{RuntimeClasses: []string{"kata", "gvisor"}}, true, false, false, false},
		"another RuntimeClass":        {v1alpha1.Consumers{RuntimeClasses: []string{"kata"}}, false, false, false, false},
		"all RuntimeClasses":          {v1alpha1.Consumers{RuntimeClasses: []string{v1alpha1.Any}}, true, false, false, false},
		"a ServiceAccount":            {v1alpha1.Consumers{ServiceAccounts: []string{"robot"}}, false, true, false, false},
		"all ServiceAccounts":         {v1alpha1.Consumers{ServiceAccounts: []string{v1alpha1.Any}}, false, true, false, false},
		"what kubectl debug adds":     {v1alpha1.Consumers{Capabilities: []string{"SYS_PTRACE"}}, false, false, true, false},
		"its profile netadmin, too":   {v1alpha1.Consumers{Capabilities: []string{"SYS_PTRACE", "NET_ADMIN", "NET_RAW"}}, false, false, true, true},
		"another ServiceAccount only": {v1alpha1.Consumers{ServiceAccounts: []string{"default"}}, false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			rules := podRules(tc.consumers)
			if errs := reflection.CheckShadowPod(gvisor, rules); (len(errs) == 0) != tc.runtimeClass {
				t.Errorf("a pod with a RuntimeClass: %v", errs)
			}
			if errs := reflection.CheckShadowPod(robot, rules); (len(errs) == 0) != tc.account {
				t.Errorf("a pod with a ServiceAccount: %v", errs)
			}
			if errs := reflection.CheckShadowPod(general, rules); (len(errs) == 0) != tc.general {
				t.Errorf("kubectl debug: %v", errs)
			}
			if errs := reflection.CheckShadowPod(netadmin, rules); (len(errs) == 0) != tc.netadmin {
				t.Errorf("kubectl debug --profile netadmin: %v", errs)
			}
		})
	}
}

// Peers are told of the pods' ranges that packets can be carried to. What is no peer's is not narrowed.
func TestTheNetworkIsOfIPv4(t *testing.T) {
	for name, tc := range map[string]struct{ ranges, want []string }{
		"one family":         {[]string{"10.244.0.0/16", "10.245.0.0/16"}, []string{"10.244.0.0/16", "10.245.0.0/16"}},
		"two families":       {[]string{"10.244.0.0/16", "fd00::/56"}, []string{"10.244.0.0/16"}},
		"two, the other way": {[]string{"fd00::/56", "10.244.0.0/16"}, []string{"10.244.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := &v1alpha1.ControllerManager{IPAM: v1alpha1.IPAM{PodCIDRs: tc.ranges, ServiceCIDR: "10.96.0.0/12", ReservedSubnets: []string{"fd01::/64"}}}
			got := networkOptions(config, surroundings{})
			if diff := cmp.Diff(tc.want, texts(got.Pods)); diff != "" {
				t.Error(diff)
			}
			if len(got.Reserved) != 1 || len(ownRanges(config)) != len(tc.ranges)+1 {
				t.Errorf("reserved are %s, own are %s", got.Reserved, ownRanges(config))
			}
		})
	}
}
