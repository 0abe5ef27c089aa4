package replication

import (
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/test/fakeapi"
)

// A refusal of the provider is left alone for a minute. One that is over in a moment must not be taken for one: every peering begins
// with it where the provider's quota is new.
func TestExplain(t *testing.T) {
	slices := schema.GroupResource{Group: authv1beta1.GroupVersion.Group, Resource: "resourceslices"}
	forbidden := func(why string) error { return apierrors.NewForbidden(slices, "milan", errors.New(why)) }
	for name, tc := range map[string]struct {
		err     error
		allowed bool
		class   reconcile.Class
		reason  string
	}{
		"a quota that was not counted yet": {forbidden("status unknown for quota: liqo, resources: count/resourceslices.authentication.liqo.io"), true,
			reconcile.Transient, reconcile.ReasonTransient},
		"a quota that is used up":  {forbidden("exceeded quota: liqo, requested: count/resourceslices.authentication.liqo.io=1, used: 128"), true, reconcile.Refused, authv1beta1.ReasonRefusedByProvider},
		"rights that are gone":     {forbidden("no"), false, reconcile.Refused, authv1beta1.ReasonUnauthorized},
		"no namespace":             {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "liqo-tenant-rome"), true, reconcile.Refused, authv1beta1.ReasonRemoteNamespaceMissing},
		"a certificate of nobody":  {apierrors.NewUnauthorized("no"), true, reconcile.Refused, authv1beta1.ReasonUnauthorized},
		"a provider that is tired": {apierrors.NewServiceUnavailable("no"), true, reconcile.Transient, reconcile.ReasonTransient},
	} {
		t.Run(name, func(t *testing.T) {
			kube := kubefake.NewClientset()
			fakeapi.React(&kube.Fake, "create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: tc.allowed}}, nil
			})
			f := &reflector{target: target{clusterID: "milan", remoteNamespace: "liqo-tenant-rome"}}
			got := f.explain(t.Context(), &pass{clients: peer.Clients{Kube: kube}}, "create", tc.err)
			if class, reason := reconcile.Classify(got), reconcile.ReasonOf(got); class != tc.class || reason != tc.reason {
				t.Errorf("got %v, %s (%s), want %v, %s", got, class, reason, tc.class, tc.reason)
			}
		})
	}
}
