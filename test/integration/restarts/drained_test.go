package restarts

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// C13: a virtual node is removed, as unpeering does. Its pods leave as a PodDisruptionBudget lets them, and the twin of a namespace that
// is offloaded to this node alone stays until they have: with it they would all go at once. Then it goes too.
func TestC13TheTwinStaysUntilItsNodeIsDrained(t *testing.T) {
	w := env.Peered(t)
	s := &siblings{w: w, kubelets: map[string]*fixture.Kubelet{w.Node: w.Kubelet}}
	defer s.leave(t)
	s.join(t, map[string]string{"drained": "soon"})
	s.namespace = env.OffloadedTo(t, corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "drained", Operator: corev1.NodeSelectorOpIn, Values: []string{"soon"}}}}}})
	p := world.Pod(s.namespace, "protected")
	p.Labels, p.Spec.NodeName = map[string]string{"app": "protected"}, second
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), p))
	world.AwaitPods(t, env.Rome, s.namespace, 1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "protected"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
	fixture.Must(t, "creating a PodDisruptionBudget", env.Rome.Client.Create(t.Context(), budget))
	fixture.Await(t, fixture.Patience, "the budget to count the pod", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(budget), budget)
		return err == nil && budget.Status.CurrentHealthy == 1 && budget.Status.ObservedGeneration == budget.Generation, fmt.Sprintf("%+v %v", budget.Status, err)
	})

	vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ConsumerNamespace, Name: second}}
	fixture.Must(t, "removing the second VirtualNode", env.Rome.Client.Delete(t.Context(), vn))
	nso := &offloadingv1beta1.NamespaceOffloading{}
	fixture.Await(t, fixture.Patience, "the drain to wait for the budget, and the offloading to know of it", func(ctx context.Context) (bool, string) {
		for key, object := range map[client.ObjectKey]client.Object{client.ObjectKeyFromObject(vn): vn,
			{Namespace: s.namespace, Name: offloadingv1beta1.NamespaceOffloadingName}: nso} {
			if err := env.Rome.Client.Get(ctx, key, object); err != nil {
				return false, err.Error()
			}
		}
		seen := fmt.Sprintf("%v; %v", vn.Status.All(), nso.Status.Conditions)
		return strings.Contains(seen, "PodDisruptionBudget") && strings.Contains(seen, "it leaves milan once the virtual nodes there are drained"), seen
	})
	mapped := func(ctx context.Context) bool {
		nm := &offloadingv1beta1.NamespaceMap{}
		fixture.Must(t, "reading the NamespaceMap", env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: "milan"}, nm))
		_, wanted := nm.Spec.DesiredMapping[s.namespace]
		return wanted
	}
	if remote := env.RemoteOf(t, p); !mapped(t.Context()) || remote.DeletionTimestamp != nil {
		t.Errorf("the twin is wanted: %v; its pod is deleted: %v", mapped(t.Context()), remote.DeletionTimestamp)
	}

	fixture.Must(t, "removing the budget", env.Rome.Client.Delete(t.Context(), budget))
	world.AwaitGone(t, env.Rome, p)
	world.AwaitGone(t, env.Rome, vn)
	fixture.Await(t, fixture.Patience, "the twin to go with its node", func(ctx context.Context) (bool, string) {
		twin := &corev1.Namespace{}
		err := env.Milan.Client.Get(ctx, client.ObjectKey{Name: s.namespace}, twin)
		return !mapped(ctx) && (apierrors.IsNotFound(err) || err == nil && !twin.DeletionTimestamp.IsZero()), fmt.Sprintf("mapped %v, twin %v, error %v", mapped(ctx), twin.Status, err)
	})
}
