package share_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
)

func TestGet(t *testing.T) {
	elsewhere := slice("pool", nil, "false")
	elsewhere.Namespace = "liqo-tenant-turin"
	objects := append(peered(), slice("pool", nil, "true"), slice("gpus", nil, "true"), elsewhere, virtualNode("pool", "pool"), virtualNode("gpus", "gpus"))
	for sentence, test := range map[string]struct {
		options share.GetOptions
		missing string
		slices  []string
		nodes   []string
		refused [2]string
	}{
		"all":              {slices: []string{"milan/gpus", "milan/pool", "turin/pool"}, nodes: []string{"milan/gpus", "milan/pool"}},
		"of a peer":        {options: share.GetOptions{PeerID: "turin"}, slices: []string{"turin/pool"}},
		"of a name":        {options: share.GetOptions{Name: "pool"}, slices: []string{"milan/pool", "turin/pool"}, nodes: []string{"milan/pool"}},
		"of both":          {options: share.GetOptions{Name: "pool", PeerID: "milan"}, slices: []string{"milan/pool"}, nodes: []string{"milan/pool"}},
		"misspelt":         {options: share.GetOptions{Name: "gpu"}, refused: [2]string{"rome has no resourceslice gpu: did you mean gpus?", "rome has no virtualnode gpu: did you mean gpus?"}},
		"nowhere":          {options: share.GetOptions{Name: "singapore", PeerID: "milan"}, refused: [2]string{"rome has no resourceslice singapore of peer milan: list them with 'liqoctl get resourceslice --context rome'", "rome has no virtualnode singapore of peer milan: list them with 'liqoctl get virtualnode --context rome'"}},
		"without a right":  {missing: "list resourceslices.authentication.liqo.io", nodes: []string{"milan/gpus", "milan/pool"}, refused: [2]string{"you are not allowed to: list resourceslices"}},
		"a right for some": {missing: "list resourceslices.authentication.liqo.io", options: share.GetOptions{PeerID: "turin"}, slices: []string{"turin/pool"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: objects, Missing: []string{test.missing}})
			test.options.Cluster = rome.Cluster
			list, err := share.Slices(t.Context(), test.options)
			nodes, nodesErr := share.Nodes(t.Context(), test.options)
			for i, err := range []error{err, nodesErr} {
				if want := test.refused[i]; (err != nil) != (want != "") || err != nil && (failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), want)) {
					t.Errorf("got %v", err)
				}
			}
			var got, gotNodes []string
			for i := range list {
				got = append(got, path(&list[i]))
			}
			for i := range nodes {
				gotNodes = append(gotNodes, path(&nodes[i]))
			}
			if diff := cmp.Diff(test.slices, got) + cmp.Diff(test.nodes, gotNodes); diff != "" || len(rome.Writes()) > 0 {
				t.Errorf("%s, wrote %v, %v", diff, rome.Writes(), errors.Join(err, nodesErr))
			}
		})
	}
}

func path(object client.Object) string {
	return strings.TrimPrefix(object.GetNamespace(), corev1beta1.TenantNamespacePrefix) + "/" + object.GetName()
}

func TestStates(t *testing.T) {
	going := metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}
	condition := func(kind, status, reason string) corev1beta1.Condition {
		return corev1beta1.Condition{Type: kind, Status: status, Reason: reason}
	}
	both := []corev1beta1.Condition{condition("Authentication", "Accepted", ""), condition("Resources", "Accepted", "")}
	cordoned := []corev1beta1.Condition{condition("Ready", "True", ""), condition("Cordoned", "True", "SliceCordoned")}
	for want, slice := range map[string]authv1beta1.ResourceSlice{
		"Waiting":            {Status: authv1beta1.ResourceSliceStatus{Conditions: both[:1]}},
		"Accepted":           {Status: authv1beta1.ResourceSliceStatus{Conditions: both}},
		"Accepted, cordoned": {Status: authv1beta1.ResourceSliceStatus{Conditions: both, Summary: cordoned}},
		"Denied: TenantLimitReached": {Status: authv1beta1.ResourceSliceStatus{Conditions: []corev1beta1.Condition{
			both[0], condition("Resources", "Denied", authv1beta1.ReasonTenantLimit)}}},
		"Deleting": {ObjectMeta: going, Status: authv1beta1.ResourceSliceStatus{Conditions: both}},
	} {
		if got := share.StateOf(&slice); got != want {
			t.Errorf("a slice is %q, want %q", got, want)
		}
	}
	for want, node := range map[string]offloadingv1beta1.VirtualNode{
		"Waiting":         {},
		"Ready":           {Status: offloadingv1beta1.VirtualNodeStatus{Summary: cordoned[:1]}},
		"Ready, cordoned": {Status: offloadingv1beta1.VirtualNodeStatus{Summary: cordoned}},
		"NotReady: Draining": {Status: offloadingv1beta1.VirtualNodeStatus{Summary: []corev1beta1.Condition{
			condition("Ready", "False", offloadingv1beta1.ReasonDraining)}}},
		"Deleting": {ObjectMeta: going, Status: offloadingv1beta1.VirtualNodeStatus{Summary: cordoned}},
	} {
		if got := share.NodeStateOf(&node); got != want {
			t.Errorf("a node is %q, want %q", got, want)
		}
	}
}
