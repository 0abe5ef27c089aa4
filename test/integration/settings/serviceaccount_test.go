package settings

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// asAccount are the chart's values of a cluster whose control plane signs no certificates of nodes.
var asAccount = map[string]any{"virtualKubelet": map[string]any{"nodeIdentity": "serviceAccount"}}

// becomeAccount turns rome's virtual kubelet from a node into a ServiceAccount. The returned function turns it back.
func becomeAccount(t *testing.T, w *world.Peering) (back func()) {
	t.Helper()
	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	w.Rome.Reconfigure(t, nil, asAccount)
	binding := client.ObjectKey{Name: "liqo-virtual-account:" + w.Node}
	fixture.Await(t, fixture.Patience, "the rights of the virtual kubelet", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, binding, &rbacv1.ClusterRoleBinding{})
		return err == nil, fmt.Sprint(err)
	})
	args, unused := slices.Clone(w.Kubelet.Args), filepath.Join(env.Environment.Dir, "unused")
	w.Kubelet.Args = append(w.Kubelet.Args, "--node-identity=serviceAccount", "--certificate-dir="+unused)
	w.Kubelet.Start(t)
	return func() {
		if _, err := os.Stat(unused); !os.IsNotExist(err) {
			t.Errorf("the virtual kubelet wrote keys: %v", err)
		}
		fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
		w.Rome.Reconfigure(t, asAccount, nil)
		fixture.Await(t, fixture.Patience, "the rights to be gone", func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Get(ctx, binding, &rbacv1.ClusterRoleBinding{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
		w.Kubelet.Args = args
		w.Kubelet.Start(t)
	}
}

// N9: where the kubelet signer is not offered, the virtual kubelet works with its ServiceAccount, and that account can do what
// a node can, for its own node, and nothing more.
func TestVirtualKubeletAsServiceAccount(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	defer becomeAccount(t, w)()
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "mine")))
	world.AwaitPods(t, env.Rome, namespace, 1)
	mine, elsewhere := &corev1.Pod{}, world.Pod(namespace, "elsewhere")
	fixture.Must(t, "reading the pod", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "mine"}, mine))
	nodes := &corev1.NodeList{}
	fixture.Must(t, "listing nodes", env.Rome.Client.List(t.Context(), nodes))
	other := nodes.Items[slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return n.Name != w.Node })].Name
	elsewhere.Spec.NodeName = other
	fixture.Must(t, "creating a pod on another node", env.Rome.Client.Create(t.Context(), elsewhere))
	account := env.Environment.Account(t, env.Rome, fixture.ConsumerNamespace, w.Node)

	confined(t, account, mine, elsewhere)
	boundToTheNode(t, account, w.Node, other)
	tokens(t, account, mine, elsewhere)

	// A pod that is deleted ends here and there.
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), mine))
	for _, c := range []*fixture.Cluster{env.Rome, env.Milan} {
		fixture.Await(t, fixture.Patience, "the pod to go at "+c.ID, func(ctx context.Context) (bool, string) {
			err := c.Client.Get(ctx, client.ObjectKeyFromObject(mine), &corev1.Pod{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
	fixture.Must(t, "deleting the other pod", env.Rome.Client.Delete(t.Context(), elsewhere))
}

func confined(t *testing.T, account *fixture.User, mine, elsewhere *corev1.Pod) {
	t.Helper()
	for what, tc := range map[string]struct {
		want string
		try  func(context.Context) error
	}{
		"the status of its own pod":              {"", world.Patched(account, mine, `{"status":{"message":"x"}}`)},
		"the status of a pod on another node":    {"NotYourPod", world.Patched(account, elsewhere, `{"status":{"phase":"Failed"}}`)},
		"a label with the status of its own pod": {"StatusOnly", world.Patched(account, mine, `{"metadata":{"labels":{"app":"victim"}}}`)},
		"the label of pods on virtual nodes":     {"", world.Patched(account, mine, `{"metadata":{"labels":{"liqo.io/shadowPod":"true"}}}`)},
		"that label taken with the status":       {"StatusOnly", world.Patched(account, mine, `{"metadata":{"labels":{"liqo.io/shadowPod":null}}}`)},
		"that label on another node's pod":       {"NotYourPod", world.Patched(account, elsewhere, `{"metadata":{"labels":{"liqo.io/shadowPod":"true"}}}`)},
		"a finalizer taken with the status":      {"StatusOnly", world.Patched(account, mine, `{"metadata":{"finalizers":["example.org/x"]}}`)},
		"the deletion of a pod on another node":  {"NotYourPod", func(ctx context.Context) error { return account.Delete(ctx, elsewhere.DeepCopy(), client.DryRunAll) }},
		"the deletion of its own pod":            {"", func(ctx context.Context) error { return account.Delete(ctx, mine.DeepCopy(), client.DryRunAll) }},
		"a pod": {"cannot create", func(ctx context.Context) error {
			return account.Create(ctx, world.Pod(mine.Namespace, "new"), client.DryRunAll)
		}},
		"Secrets of the cluster": {"cannot list", func(ctx context.Context) error { return account.List(ctx, &corev1.SecretList{}) }},
		"Secrets of a namespace that stays at home": {"cannot list", func(ctx context.Context) error {
			return account.List(ctx, &corev1.SecretList{}, client.InNamespace("kube-system"))
		}},
	} {
		world.Answer(t, what, tc.want, tc.try)
	}
}

func boundToTheNode(t *testing.T, account *fixture.User, node, other string) {
	t.Helper()
	named := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: fixture.Unique("lease")}}
	for what, tc := range map[string]struct {
		want string
		try  func(context.Context) error
	}{
		"the status of its own Node": {"", world.Patched(account, named(node), `{"status":{"phase":"Running"}}`)},
		"a label with that status":   {"StatusOnly", world.Patched(account, named(node), `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`)},
		"the status of another Node": {"cannot patch", world.Patched(account, named(other), `{"status":{"phase":"Running"}}`)},
		"another Node": {"cannot get", func(ctx context.Context) error {
			return account.Get(ctx, client.ObjectKey{Name: other}, &corev1.Node{})
		}},
		"the deletion of its own Node": {"cannot delete", func(ctx context.Context) error { return account.Delete(ctx, named(node), client.DryRunAll) }},
		"a lease of another name":      {"NotYourNode", func(ctx context.Context) error { return account.Create(ctx, lease.DeepCopy(), client.DryRunAll) }},
		"the lease of another Node": {"cannot get", func(ctx context.Context) error {
			return account.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: other}, lease.DeepCopy())
		}},
		"an election in its own namespace": {"", func(ctx context.Context) error {
			own := lease.DeepCopy()
			own.Namespace = fixture.ConsumerNamespace
			return account.Create(ctx, own, client.DryRunAll)
		}},
	} {
		world.Answer(t, what, tc.want, tc.try)
	}
}

