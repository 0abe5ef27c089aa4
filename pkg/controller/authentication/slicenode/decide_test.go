package slicenode

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestNodeLabels(t *testing.T) {
	many, wantMany := map[string]string{}, map[string]string{}
	for i := range 100 {
		many[fmt.Sprintf("l%02d", i)] = "v"
		if i < maxLabels {
			wantMany[fmt.Sprintf("l%02d", i)] = "v"
		}
	}
	for name, tc := range map[string]struct{ suggested, want map[string]string }{
		"nothing": {nil, map[string]string{}},
		"what is allowed": {
			map[string]string{"topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": "a", "liqo.io/provider": "x", "storage.liqo.io/available": "true", "tier": "gold", "example.com/rack": "7"},
			map[string]string{"topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": "a", "liqo.io/provider": "x", "storage.liqo.io/available": "true", "tier": "gold", "example.com/rack": "7"},
		},
		"what means something to Kubernetes": {
			map[string]string{"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": "n", "node.k8s.io/x": "y", "k8s.io/x": "y", "node-restriction.kubernetes.io/x": "y", "node.kubernetes.io/exclude-from-external-load-balancers": "true"},
			map[string]string{},
		},
		"what means something to us": {
			map[string]string{"liqo.io/type": "", "liqo.io/remote-cluster-id": "other", "offloading.liqo.io/origin": "x"}, map[string]string{},
		},
		"what only looks reserved": {map[string]string{"notkubernetes.io/x": "y"}, map[string]string{"notkubernetes.io/x": "y"}},
		"what is not a label":      {map[string]string{"a b": "c", "a": "b c", "": "x"}, map[string]string{}},
		"a flood":                  {many, wantMany},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, NodeLabels(tc.suggested)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestCapacity(t *testing.T) {
	for name, tc := range map[string]struct{ asked, granted, want corev1.ResourceList }{
		"what was asked":                         {list("cpu", "2"), list("cpu", "2"), list("cpu", "2")},
		"less than asked":                        {list("cpu", "2"), list("cpu", "1"), list("cpu", "1")},
		"never more than asked":                  {list("cpu", "2"), list("cpu", "2000"), list("cpu", "2")},
		"the basics need not be asked for":       {list(), list("cpu", "4", "memory", "8Gi", "pods", "110", "ephemeral-storage", "20Gi"), list("cpu", "4", "memory", "8Gi", "pods", "110", "ephemeral-storage", "20Gi")},
		"nor pages and devices":                  {list(), list("nvidia.com/gpu", "8", "hugepages-2Mi", "4Mi"), list("nvidia.com/gpu", "8", "hugepages-2Mi", "4Mi")},
		"what means something to others does":    {list(), list("kubernetes.io/x", "8", "a.k8s.io/x", "1", "liqo.io/x", "1", "requests.cpu", "4", "attachable-volumes-x", "3", "a b/c", "1"), list()},
		"a device that was asked for":            {list("nvidia.com/gpu", "1"), list("nvidia.com/gpu", "8"), list("nvidia.com/gpu", "1")},
		"nothing negative":                       {list("cpu", "2"), list("cpu", "-1"), list()},
		"what was asked and not given is absent": {list("cpu", "2", "memory", "1Gi"), list("cpu", "1"), list("cpu", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Capacity(tc.asked, tc.granted)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCapacityOfManyDevices(t *testing.T) {
	many := list("cpu", "4", "memory", "8Gi", "pods", "110")
	for i := range 100 {
		many[corev1.ResourceName(fmt.Sprintf("a.example.org/x-%d", i))] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	got := Capacity(nil, many)
	if len(got) != maxResources || got.Cpu().IsZero() || got.Memory().IsZero() || got.Pods().IsZero() {
		t.Errorf("offered are %d resources, with %s cores, %s of memory and %s pods", len(got), got.Cpu(), got.Memory(), got.Pods())
	}
}

func TestFillPinsAndKeeps(t *testing.T) {
	slice := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "s", Labels: map[string]string{corev1beta1.RemoteIDLabel: "milan"}},
		Spec:       authv1beta1.ResourceSliceSpec{Resources: list("cpu", "2")},
		Status: authv1beta1.ResourceSliceStatus{
			Resources: list("cpu", "3"), PodCIDRs: []string{"192.168.0.0/16"}, NodeSelector: map[string]string{"pool": "a"},
			ProviderNodes: &authv1beta1.ProviderNodes{LargestPod: list("cpu", "1")},
		},
	}
	no := false
	live := &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{offloadingv1beta1.RemotePodCIDRsAnnotation: "10.0.0.0/8"}},
		Spec: offloadingv1beta1.VirtualNodeSpec{
			VkOptionsTemplateRef: &corev1.ObjectReference{Name: "mine"}, CreateNode: &no,
			OffloadingPatch: &offloadingv1beta1.OffloadingPatch{LabelsNotReflected: []string{"x"}},
		},
	}
	Fill(live, slice, "kubeconfig-s", Trust{})
	want := &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{offloadingv1beta1.RemotePodCIDRsAnnotation: "10.0.0.0/8", offloadingv1beta1.ProviderLabelsAnnotation: "",
				offloadingv1beta1.ProviderNodeSelectorAnnotation: "pool=a"},
			Labels: map[string]string{
				corev1beta1.RemoteClusterIDLabel: "milan", corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, authv1beta1.ResourceSliceNameLabel: "s",
			},
		},
		Spec: offloadingv1beta1.VirtualNodeSpec{
			VkOptionsTemplateRef: &corev1.ObjectReference{Name: "mine"}, CreateNode: &no,
			KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "kubeconfig-s"},
			ResourceQuota:       corev1.ResourceQuotaSpec{Hard: list("cpu", "2")},
			OffloadingPatch:     &offloadingv1beta1.OffloadingPatch{LabelsNotReflected: []string{"x"}, NodeSelector: map[string]string{"pool": "a"}},
			ProviderNodes:       &authv1beta1.ProviderNodes{LargestPod: list("cpu", "1")},
		},
	}
	if diff := cmp.Diff(want, live); diff != "" {
		t.Error(diff)
	}
}

