package offloading

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// nodeThief holds a stolen identity of the virtual node.
func nodeThief(t *testing.T, node string) *fixture.User {
	t.Helper()
	return env.Rome.As(t, "system:node:"+node, "system:nodes")
}

// S13: a stolen identity of a virtual kubelet as a node makes no mirror pods, by which it would join any Service; nor does it get at the
// same by the labels of its own pods, by devices or by CSI drivers.
func TestAStolenNodeJoinsNoService(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	namespace := env.Offloaded(t)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fixture.Unique("dns")},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"k8s-app": "dns-of-the-test"}, Ports: []corev1.ServicePort{{Port: 53}}}}
	fixture.Must(t, "creating a Service of the consumer's own", env.Rome.Client.Create(t.Context(), service))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "mine")))
	world.AwaitPods(t, env.Rome, namespace, 1)
	mine, thief, node := &corev1.Pod{}, nodeThief(t, virtual), &corev1.Node{}
	fixture.Must(t, "reading the pod", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "mine"}, mine))
	fixture.Must(t, "reading the Node", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: virtual}, node))
	mirror := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fixture.Unique("mirror"), Labels: map[string]string{"k8s-app": "dns-of-the-test"},
			Annotations:     map[string]string{corev1.MirrorPodAnnotationKey: "x"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: ptr.To(true)}}},
			Spec: corev1.PodSpec{NodeName: virtual, Containers: []corev1.Container{{Name: "a", Image: "b"}}, AutomountServiceAccountToken: ptr.To(false)}}
	}
	label := `{"metadata":{"labels":{"k8s-app":"dns-of-the-test"}},"status":{"podIP":"203.0.113.66"}}`
	for what, try := range map[string]func(context.Context) error{
		"a mirror pod in kube-system":              func(ctx context.Context) error { return thief.Create(ctx, mirror("kube-system")) },
		"a mirror pod in the offloaded namespace":  func(ctx context.Context) error { return thief.Create(ctx, mirror(namespace)) },
		"a label with the status of its own pod":   world.Patched(thief, mine, label),
		"an annotation with the status of its pod": world.Patched(thief, mine, `{"metadata":{"annotations":{"a":"b"}}}`),
		"CSI drivers on its node": func(ctx context.Context) error {
			return thief.Create(ctx, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: virtual}})
		},
	} {
		fixture.Await(t, fixture.Patience, "the refusal of "+what, func(ctx context.Context) (bool, string) {
			err := try(ctx)
			if err == nil {
				t.Fatalf("S13: the virtual node's identity made %s", what)
			}
			return apierrors.IsForbidden(err) || apierrors.IsInvalid(err), err.Error()
		})
	}
	slices := &discoveryv1.EndpointSliceList{}
	fixture.Must(t, "listing the Service's endpoints", env.Rome.Client.List(t.Context(), slices, client.InNamespace("kube-system"), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}))
	for i := range slices.Items {
		if len(slices.Items[i].Endpoints) > 0 {
			t.Errorf("S13: Service kube-system/%s has endpoints: %v", service.Name, slices.Items[i].Endpoints)
		}
	}
	// What the virtual kubelet does itself goes on.
	world.Answer(t, "the status of its own pod", "", world.Patched(thief, mine, `{"status":{"message":"x"}}`))
}