func tokens(t *testing.T, account *fixture.User, mine, elsewhere *corev1.Pod) {
	t.Helper()
	reference := func(pod *corev1.Pod) *authenticationv1.BoundObjectReference {
		return &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	noUID, secret := reference(mine), reference(mine)
	noUID.UID, secret.Kind = "", "Secret"
	wrongUID := reference(mine)
	wrongUID.UID = elsewhere.UID
	for what, tc := range map[string]struct {
		namespace, want string
		bound           *authenticationv1.BoundObjectReference
	}{
		"a token for its own pod":   {mine.Namespace, "", reference(mine)},
		"a token for no pod":        {mine.Namespace, "UnboundToken", nil},
		"a token bound to a Secret": {mine.Namespace, "UnboundToken", secret},
		// Two policies refuse it; which of them answers is not said.
		"a token for its own pod without UID":          {mine.Namespace, "UnboundToken|NotYourPod", noUID},
		"a token for its own pod with another's UID":   {mine.Namespace, "NotYourPod", wrongUID},
		"a token for a pod on another node":            {mine.Namespace, "NotYourPod", reference(elsewhere)},
		"a token of a namespace that is not offloaded": {"kube-system", "cannot create", reference(mine)},
	} {
		world.Answer(t, what, tc.want, func(ctx context.Context) error {
			_, err := account.Kube.CoreV1().ServiceAccounts(tc.namespace).CreateToken(ctx, "default",
				&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: tc.bound}}, metav1.CreateOptions{})
			return err
		})
	}
}
