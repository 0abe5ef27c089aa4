package reflection

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// fight is how the provider keeps undoing a field: what it sets, by JSON pointer, and how the engine calls the field.
type fight struct{ path, value, field string }

// fightOverLabel is for kinds of which any field will do.
var fightOverLabel = fight{"/metadata/labels/app", "fought", "field metadata.labels.app"}

// fought lets an admission policy of the provider rewrite a field that is reflected, whoever writes the object.
func fought(w *world, s specimen) {
	w.put(s.make("fought"))
	w.converged("fought")
	policy := w.rewrite(s)
	began, start := time.Now(), env.Milan.Recorder.Now(w)
	touch := func(i int) {
		w.editRemote("fought", func(o reflection.Object) {
			labels := o.GetLabels()
			labels["touched"] = fmt.Sprint(i)
			o.SetLabels(labels)
		})
	}
	touch(0)
	w.told(offloadingv1beta1.ReasonContended, s.fight.field)
	w.problem("fought", offloadingv1beta1.ReasonContended)
	for i := range 5 {
		touch(i + 1)
	}
	w.problem("fought", offloadingv1beta1.ReasonContended)
	writes := w.writes(start, "fought")
	if most := 2 * (1 + int(time.Since(began)/time.Minute)); len(writes) > most || len(writes) == 0 {
		w.Errorf("%d writes, want at most %d: %v", len(writes), most, writes)
	}
	fixture.Must(w, "deleting the policy", env.Milan.Client.Delete(w.Context(), policy))
	w.rewritten(s, false)
	w.editLocal("fought", s.update)
	w.converged("fought")
}

// rewrite makes the policy and waits until it is effective.
func (w *world) rewrite(s specimen) client.Object {
	w.Helper()
	policy := w.policy(fmt.Sprintf("[JSONPatch{op: 'add', path: '%s', value: '%s'}]", s.fight.path, s.fight.value))
	w.rewritten(s, true)
	return policy
}

// policy lets the provider's admission change what is written to the twin, by an expression for a JSON patch.
func (w *world) policy(expression string) client.Object {
	w.Helper()
	twin := w.kind.RemoteKind()
	all := admissionregistrationv1.AllScopes
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.twin},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.twin}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{twin.GVR.Group}, APIVersions: []string{twin.GVR.Version}, Resources: []string{twin.GVR.Resource}, Scope: &all,
					},
				}}},
			},
			// The ledger is the provider's own.
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "reflected", Expression: "object.metadata.name != '" + offloadingv1beta1.SecretLedger + "'"}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
			}},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.twin},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: w.twin},
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

// rewritten waits until the provider rewrites what is made, or no longer does.
func (w *world) rewritten(s specimen, is bool) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "the admission policy at the provider to be effective or gone", func(ctx context.Context) (bool, string) {
		probe, asSent := s.remote("probe"), s.remote("probe")
		probe.SetNamespace(w.twin)
		if err := env.Milan.Client.Create(ctx, probe, client.DryRunAll); err != nil {
			return false, err.Error()
		}
		changes := w.kind.Changes(probe, asSent)
		same := len(changes) == 0 && probe.GetLabels()["app"] == asSent.GetLabels()["app"]
		return same != is, fmt.Sprintf("%v", changes)
	})
}

// problem waits until the engine says what is wrong with an object.
func (w *world) problem(name, reason string) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "the problem "+reason+" of "+name, func(context.Context) (bool, string) {
		problems := w.engine.Problems()
		for i := range problems {
			if problems[i].Name == name && problems[i].Reason == reason {
				return true, ""
			}
		}
		return false, fmt.Sprint(problems)
	})
}

// fightingController lets a controller of the provider undo a field whenever it is put back. Of what can be read at the provider it
// does so from the first moment on, before the engine's view can have shown the object as it was sent.
func fightingController(w *world, s specimen) {
	if w.kind.WriteOnly() {
		w.put(s.make("fought-over"))
		w.converged("fought-over")
		w.ledgerKept()
	}
	const manager = "fighter"
	began, start := time.Now(), env.Milan.Recorder.Now(w)
	ctx, stop := context.WithCancel(w.Context())
	defer stop()
	var rounds atomic.Int32
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		before := w.remote(ctx, "fought-over")
		if before == nil {
			return
		}
		after := before.DeepCopyObject().(reflection.Object)
		if s.drift(after); !apiequality.Semantic.DeepEqual(before, after) && env.Milan.Client.Update(ctx, after, client.FieldOwner(manager)) == nil {
			rounds.Add(1)
		}
	}, 10*time.Millisecond)
	if !w.kind.WriteOnly() {
		w.put(s.make("fought-over"))
	}
	w.told(offloadingv1beta1.ReasonRemoteChangeReverted, fmt.Sprintf("changed by field manager %q", manager))
	w.told(offloadingv1beta1.ReasonContended)
	w.problem("fought-over", offloadingv1beta1.ReasonContended)
	// The fighter may be told of its success after the Event is there.
	fixture.Await(w, fixture.Patience, "the fighter to know of two of its writes", func(context.Context) (bool, string) {
		return rounds.Load() >= 2, fmt.Sprint(rounds.Load())
	})
	writes := w.writes(start, "fought-over")
	if most := 2 * (1 + int(time.Since(began)/time.Minute)); len(writes) > most || len(writes) == 0 {
		w.Errorf("%d writes in %d rounds, want at most %d: %v", len(writes), rounds.Load(), most, writes)
	}
	stop()
	w.editLocal("fought-over", s.update)
	w.converged("fought-over")
}
