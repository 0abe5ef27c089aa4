package target

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/pkg/cli/failure"
)

// Right is something that the user must be allowed to do.
type Right struct {
	// Verb, API Group and Resource of the request.
	Verb, Group, Resource string
	// Namespace of the request; empty for all of them and for resources without one.
	Namespace string
}

// String says the right as kubectl auth can-i takes it.
func (r Right) String() string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Namespace == "" {
		return r.Verb + " " + resource
	}
	return fmt.Sprintf("%s %s in namespace %s", r.Verb, resource, r.Namespace)
}

// Rights returns the combinations of verbs with one resource in one namespace.
func Rights(group, resource, namespace string, verbs ...string) []Right {
	rights := make([]Right, 0, len(verbs))
	for _, verb := range verbs {
		rights = append(rights, Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace})
	}
	return rights
}

// Missing returns those of the rights that the user does not have.
func (c *Cluster) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	var missing []Right
	for _, right := range rights {
		review, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: right.Verb, Group: right.Group, Resource: right.Resource, Namespace: right.Namespace,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking whether you may %s (cluster %s): %w", right, c.Name, err)
		}
		if !review.Status.Allowed {
			missing = append(missing, right)
		}
	}
	return missing, nil
}

// RequireRights is an unmet precondition, which names every missing right, unless the user has all of them.
func (c *Cluster) RequireRights(ctx context.Context, rights []Right) error {
	missing, err := c.Missing(ctx, rights)
	if err != nil || len(missing) == 0 {
		return err
	}
	words := make([]string, len(missing))
	for i, right := range missing {
		words[i] = right.String()
	}
	return failure.Unmet("ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs",
		"you are not allowed to: %s (cluster %s)", strings.Join(words, "; "), c.Name)
}
