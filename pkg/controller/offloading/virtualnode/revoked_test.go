package virtualnode

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// turned changes an object of the world and its status.
func turned[T client.Object](w *world, object T, change func(T)) {
	w.Helper()
	if !w.is(object, "") {
		w.Fatalf("there is no %T", object)
	}
	change(object)
	if err := w.Client.Update(context.Background(), object); err != nil {
		w.Fatal(err)
	}
}

func TestVirtualNodeWhoseProviderTookTheRightsBack(t *testing.T) {
	milan := corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}}
	authentication := func(status, reason string) func(*corev1beta1.ForeignCluster) {
		return func(fc *corev1beta1.ForeignCluster) {
			fc.Status.Modules.Authentication.Conditions = []corev1beta1.Condition{
				{Type: corev1beta1.AuthIdentityControlPlaneStatus, Status: status, Reason: reason, Message: "we may not list resourceslices"}}
		}
	}
	resources := func(status string) func(*authv1beta1.ResourceSlice) {
		return func(slice *authv1beta1.ResourceSlice) {
			slice.Status.Conditions = []corev1beta1.Condition{{Type: authv1beta1.ResourcesCondition, Status: status, Reason: "DefaultClassDisabled", Message: "not here"}}
		}
	}
	for name, tc := range map[string]struct {
		gone, back func(*world)
		message    string
	}{
		"the tenant has none": {
			func(w *world) {
				turned(w, &corev1beta1.ForeignCluster{}, authentication(corev1beta1.StatusError, corev1beta1.ReasonRightsRevoked))
			},
			func(w *world) {
				turned(w, &corev1beta1.ForeignCluster{}, authentication(corev1beta1.StatusEstablished, corev1beta1.ReasonIdentityReady))
			},
			"we may not list resourceslices",
		},
		"the slice is denied": {
			func(w *world) { turned(w, &authv1beta1.ResourceSlice{}, resources(authv1beta1.Denied)) },
			func(w *world) { turned(w, &authv1beta1.ResourceSlice{}, resources(authv1beta1.Accepted)) },
			"the provider denies ResourceSlice milan: DefaultClassDisabled: not here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			w := ready(t, milan.DeepCopy(), slice)
			turned(w, &offloadingv1beta1.VirtualNode{}, func(vn *offloadingv1beta1.VirtualNode) {
				metav1.SetMetaDataLabel(&vn.ObjectMeta, authv1beta1.ResourceSliceNameLabel, "milan")
			})
			w.pass()
			if got := w.condition("Rights"); got != "" {
				t.Fatalf("while the rights are there the condition is %q", got)
			}
			tc.gone(w)
			w.pass()
			if got := w.condition("Ready"); w.condition("Rights") != "False" || got != "False RightsRevoked: "+tc.message {
				t.Errorf("rights %q, ready %q", w.condition("Rights"), got)
			}
			tc.back(w)
			w.pass()
			if got := w.condition("Ready"); w.condition("Rights") != "" || !strings.HasPrefix(got, "True") {
				t.Errorf("rights %q, ready %q", w.condition("Rights"), got)
			}
		})
	}
}

// More runs than the provider offers now: the VirtualNode says so while it is so, and is ready all the same.
func TestOverCommitmentIsSaid(t *testing.T) {
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	w := ready(t, slice)
	turned(w, &offloadingv1beta1.VirtualNode{}, func(vn *offloadingv1beta1.VirtualNode) {
		metav1.SetMetaDataLabel(&vn.ObjectMeta, authv1beta1.ResourceSliceNameLabel, "milan")
	})
	for _, step := range []struct {
		summary []corev1beta1.Condition
		want    string
	}{
		{[]corev1beta1.Condition{{Type: authv1beta1.OverCommittedCondition, Status: "True", Reason: authv1beta1.ReasonMoreRunsThanIsOffered, Message: "by cpu 1"}}, "by cpu 1"},
		{nil, ""},
	} {
		turned(w, slice, func(slice *authv1beta1.ResourceSlice) { slice.Status.Summary = step.summary })
		w.pass()
		vn, said := &offloadingv1beta1.VirtualNode{}, ""
		w.is(vn, "")
		if c := conditions.Find(vn.Status.Summary, offloadingv1beta1.OverCommittedCondition); c != nil {
			said = c.Message
		}
		if said != step.want || !strings.HasPrefix(w.condition("Ready"), "True") {
			t.Errorf("it says %q, want %q; ready %q", said, step.want, w.condition("Ready"))
		}
	}
}

