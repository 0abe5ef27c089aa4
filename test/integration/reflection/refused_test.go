package reflection

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

const policyWords = "hands off"

// forbid makes a policy of the provider, without a reason of its own, that lets nobody do these things with objects of the kind in
// the twin; it ends with the test, or when it is deleted.
func (w *world) forbid(operations ...admissionregistrationv1.OperationType) client.Object {
	w.Helper()
	twin, all := w.kind.RemoteKind(), admissionregistrationv1.AllScopes
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.twin},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.twin}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: operations,
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{twin.GVR.Group}, APIVersions: []string{twin.GVR.Version}, Resources: []string{twin.GVR.Resource}, Scope: &all,
					},
				}}},
			},
			// The ledger is the provider's own.
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "reflected", Expression: "object.metadata.name != '" + offloadingv1beta1.SecretLedger + "'"}},
			Validations:     []admissionregistrationv1.Validation{{Expression: "false", Message: policyWords}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.twin},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.twin, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	for _, object := range []client.Object{policy, binding} {
		fixture.Must(w, "creating an admission policy at the provider", env.Milan.Client.Create(w.Context(), object))
		w.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), fixture.Patience)
			defer cancel()
			if err := client.IgnoreNotFound(env.Milan.Client.Delete(ctx, object)); err != nil {
				w.Errorf("removing an admission policy: %v", err)
			}
		})
	}
	return policy
}

// forbidden waits until the policy refuses what try does.
func (w *world) forbidden(try func(ctx context.Context) error) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "the admission policy at the provider to be effective", func(ctx context.Context) (bool, string) {
		err := try(ctx)
		return apierrors.IsInvalid(err) && strings.Contains(err.Error(), policyWords), fmt.Sprint(err)
	})
}

// refusedByPolicy has an object cross by itself, once a policy that refused it is gone.
func refusedByPolicy(w *world, s specimen) {
	policy := w.forbid(admissionregistrationv1.Create)
	w.forbidden(func(ctx context.Context) error { return w.tryCreate(ctx, s) })
	w.put(s.make("denied"))
	w.told(offloadingv1beta1.ReasonFailedReflection, policyWords)
	w.problem("denied", "Forbidden")
	fixture.Must(w, "deleting the policy", env.Milan.Client.Delete(w.Context(), policy))
	w.converged("denied")
	told := 0
	for event := range strings.Lines(w.events.all()) {
		if strings.Contains(event, w.twin+"/denied") && strings.Contains(event, policyWords) {
			told++
		}
	}
	if told != 1 {
		w.Errorf("it is told %d times:\n%s", told, w.events.all())
	}
}

// A Secret that a later policy keeps from being changed stays ours: it goes once it may.
func TestSecretsThatMayNotBeChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "secret")
	for _, name := range []string{"gone", "skipped", "changed"} {
		w.put(specimens["secret"].make(name))
		w.converged(name)
	}
	w.restart() // What was just written is removed without a look at it.
	policy := w.forbid(admissionregistrationv1.Update)
	w.forbidden(func(ctx context.Context) error {
		touched := w.remote(ctx, "changed")
		touched.SetLabels(map[string]string{"probe": ""})
		return env.Milan.Client.Update(ctx, touched, client.DryRunAll)
	})
	w.deleteFrom(env.Rome, w.namespace, "gone")
	w.editLocal("skipped", func(o reflection.Object) {
		o.SetAnnotations(map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""})
	})
	w.editLocal("changed", specimens["secret"].update)
	w.told("Not removed from", w.twin+"/gone", policyWords)
	w.told("its copy is still there", w.twin+"/skipped", policyWords)
	w.told("changing", w.twin+"/changed", policyWords)
	if strings.Contains(w.events.all(), offloadingv1beta1.ReasonNameConflict) {
		t.Errorf("a Secret of ours is taken for another's:\n%s", w.events.all())
	}
	fixture.Must(t, "deleting the policy", env.Milan.Client.Delete(t.Context(), policy))
	w.gone("gone")
	w.gone("skipped")
	w.converged("changed")
}

// D5: what cannot be changed in place is not given up for something that the provider refuses.
func TestRefusedReplacementsLeaveTheCopy(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t, "service"), specimens["service"]
	w.put(s.make("fixed"))
	before := w.converged("fixed")
	policy := w.forbid(admissionregistrationv1.Create)
	w.forbidden(func(ctx context.Context) error { return w.tryCreate(ctx, s) })
	w.link.connect(false)
	for _, step := range s.immutable["becoming headless"].steps {
		w.editLocal("fixed", step)
	}
	w.restart()
	w.link.connect(true)
	w.told("the last copy stays", "spec.clusterIP", policyWords)
	if remote := w.remote(t.Context(), "fixed"); remote == nil || remote.GetUID() != before.GetUID() {
		t.Error("the copy is gone")
	}
	fixture.Must(t, "deleting the policy", env.Milan.Client.Delete(t.Context(), policy))
	if after := w.converged("fixed"); after.GetUID() == before.GetUID() {
		t.Error("it was changed in place")
	}
}

// tryCreate creates an object of the kind at the provider in a dry run.
func (w *world) tryCreate(ctx context.Context, s specimen) error {
	probe := s.remote("probe")
	probe.SetNamespace(w.twin)
	return env.Milan.Client.Create(ctx, probe, client.DryRunAll)
}
