package gateway

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/tenantnamespace"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/networking/template"
)

// place finds the peer that the gateway is for, by its namespace.
func (r *reconciler) place(ctx context.Context, s *scope) error {
	namespace := &corev1.Namespace{}
	if err := r.Get(ctx, client.ObjectKey{Name: s.gateway.GetNamespace()}, namespace); err != nil {
		return fmt.Errorf("reading Namespace %s: %w", s.gateway.GetNamespace(), err)
	}
	peer, err := PeerOf(namespace, s.gateway)
	if err != nil {
		return reconcile.Refuse(networkingv1beta1.ReasonGatewayMisplaced, err)
	}
	s.peer = peer
	return nil
}

// PeerOf is the peer that a gateway in a namespace is for.
func PeerOf(namespace *corev1.Namespace, gateway client.Object) (string, error) {
	const label = corev1beta1.RemoteClusterIDLabel
	peer, said := namespace.Labels[label], gateway.GetLabels()[label]
	switch {
	case namespace.Labels[corev1beta1.TenantNamespaceLabel] != "true":
		return "", fmt.Errorf("namespace %s is not the tenant namespace of a peer: gateways run nowhere else", namespace.Name)
	case tenantnamespace.WhyNotTenantNamespace(namespace) != "":
		return "", fmt.Errorf("namespace %s: %s", namespace.Name, tenantnamespace.WhyNotTenantNamespace(namespace))
	case said != peer:
		return "", fmt.Errorf("its label %s is %q, and namespace %s is that of cluster %q: correct the label", label, said, namespace.Name, peer)
	}
	return peer, nil
}

// render makes of the gateway what its template says, and keeps it so.
func (r *reconciler) render(ctx context.Context, s *scope) error {
	from, err := r.templateOf(s.gateway.templateRef)
	if err != nil {
		return err
	}
	data := template.Data{
		Name: s.gateway.GetName(), Namespace: s.gateway.GetNamespace(), ClusterID: s.peer, GatewayUID: string(s.gateway.GetUID()), SecretName: s.secret,
	}
	want, wrong, err := r.side.render(ctx, r.Client, from, s.gateway, data)
	switch {
	case apierrors.IsNotFound(err):
		wrong = fmt.Errorf("there is no %s %s", r.side.template, from)
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", r.side.template, from, err)
	case wrong != nil:
		wrong = fmt.Errorf("the gateway cannot be rendered from %s %s: %w", r.side.template, from, wrong)
	}
	if wrong != nil {
		s.invalid = reconcile.Terminate(networkingv1beta1.ReasonTemplateInvalid, wrong)
		return r.lookUp(ctx, s)
	}
	want.SetLabels(over(want.GetLabels(), s.labels()))
	owner := s.controlledBy(s.gateway.Object, r.side.gateway)
	kept, err := r.keep(ctx, want.Object, owner)
	if err != nil {
		return err
	}
	s.rendered = viewRendered(kept)
	return nil
}

// templateOf is the template that a gateway is rendered from.
func (r *reconciler) templateOf(ref corev1.ObjectReference) (client.ObjectKey, error) {
	if ref.Name == "" {
		return client.ObjectKey{Namespace: r.Namespace, Name: r.side.defaultTemplate}, nil
	}
	version := networkingv1beta1.GroupVersion.String()
	if cmp.Or(ref.Kind, r.side.template) != r.side.template || cmp.Or(ref.APIVersion, version) != version {
		return client.ObjectKey{}, reconcile.Terminate(networkingv1beta1.ReasonTemplateInvalid,
			fmt.Errorf("a %s is rendered from a %s of %s, not from a %s of %s", r.side.gateway, r.side.template, version, ref.Kind, ref.APIVersion))
	}
	return client.ObjectKey{Namespace: cmp.Or(ref.Namespace, r.Namespace), Name: ref.Name}, nil
}

// lookUp fills in what the gateway was rendered to before: it runs on.
func (r *reconciler) lookUp(ctx context.Context, s *scope) error {
	live := r.side.newRendered().Object
	err := r.Get(ctx, client.ObjectKeyFromObject(s.gateway), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", r.side.rendered, client.ObjectKeyFromObject(s.gateway), err)
	}
	if err != nil || !metav1.IsControlledBy(live, s.gateway) {
		return s.invalid
	}
	s.rendered = viewRendered(live)
	return nil
}

// labels are those of all that a gateway is made of.
func (s *scope) labels() map[string]string {
	return map[string]string{
		corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: s.peer,
		networkingv1beta1.GatewayComponentLabel: networkingv1beta1.GatewayComponent, networkingv1beta1.GatewayNameLabel: s.gateway.GetName(),
	}
}

// controlledBy is the reference of an owner of one of our kinds.
func (s *scope) controlledBy(owner client.Object, kind string) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, networkingv1beta1.GroupVersion.WithKind(kind))
}