// A provider that takes no new pods: the scheduler learns it by a taint, as of a node that was cordoned. Taints of others stay, and so does
// what an administrator of this cluster cordoned.
func TestTheNodeOfACordonedSliceTakesNoNewPods(t *testing.T) {
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	w := ready(t, slice)
	turned(w, &offloadingv1beta1.VirtualNode{}, func(vn *offloadingv1beta1.VirtualNode) {
		metav1.SetMetaDataLabel(&vn.ObjectMeta, authv1beta1.ResourceSliceNameLabel, "milan")
	})
	others := corev1.Taint{Key: "example.org/mine", Effect: corev1.TaintEffectNoSchedule}
	turned(w, &corev1.Node{}, func(node *corev1.Node) {
		node.Spec.Taints, node.Spec.Unschedulable = append(node.Spec.Taints, others), true
	})
	taints := func() []string {
		node, all := &corev1.Node{}, []string(nil)
		w.is(node, "")
		for _, taint := range node.Spec.Taints {
			all = append(all, taint.Key+":"+string(taint.Effect))
		}
		if !node.Spec.Unschedulable {
			t.Error("the administrator's own cordon was lifted")
		}
		return all
	}
	usual := []string{"virtual-node.liqo.io/not-allowed:NoExecute", "example.org/mine:NoSchedule"}
	cordon := func(conditions ...corev1beta1.Condition) func(*authv1beta1.ResourceSlice) {
		return func(slice *authv1beta1.ResourceSlice) { slice.Status.Summary = conditions }
	}
	turned(w, slice, cordon(corev1beta1.Condition{Type: authv1beta1.CordonedCondition, Status: "True", Reason: authv1beta1.ReasonTenantCordoned, Message: "nothing new"}))
	w.pass()
	if diff := cmp.Diff(append(slices.Clone(usual), "virtual-node.liqo.io/cordoned:NoSchedule"), taints()); diff != "" {
		t.Error(diff)
	}
	vn := &offloadingv1beta1.VirtualNode{}
	w.is(vn, "")
	said := conditions.Find(vn.Status.Summary, offloadingv1beta1.CordonedCondition)
	if said == nil || said.Message != "the provider takes no new pods of ResourceSlice milan: TenantCordoned: nothing new" || !strings.HasPrefix(w.condition("Ready"), "True") {
		t.Errorf("cordoned %v, ready %q", said, w.condition("Ready"))
	}
	turned(w, slice, cordon())
	w.pass()
	if diff := cmp.Diff(usual, taints()); diff != "" || w.condition("Cordoned") != "" {
		t.Errorf("afterwards: %s, condition %q", diff, w.condition("Cordoned"))
	}
}

func TestNodeThatFoundItsRightsGoneGivesTheReason(t *testing.T) {
	w := ready(t)
	node := &corev1.Node{}
	w.is(node, "")
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
		Reason: offloadingv1beta1.ReasonRightsRevoked, Message: "we may not list shadowpods"}}
	if err := w.Status().Update(context.Background(), node); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if got := w.condition("Ready"); got != "False RightsRevoked: we may not list shadowpods" || w.condition("Rights") != "" {
		t.Errorf("ready %q, rights %q", got, w.condition("Rights"))
	}
}

func TestNothingIsToldTwiceByACacheThatIsBehind(t *testing.T) {
	w := ready(t)
	told := events.NewFakeRecorder(10)
	w.r.Events = told
	behind, node := &offloadingv1beta1.VirtualNode{}, &corev1.Node{}
	w.is(behind, "")
	w.is(node, "")
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "Unreachable"}}
	if err := w.Status().Update(context.Background(), node); err != nil {
		t.Fatal(err)
	}
	w.pass()
	problem := reconcile.Wait(offloadingv1beta1.ReasonNodeNotReady, "the node is not ready", poll)
	if err := w.r.report(context.Background(), &scope{vn: behind}, problem); err != nil {
		t.Error(err)
	}
	if len(told.Events) != 1 {
		t.Errorf("%d Events, want one", len(told.Events))
	}
}

func TestOnlyDenialsOfSlicesMatter(t *testing.T) {
	slice := func(status string, message string) *authv1beta1.ResourceSlice {
		s := &authv1beta1.ResourceSlice{}
		s.Status.Conditions = []corev1beta1.Condition{{Type: authv1beta1.AuthenticationCondition, Status: status, Message: message}}
		return s
	}
	for name, tc := range map[string]struct {
		before, after *authv1beta1.ResourceSlice
		want          bool
	}{
		"it is denied":         {slice(authv1beta1.Accepted, ""), slice(authv1beta1.Denied, "no"), true},
		"it is accepted again": {slice(authv1beta1.Denied, "no"), slice(authv1beta1.Accepted, ""), true},
		"it stays accepted":    {slice(authv1beta1.Accepted, ""), slice(authv1beta1.Accepted, "renewed"), false},
		"it is cordoned": {slice(authv1beta1.Accepted, ""), func() *authv1beta1.ResourceSlice {
			s := slice(authv1beta1.Accepted, "")
			s.Status.Summary = append(s.Status.Summary, corev1beta1.Condition{Type: authv1beta1.CordonedCondition, Status: "True"})
			return s
		}(), true},
		"it is denied as before": {slice(authv1beta1.Denied, "no"), slice(authv1beta1.Denied, "no"), false},
	} {
		if got := answerChanged().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestLossAndReturnOfVirtualNodesAreNews(t *testing.T) {
	ready := func(status, reason string) *corev1beta1.Condition {
		return &corev1beta1.Condition{Type: "Ready", Status: status, Reason: reason, Message: "m"}
	}
	for name, tc := range map[string]struct {
		was, is *corev1beta1.Condition
		want    string
	}{
		"it comes up":               {nil, ready("False", "VirtualKubeletStarting"), ""},
		"it starts":                 {ready("False", "VirtualKubeletStarting"), ready("False", "NodeNotReady"), ""},
		"it is ready":               {ready("False", "NodeNotReady"), ready("True", "VirtualNodeReady"), "Normal VirtualNodeReady m"},
		"its node is lost":          {ready("True", "VirtualNodeReady"), ready("False", "NodeNotReady"), "Warning NodeNotReady m"},
		"it stays lost":             {ready("False", "NodeNotReady"), ready("False", "NodeNotReady"), ""},
		"its rights turn out to go": {ready("False", "NodeNotReady"), ready("False", "RightsRevoked"), "Warning RightsRevoked m"},
		"its rights are gone":       {ready("True", "VirtualNodeReady"), ready("False", "RightsRevoked"), "Warning RightsRevoked m"},
		"its rights are on the way": {ready("False", "RightsRevoked"), ready("False", "NodeNotReady"), ""},
	} {
		kind, reason, message := news(tc.was, tc.is)
		if got := strings.TrimSpace(kind + " " + reason + " " + message); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