// Pods go to the nodes that the slice is for now; what somebody here patched otherwise stays.
func TestPodsGoToTheNodesOfTheSlice(t *testing.T) {
	arm, amd := map[string]string{"pool": "arm"}, map[string]string{"pool": "amd"}
	for sentence, tc := range map[string]struct {
		patch  *offloadingv1beta1.OffloadingPatch
		slices []map[string]string
		want   *offloadingv1beta1.OffloadingPatch
	}{
		"all nodes":               {slices: []map[string]string{nil}},
		"certain ones":            {slices: []map[string]string{arm}, want: &offloadingv1beta1.OffloadingPatch{NodeSelector: arm}},
		"others":                  {slices: []map[string]string{arm, amd}, want: &offloadingv1beta1.OffloadingPatch{NodeSelector: amd}},
		"all again":               {slices: []map[string]string{arm, nil}},
		"all again, with a patch": {patch: &offloadingv1beta1.OffloadingPatch{LabelsNotReflected: []string{"x"}}, slices: []map[string]string{arm, nil}, want: &offloadingv1beta1.OffloadingPatch{LabelsNotReflected: []string{"x"}}},
		"certain ones, with what somebody patched": {patch: &offloadingv1beta1.OffloadingPatch{NodeSelector: map[string]string{"zone": "a"}}, slices: []map[string]string{arm, amd},
			want: &offloadingv1beta1.OffloadingPatch{NodeSelector: map[string]string{"zone": "a", "pool": "amd"}}},
		"all again, with what somebody patched": {patch: &offloadingv1beta1.OffloadingPatch{NodeSelector: map[string]string{"zone": "a"}}, slices: []map[string]string{arm, nil},
			want: &offloadingv1beta1.OffloadingPatch{NodeSelector: map[string]string{"zone": "a"}}},
		"what somebody patched": {patch: &offloadingv1beta1.OffloadingPatch{NodeSelector: amd}, slices: []map[string]string{nil, nil}, want: &offloadingv1beta1.OffloadingPatch{NodeSelector: amd}},
	} {
		node := &offloadingv1beta1.VirtualNode{Spec: offloadingv1beta1.VirtualNodeSpec{OffloadingPatch: tc.patch}}
		for _, selector := range tc.slices {
			Fill(node, &authv1beta1.ResourceSlice{Status: authv1beta1.ResourceSliceStatus{NodeSelector: maps.Clone(selector)}}, "kubeconfig", Trust{})
		}
		if diff := cmp.Diff(tc.want, node.Spec.OffloadingPatch); diff != "" {
			t.Errorf("%s: %s", sentence, diff)
		}
	}
}

func TestWanted(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": true, "yes": true, "false": false, "False": false} {
		slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{authv1beta1.CreateVirtualNodeAnnotation: value}}}
		if Wanted(slice) != want {
			t.Errorf("%q: %v", value, !want)
		}
	}
	if Wanted(&authv1beta1.ResourceSlice{}) {
		t.Error("a slice without the annotation wants a node")
	}
}
