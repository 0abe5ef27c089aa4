package target

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/pkg/cli/failure"
)

const (
	// rightsAtOnce is how many rights are asked for at the same time.
	rightsAtOnce = 4
	// rightsNamed is how many missing rights a message names.
	rightsNamed = 10
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

// Missing returns those of the rights that the user does not have. Some are asked for at a time: a faraway API server takes its time
// for each.
func (c *Cluster) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	refused := make([]bool, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(rightsAtOnce)
	for i, right := range rights {
		group.Go(func() error {
			review, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: right.Verb, Group: right.Group, Resource: right.Resource, Namespace: right.Namespace,
				}},
			}, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("asking whether you may %s (cluster %s): %w", right, c.Name, err)
			}
			refused[i] = !review.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []Right
	for i, right := range rights {
		if refused[i] && !slices.Contains(missing, right) {
			missing = append(missing, right)
		}
	}
	return missing, nil
}

// RequireRights is an unmet precondition, which names the first missing rights, unless the user has all of them.
func (c *Cluster) RequireRights(ctx context.Context, rights []Right) error {
	missing, err := c.Missing(ctx, rights)
	if err != nil || len(missing) == 0 {
		return err
	}
	var words []string
	for _, right := range missing[:min(len(missing), rightsNamed)] {
		words = append(words, right.String())
	}
	if more := len(missing) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return failure.Unmet("ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs",
		"you are not allowed to: %s (cluster %s)", strings.Join(words, "; "), c.Name)
}
