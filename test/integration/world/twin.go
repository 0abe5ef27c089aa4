package world

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// GrantedSlice is the slice whose grant a tenant uses in its twins.
const GrantedSlice = "slice"

// Twin has the provider make a namespace for the tenant, and waits until the slice with that grant can use it.
func (c *Tenant) Twin(t *testing.T) string {
	t.Helper()
	c.at.simulateStorage(t)
	name := fixture.Unique("twin")
	m := &offloadingv1beta1.NamespaceMap{ObjectMeta: c.Marks("milan"), Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": name}}}
	fixture.Must(t, "creating a NamespaceMap", c.User.Create(t.Context(), m))
	fixture.Await(t, fixture.Patience, "the twin "+name, func(ctx context.Context) (bool, string) {
		err := c.User.Get(ctx, client.ObjectKeyFromObject(m), m)
		return err == nil && m.Status.CurrentMapping["shop"].Phase == offloadingv1beta1.MappingAccepted, fmt.Sprint(m.Status, err)
	})
	// The API server learns of the twin's bindings and of the count of its quota in the background, and the webhook of the grant.
	user := c.at.Milan.Slice(t, c.ID, GrantedSlice)
	fixture.Await(t, fixture.Patience, "the consumer's rights in the twin "+name, func(ctx context.Context) (bool, string) {
		marks := map[string]string{offloadingv1beta1.OriginLabel: c.ID, offloadingv1beta1.DestinationLabel: "milan"}
		data := Claim(name, "probe", fixture.SimulatedClass)
		data.Labels = marks
		var errs []error
		for _, probe := range []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "probe", Labels: marks}}, data,
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "probe", Labels: marks},
				Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}},
			c.Shadow(name, "probe", Container(func(*corev1.Container) {})),
		} {
			errs = append(errs, user.Create(ctx, probe, client.DryRunAll))
		}
		return errors.Join(errs...) == nil, fmt.Sprint(errs)
	})
	return name
}

// Shadow is a ShadowPod of the tenant.
func (c *Tenant) Shadow(namespace, name string, spec corev1.PodSpec) *offloadingv1beta1.ShadowPod {
	return &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		offloadingv1beta1.OriginLabel: c.ID, offloadingv1beta1.DestinationLabel: "milan"}},
		Spec: offloadingv1beta1.ShadowPodSpec{Pod: spec}}
}

// Container is a PodSpec as an honest virtual kubelet sends it, but for the change.
func Container(change func(*corev1.Container)) corev1.PodSpec {
	one := corev1.Container{Name: "a", Image: "b"}
	change(&one)
	return corev1.PodSpec{Containers: []corev1.Container{one}, AutomountServiceAccountToken: ptr.To(false)}
}

// Quantities are pairs of the name of a resource and how much of it.
func Quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
