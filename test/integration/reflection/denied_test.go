package reflection

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// deny has an admission policy of the provider refuse ConfigMaps of the twin with a key; it gives no reason, so the answer is that
// of an invalid object. It returns how to lift it.
func (w *world) deny(key, words string) (lift func()) {
	w.Helper()
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.twin},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.twin}},
				ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}}},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("!(%q in object.?data.orValue({}))", key), Message: words}},
		}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.twin},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: w.twin,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}}
	for _, object := range []client.Object{policy, binding} {
		fixture.Must(w, "creating an admission policy at the provider", env.Milan.Client.Create(w.Context(), object))
		w.Cleanup(func() {
			if err := client.IgnoreNotFound(env.Milan.Client.Delete(context.WithoutCancel(w.Context()), object)); err != nil {
				w.Errorf("removing an admission policy: %v", err)
			}
		})
	}
	fixture.Await(w, fixture.Patience, "the policy at the provider to be effective", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.twin, Name: "probe"}, Data: map[string]string{key: ""}}, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), words), fmt.Sprint(err)
	})
	return func() {
		fixture.Must(w, "unbinding the policy", env.Milan.Client.Delete(w.Context(), binding))
	}
}

// D8: a policy of the provider denies one ConfigMap. The user reads its words, once; the others cross, it is asked
// for with growing pauses, and the ConfigMap crosses by itself when the policy is gone.
func TestD8DeniedByAPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "configmap")
	lift := w.deny("password", "passwords do not belong into ConfigMaps")
	start, began := env.Milan.Recorder.Now(t), time.Now()
	w.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "denied"}, Data: map[string]string{"password": "x"}})
	w.told("passwords do not belong into ConfigMaps")
	w.problem("denied", "Forbidden")
	w.put(specimens["configmap"].make("other"))
	w.converged("other")
	end := time.Now().Add(10 * time.Second)
	fixture.Await(t, fixture.Patience, "some time to pass", func(context.Context) (bool, string) { return time.Now().After(end), "it passes" })
	tries := 0
	for _, write := range env.Milan.Recorder.RefusedSince(t, start, func(user string) bool { return user == identity.SliceUser(home, sliceName) }) {
		if write.Namespace == w.twin && write.Resource == "configmaps" {
			tries++
		}
	}
	// After 0, 1, 3, 7, 15 seconds, and so on.
	most := bits.Len(uint(time.Since(began)/time.Second) + 1)
	if told := strings.Count(w.events.all(), "passwords do not belong"); tries > most || told != 1 {
		t.Errorf("it was tried %d times, want at most %d, and told %d times:\n%s", tries, most, told, w.events.all())
	}
	lift()
	fixture.Await(t, 3*fixture.Patience, "the ConfigMap to cross by itself", func(ctx context.Context) (bool, string) {
		return w.remote(ctx, "denied") != nil, fmt.Sprint(w.engine.Problems())
	})
	w.converged("denied")
}
