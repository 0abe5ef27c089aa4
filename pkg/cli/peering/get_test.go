package peering

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/session"
)

func TestWhatIsGotIsShown(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	of := func(peer, name string, since time.Duration) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "liqo-tenant-" + peer, Name: name, CreationTimestamp: metav1.NewTime(now.Add(-since)), Labels: map[string]string{},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "liqoctl"}}}
	}
	asked := authv1beta1.ResourceSlice{ObjectMeta: of("milan", "gpus", 3*time.Hour), Status: authv1beta1.ResourceSliceStatus{Resources: cpu, Conditions: []corev1beta1.Condition{
		{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted}, {Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Accepted}}}}
	theirs := authv1beta1.ResourceSlice{ObjectMeta: of("oslo", "rome", 5*time.Second), Spec: authv1beta1.ResourceSliceSpec{Class: "gold"}}
	theirs.Labels[corev1beta1.ReplicatedLabel] = "true"
	node := offloadingv1beta1.VirtualNode{ObjectMeta: of("milan", "gpus", 90*time.Second), Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan", ResourceQuota: corev1.ResourceQuotaSpec{Hard: cpu}},
		Status: offloadingv1beta1.VirtualNodeStatus{Summary: []corev1beta1.Condition{{Type: "Ready", Status: "True"}}}}
	node.Labels[authv1beta1.ResourceSliceNameLabel] = "gpus"
	small := offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "small"}}
	slices := func(list ...authv1beta1.ResourceSlice) func(*session.Session) *table {
		return func(s *session.Session) *table { return slicesTable(s, list) }
	}
	nodes := func(list ...offloadingv1beta1.VirtualNode) func(*session.Session) *table {
		return func(s *session.Session) *table { return nodesTable(s, list) }
	}
	for sentence, test := range map[string]struct {
		table            func(*session.Session) *table
		format           string
		options          share.GetOptions
		out, told, begin string
	}{
		"slices": {table: slices(asked, theirs), out: `NAME   CLUSTER ID   ACTION      CLASS     STATUS     RESOURCES   AGE
gpus   milan        Consuming   default   Accepted   cpu 4       3h
rome   oslo         Providing   gold      Waiting    -           5s
`},
		"nodes": {table: nodes(node, small), out: `NAME    CLUSTER ID   STATUS    RESOURCE SLICE   RESOURCES   AGE
gpus    milan        Ready     gpus             cpu 4       90s
small   milan        Waiting   -                -           -
`},
		"no slice":              {table: slices(), told: "There are no ResourceSlices.\n"},
		"no node of a provider": {table: nodes(), options: share.GetOptions{PeerID: "milan"}, told: "There are no virtual nodes of milan.\n"},
		"one by its name":       {table: slices(theirs), format: "json", options: share.GetOptions{Name: "rome"}, begin: "{\n  \"apiVersion\": \"authentication.liqo.io/v1beta1\",\n  \"kind\": \"ResourceSlice\",\n"},
		"two of a name":         {table: slices(asked, theirs), format: "yaml", options: share.GetOptions{Name: "gpus"}, begin: "apiVersion: v1\nitems:\n- apiVersion: authentication.liqo.io/v1beta1\n  kind: ResourceSlice\n"},
		"none, for programs":    {table: nodes(), format: "json", out: "{\n  \"apiVersion\": \"v1\",\n  \"items\": [],\n  \"kind\": \"List\"\n}\n"},
		"a node, as kubectl has it": {table: nodes(small), format: "yaml", options: share.GetOptions{Name: "small"}, out: `apiVersion: offloading.liqo.io/v1beta1
kind: VirtualNode
metadata:
  name: small
  namespace: liqo-tenant-milan
spec:
  clusterID: ""
  resourceQuota: {}
`},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out, told bytes.Buffer
			s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &told}, "liqoctl", func(string) string { return "" })
			s.Clock = clocktesting.NewFakePassiveClock(now)
			if err := test.table(s).show(s, test.format, test.options); err != nil {
				t.Fatal(err)
			}
			if test.begin != "" {
				if !strings.HasPrefix(out.String(), test.begin) || strings.Contains(out.String(), "managedFields") {
					t.Errorf("it shows %s", out.String())
				}
				return
			}
			if diff := cmp.Diff(test.out, out.String()) + cmp.Diff(test.told, told.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