// S18: a stolen identity of a virtual node does not change its Node, so that it draws no pods that are for another provider, and reads none
// of their Secrets. It has the same answer when somebody deleted the Node: it does not make a Node of its own.
func TestAStolenNodeDrawsNoPodsOfOthers(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	namespace := fixture.Unique("for-turin")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "jewel"}, StringData: map[string]string{"a": "b"}}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, secret} {
		fixture.Must(t, "preparing rome", env.Rome.Client.Create(t.Context(), o))
	}
	env.Rome.AwaitServiceAccount(t, namespace)
	// What liqo-placement makes of a pod whose namespace is offloaded to cluster turin alone.
	victim := world.Pod(namespace, "web")
	victim.Spec.Tolerations = []corev1.Toleration{placement.VirtualNodeToleration()}
	victim.Spec.NodeSelector = map[string]string{"liqo.io/remote-cluster-id": "turin-the-trusted"}
	victim.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "jewel"}}}}
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), victim))
	defer func() { _ = env.Rome.Client.Delete(context.Background(), victim, client.GracePeriodSeconds(0)) }()
	thief := nodeThief(t, virtual)
	own := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: virtual}}
	relabel := []byte(`{"metadata":{"labels":{"liqo.io/remote-cluster-id":"turin-the-trusted"}}}`)
	patch := func(kind types.PatchType, body string) func(context.Context) error {
		return func(ctx context.Context) error {
			return thief.Patch(ctx, own.DeepCopy(), client.RawPatch(kind, []byte(body)))
		}
	}
	for what, try := range map[string]func(context.Context) error{
		"a label by a merge patch": patch(types.MergePatchType, string(relabel)),
		"a label by a JSON patch":  patch(types.JSONPatchType, `[{"op":"replace","path":"/metadata/labels/liqo.io~1remote-cluster-id","value":"turin-the-trusted"}]`),
		"a label with the status": func(ctx context.Context) error {
			return thief.Status().Patch(ctx, own.DeepCopy(), client.RawPatch(types.MergePatchType, relabel))
		},
		"an annotation":                patch(types.MergePatchType, `{"metadata":{"annotations":{"a":"b"}}}`),
		"the end of its own cordon":    patch(types.MergePatchType, `{"spec":{"unschedulable":false,"providerID":"x"}}`),
		"a Node of its own making":     func(ctx context.Context) error { return thief.Create(ctx, own.DeepCopy(), client.DryRunAll) },
		"the deletion of its own Node": func(ctx context.Context) error { return thief.Delete(ctx, own.DeepCopy(), client.DryRunAll) },
	} {
		fixture.Await(t, fixture.Patience, "the refusal of "+what, func(ctx context.Context) (bool, string) {
			err := try(ctx)
			if err == nil {
				t.Fatalf("S18: the virtual node's identity wrote %s", what)
			}
			return apierrors.IsForbidden(err), err.Error()
		})
	}
	live := &corev1.Pod{}
	fixture.Must(t, "reading the pod", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(victim), live))
	if live.Spec.NodeName != "" {
		t.Errorf("S18: the pod that is for turin runs on %s", live.Spec.NodeName)
	}
	if thief.Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{}) == nil {
		t.Errorf("S18: the virtual node reads Secret %s/jewel, which is for cluster turin alone", namespace)
	}
}

// S15: the controller manager has no right to Secrets elsewhere, and does not give it to itself: by a binding for all namespaces, by one in
// a namespace of others, by a namespace that it makes its own, or by a virtual kubelet of its own making.
func TestTheManagerDoesNotEmpowerItself(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	manager := env.Milan.As(t, "system:serviceaccount:liqo:liqo-controller-manager", "system:serviceaccounts", "system:serviceaccounts:liqo")
	if err := manager.List(t.Context(), &corev1.SecretList{}, client.InNamespace("kube-system")); err == nil {
		t.Error("control: it reads Secrets of kube-system anyway")
	}
	private := fixture.Unique("payroll")
	fixture.Must(t, "making a private namespace", env.Milan.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: private}}))
	itself := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "liqo", Name: "liqo-controller-manager"}
	puppet := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "liqo-tenant-puppet", Name: "puppet"}
	tries := map[string]client.Object{}
	for _, role := range []string{"liqo-controller-manager-twin", "liqo-controller-manager-tenant", "liqo-virtual-kubelet-local"} {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		for subject, who := range map[string]rbacv1.Subject{"itself": itself, "a puppet": puppet} {
			tries[role+" everywhere for "+subject] = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("self")}, RoleRef: ref, Subjects: []rbacv1.Subject{who}}
			for _, namespace := range []string{"kube-system", "liqo", private} {
				tries[role+" in "+namespace+" for "+subject] = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("self"), Namespace: namespace,
					Labels: map[string]string{"offloading.liqo.io/component": "reflection"}}, RoleRef: ref, Subjects: []rbacv1.Subject{who}}
			}
		}
	}
	for what, object := range tries {
		fixture.Await(t, fixture.Patience, "the refusal of "+what, func(ctx context.Context) (bool, string) {
			err := manager.Create(ctx, object.DeepCopyObject().(client.Object))
			if err == nil {
				t.Fatalf("S15: the controller manager bound %s", what)
			}
			return apierrors.IsForbidden(err) || apierrors.IsInvalid(err), err.Error()
		})
	}
	for what, patch := range map[string]string{
		"a tenant's":   `{"metadata":{"labels":{"liqo.io/tenant-namespace":"true","liqo.io/remote-cluster-id":"puppet"}}}`,
		"a twin":       `{"metadata":{"annotations":{"liqo.io/managed-by-namespace-map":"liqo-tenant-puppet/puppet"}}}`,
		"unprivileged": `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`,
	} {
		err := manager.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: private}}, client.RawPatch(types.MergePatchType, []byte(patch)))
		if !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), "NamespaceNotAllowed") {
			t.Errorf("S15: making the namespace %s: %v", what, err)
		}
	}
	for _, namespace := range []string{"kube-system", "default", private} {
		if err := manager.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
			t.Errorf("S15: the controller manager reads the Secrets of %s: %v", namespace, err)
		}
	}
}
