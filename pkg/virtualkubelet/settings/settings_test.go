package settings

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
)

func TestMappingIsTheIntersection(t *testing.T) {
	m := &offloadingv1beta1.NamespaceMap{
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"a": "a-rome", "b": "b-rome", "c": "c-rome"}},
		Status: offloadingv1beta1.NamespaceMapStatus{CurrentMapping: map[string]offloadingv1beta1.RemoteNamespaceStatus{
			"a":           {RemoteNamespace: "a-rome", Phase: offloadingv1beta1.MappingAccepted},
			"b":           {RemoteNamespace: "elsewhere", Phase: offloadingv1beta1.MappingAccepted},
			"kube-system": {RemoteNamespace: "loot", Phase: offloadingv1beta1.MappingAccepted},
		}},
	}
	want := pod.Mapping{Known: true, Desired: m.Spec.DesiredMapping, Effective: map[string]string{"a": "a-rome"}}
	if diff := cmp.Diff(want, mappingOf(m, placement.HomeNamespaces{Liqo: "liqo"})); diff != "" {
		t.Error(diff)
	}
}

// What a peer wants to have here never is what is reflected there, even if its map has the labels of ours.
func TestThePeersMapSaysNothing(t *testing.T) {
	m := &offloadingv1beta1.NamespaceMap{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"liqo.io/replicated": "true", "liqo.io/replication": "true", "liqo.io/remoteID": "milan"}},
		Spec:       offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"payroll": "loot"}},
		Status: offloadingv1beta1.NamespaceMapStatus{CurrentMapping: map[string]offloadingv1beta1.RemoteNamespaceStatus{
			"payroll": {RemoteNamespace: "loot", Phase: offloadingv1beta1.MappingAccepted}}},
	}
	if diff := cmp.Diff(pod.Mapping{}, mappingOf(m, placement.HomeNamespaces{Liqo: "liqo"})); diff != "" {
		t.Error(diff)
	}
}

func TestNamespacesThatNeverLeaveAreNotMapped(t *testing.T) {
	m := &offloadingv1beta1.NamespaceMap{Status: offloadingv1beta1.NamespaceMapStatus{CurrentMapping: map[string]offloadingv1beta1.RemoteNamespaceStatus{}}}
	m.Spec.DesiredMapping = map[string]string{"shop": "shop-rome", "mesh": "loot-1", "liqo-tenant-milan": "loot-2", "liqo-storage": "loot-3", "kube-system": "loot-4"}
	for local, twin := range m.Spec.DesiredMapping {
		m.Status.CurrentMapping[local] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: twin, Phase: offloadingv1beta1.MappingAccepted}
	}
	only := map[string]string{"shop": "shop-rome"}
	if diff := cmp.Diff(pod.Mapping{Known: true, Desired: only, Effective: only}, mappingOf(m, placement.HomeNamespaces{Liqo: "mesh"})); diff != "" {
		t.Error(diff)
	}
	if len(m.Spec.DesiredMapping) != 5 {
		t.Errorf("the map itself was changed: %v", m.Spec.DesiredMapping)
	}
}

func TestSettings(t *testing.T) {
	vn := &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{offloadingv1beta1.RemotePodCIDRsAnnotation: "10.1.0.0/16, nonsense,fd00::1/64"}},
		Spec:       offloadingv1beta1.VirtualNodeSpec{OffloadingPatch: &offloadingv1beta1.OffloadingPatch{LabelsNotReflected: []string{"x"}}},
	}
	own := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
	want := pod.Settings{Patch: vn.Spec.OffloadingPatch, NotReflected: reflection.NotReflected{Labels: []string{"x"}}, OwnPrefixes: own,
		PodPrefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/64")}}
	if diff := cmp.Diff(want, (&Reflectors{}).Settings(vn, nil).OfPods(t.Context(), own), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
}
