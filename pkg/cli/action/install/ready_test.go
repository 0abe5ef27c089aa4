package install_test

import (
	"errors"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
)

// An installation has not succeeded while the API server refuses for a kind of ours that it has not found yet. What else it says of the object that
// it is tried with is no reason to wait.
func TestTheAPIServerKnowsOurKinds(t *testing.T) {
	const policy, kind = "ValidatingAdmissionPolicy 'liqo-controller-manager-offloaded' denied request: failed to configure ",
		"'offloading.liqo.io/v1beta1, Kind=NamespaceOffloading'"
	refused := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}, "probe", errors.New(text))
	}
	unknown := refused(policy + "policy: failed to find resource referenced by paramKind: " + kind)
	known := refused(policy + "binding: no params found for policy binding with `Deny` parameterNotFoundAction")
	for sentence, test := range map[string]struct {
		// answers come one after the other, the last one again and again.
		answers []error
		asked   int32
		code    failure.Code
		want    []string
	}{
		"it knows them":                       {[]error{known}, 1, 0, nil},
		"it finds them, and then reads them":  {[]error{unknown, refused(policy + "binding: paramKind kind `" + kind + "` not yet synced to use for admission"), known}, 3, 0, nil},
		"it does not answer at first":         {[]error{errors.New("connection refused"), unknown, known}, 3, 0, nil},
		"the policy is not installed":         {[]error{nil}, 1, 0, nil},
		"the user may not make RoleBindings":  {[]error{refused(`User "jane" cannot create resource "rolebindings"`)}, 1, 0, nil},
		"a policy of others lacks its kind":   {[]error{refused("ValidatingAdmissionPolicy 'theirs' denied request: failed to find resource referenced by paramKind: 'x'")}, 1, 0, nil},
		"the role is not there to be bound":   {[]error{apierrors.NewNotFound(schema.GroupResource{Resource: "clusterroles"}, "x")}, 1, 0, nil},
		"it never finds them in all the time": {[]error{unknown}, 0, failure.Timeout, []string{"timed out waiting for the API server to know the kinds", "pods of offloaded namespaces", kind}},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", DryRun: func(object client.Object) error {
				if _, binding := object.(*rbacv1.RoleBinding); !binding {
					return nil
				}
				return test.answers[min(int(asked.Add(1)), len(test.answers))-1]
			}})
			waits(t, cluster.Cluster, test.code, test.want)
			if got := asked.Load(); test.asked != 0 && got != test.asked {
				t.Errorf("asked %d times, want %d", got, test.asked)
			}
			if writes := cluster.Writes(); len(writes) > 0 {
				t.Errorf("waiting wrote %v", writes)
			}
		})
	}
}
