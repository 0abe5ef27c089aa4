package gateway

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// partRetry is how soon a gateway is looked at again of which something is missing; what changes wakes us earlier.
const partRetry = 30 * time.Second

// part is the metadata of what a gateway is made of.
func (s *scope) part(more metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: s.gateway.GetNamespace(), Name: networkingv1beta1.GatewayPrefix + s.gateway.GetName(),
		Labels: over(more.Labels, s.labels()), Annotations: more.Annotations,
	}
}

// account gives the gateway its ServiceAccount and its rights.
func (r *reconciler) account(ctx context.Context, s *scope) error {
	meta := s.part(metav1.ObjectMeta{})
	owner := s.controlledBy(s.rendered.Object, r.side.rendered)
	for _, want := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: Rules(r.side.resource, s.gateway.GetName())},
		&rbacv1.RoleBinding{
			ObjectMeta: *meta.DeepCopy(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
		},
	} {
		if _, err := r.keep(ctx, want, owner); err != nil {
			return err
		}
	}
	return nil
}

// Rules are what a gateway may do in its namespace, which is that of its peer alone: read itself and what is known of the peer, and tell of its
// tunnel.
func Rules(resource, gateway string) []rbacv1.PolicyRule {
	groups, names := []string{networkingv1beta1.GroupVersion.Group}, []string{gateway}
	return []rbacv1.PolicyRule{
		{APIGroups: groups, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get", "list", "watch"}},
		// They stand for the peer by a label, of which RBAC knows nothing; users name them as they like.
		{APIGroups: groups, Resources: []string{"configurations", "publickeies"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: groups, Resources: []string{"connections"}, ResourceNames: names, Verbs: []string{"get", "list", "watch", "update", "patch"}},
		// RBAC cannot tell by its name who may create an object.
		{APIGroups: groups, Resources: []string{"connections"}, Verbs: []string{"create"}},
		{APIGroups: groups, Resources: []string{"connections/status"}, ResourceNames: names, Verbs: []string{"get", "update", "patch"}},
	}
}

// run has the gateway's pods run, and, where the peer comes here, reached.
func (r *reconciler) run(ctx context.Context, s *scope) error {
	owner := s.controlledBy(s.rendered.Object, r.side.rendered)
	if template := s.rendered.service; template != nil {
		kept, err := r.keep(ctx, &corev1.Service{ObjectMeta: s.part(template.ObjectMeta), Spec: *template.Spec.DeepCopy()}, owner)
		if err != nil {
			return err
		}
		s.service = kept.(*corev1.Service)
	}
	template := s.rendered.deployment
	deployment := &appsv1.Deployment{ObjectMeta: s.part(template.ObjectMeta), Spec: *template.Spec.DeepCopy()}
	pod := &deployment.Spec.Template
	pod.Labels = over(pod.Labels, s.labels())
	// The account is the one that has the rights.
	pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = deployment.Name, ""
	_, err := r.keep(ctx, deployment, owner)
	return err
}

// find finds the pod that has the tunnel. It comes before all that may be wrong with the gateway: nodes must not keep the address of a pod that
// another one has taken the place of.
func (r *reconciler) find(ctx context.Context, s *scope) error {
	var pods corev1.PodList
	mine := client.MatchingLabels{networkingv1beta1.GatewayNameLabel: s.gateway.GetName()}
	if err := r.Pods.List(ctx, &pods, client.InNamespace(s.gateway.GetNamespace()), mine); err != nil {
		return fmt.Errorf("listing the pods of %s %s: %w", r.side.gateway, client.ObjectKeyFromObject(s.gateway), err)
	}
	s.pods, s.active = pods.Items, ActivePod(pods.Items, *s.gateway.status.internal)
	if s.active != nil {
		s.internal = &networkingv1beta1.InternalGatewayEndpoint{
			IP: ptr.To(networkingv1beta1.IP(s.active.Status.PodIP)), Node: ptr.To(s.active.Spec.NodeName),
		}
	}
	return nil
}

// observe finds out where the peer reaches the gateway, and says what is missing.
func (r *reconciler) observe(ctx context.Context, s *scope) error {
	missing, host := "", ""
	if s.active != nil {
		host = s.active.Spec.NodeName
	}
	if s.service != nil {
		var nodes corev1.NodeList
		if s.service.Spec.Type == corev1.ServiceTypeNodePort {
			if err := r.List(ctx, &nodes); err != nil {
				return fmt.Errorf("listing the nodes: %w", err)
			}
		}
		s.endpoint, missing = Endpoint(s.service, nodes.Items, host)
	}
	if s.active == nil || !podReady(s.active) {
		why, err := r.explain(ctx, s)
		if err != nil {
			return err
		}
		return reconcile.Wait(networkingv1beta1.ReasonGatewayPodPending, why, partRetry)
	}
	if s.service != nil && s.endpoint == nil {
		return reconcile.Wait(networkingv1beta1.ReasonEndpointPending, "the peer cannot reach the gateway: "+missing, partRetry)
	}
	return nil
}

// explain says why no pod of the gateway is ready.
func (r *reconciler) explain(ctx context.Context, s *scope) (string, error) {
	const waiting = "waiting for a pod of the gateway to be ready"
	if why := WhyNoPod(s.pods); why != "" {
		return waiting + ": " + why, nil
	}
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: s.gateway.GetNamespace(), Name: networkingv1beta1.GatewayPrefix + s.gateway.GetName()}
	if err := r.Pods.Get(ctx, key, deployment); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return waiting + ", which cannot be made: " + c.Message, nil
		}
	}
	return waiting, nil
}
