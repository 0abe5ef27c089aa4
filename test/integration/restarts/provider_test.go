package restarts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// hostile stops milan's controllers, so that what the test writes there as the provider's administrator stays.
func hostile(t *testing.T, w *world.Peering) {
	t.Helper()
	fixture.Must(t, "stopping milan's controller manager", w.Milan.Stop())
}

// W1: a provider acknowledges namespaces that were never offloaded; nothing of them leaves.
func TestUnaskedMapping(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	loot := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("loot")}}
	for _, object := range append(fixture.TwinNamespace(loot.Name, "rome"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bait", Namespace: loot.Name}}) {
		fixture.Must(t, "preparing the loot", env.Milan.Client.Create(t.Context(), object))
	}
	private := fixture.Unique("private")
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: private}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "jewel", Namespace: private}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "jewel", Namespace: private}},
	} {
		fixture.Must(t, "making something private", env.Rome.Client.Create(t.Context(), object))
	}
	hostile(t, w)
	defer w.Milan.Start(t)
	remote := &offloadingv1beta1.NamespaceMap{}
	fixture.Must(t, "reading the NamespaceMap at milan", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ProviderNamespace, Name: "milan"}, remote))
	mapping := maps.Clone(remote.Status.CurrentMapping)
	for _, unasked := range []string{"kube-system", "default", fixture.Namespace, fixture.ConsumerNamespace, private} {
		mapping[unasked] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: loot.Name, Phase: offloadingv1beta1.MappingAccepted}
	}
	mark := offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: namespace, Phase: offloadingv1beta1.MappingAccepted, Message: fixture.Unique("mark")}
	mapping[namespace] = mark
	env.Lie(t, remote, map[string]any{"currentMapping": mapping})

	// The lie has arrived once the mark beside it has, and reflection has run once something honest crossed after that.
	local := &offloadingv1beta1.NamespaceMap{}
	fixture.Await(t, fixture.Patience, "the status to travel to rome", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: "milan"}, local)
		return err == nil && local.Status.CurrentMapping[namespace].Message == mark.Message, fmt.Sprint(local.Status, err)
	})
	crosses(t, namespace)
	configMaps, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	fixture.Must(t, "listing the loot", env.Milan.Client.List(t.Context(), configMaps, client.InNamespace(loot.Name)))
	fixture.Must(t, "listing the loot", env.Milan.Client.List(t.Context(), secrets, client.InNamespace(loot.Name)))
	var stolen []string
	for _, c := range configMaps.Items {
		if c.Name != "bait" && c.Name != "kube-root-ca.crt" && c.Name != offloadingv1beta1.SecretLedger {
			stolen = append(stolen, "ConfigMap "+c.Name)
		}
	}
	for _, s := range secrets.Items {
		stolen = append(stolen, "Secret "+s.Name)
	}
	if len(stolen) > 0 {
		t.Errorf("the provider got %v", stolen)
	}
}

// crosses makes a ConfigMap in an offloaded namespace and waits until it is at milan.
func crosses(t *testing.T, namespace string) {
	t.Helper()
	name := fixture.Unique("crosses")
	fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}))
	fixture.Await(t, fixture.Patience, "ConfigMap "+name+" to cross", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
		return err == nil, fmt.Sprint(err)
	})
}

// ourTaints leaves out those by which Kubernetes says how a node is, which come and go.
func ourTaints(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
		return strings.HasPrefix(taint.Key, "node.kubernetes.io/")
	})
}

// W5, W6: the provider's answer cannot move the consumer's clients elsewhere, nor make the virtual node what it is not.
func TestBadSliceStatus(t *testing.T) {
	w := env.Peered(t)
	local := &authv1beta1.ResourceSlice{}
	key := client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.Node}
	fixture.Must(t, "reading the ResourceSlice", env.Rome.Client.Get(t.Context(), key, local))
	identity := &authv1beta1.Identity{}
	identityKey := client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: authv1beta1.ResourceSliceIdentityPrefix + w.Node}
	fixture.Must(t, "reading the Identity", env.Rome.Client.Get(t.Context(), identityKey, identity))
	node := &corev1.Node{}
	fixture.Must(t, "reading the Node", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: w.Node}, node))
	before, granted := struct {
		Spec   authv1beta1.IdentitySpec
		Labels map[string]string
		Taints []corev1.Taint
	}{identity.Spec, node.Labels, ourTaints(node)}, node.Status.Capacity

	hostile(t, w)
	defer w.Milan.Start(t)
	remote := &authv1beta1.ResourceSlice{}
	fixture.Must(t, "reading the slice at milan", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ProviderNamespace, Name: w.Node}, remote))
	env.Lie(t, remote, map[string]any{
		"authParams": map[string]any{"apiServer": "https://127.0.0.1:1"},
		"resources":  map[string]string{"cpu": "1000000", "memory": "1000000Gi"},
		"nodeLabels": map[string]string{"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": "rome-sim-1", corev1beta1.TypeLabel: "physical"},
	})
	fixture.Await(t, fixture.Patience, "the slice's Identity to be refused with reason EndpointChanged", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, key, local)
		return err == nil && world.Status(local, authv1beta1.IdentityCondition).Reason == authv1beta1.ReasonEndpointChanged, fmt.Sprint(local.Status.Summary, err)
	})
	env.Settled(t)
	fixture.Must(t, "reading the Identity", env.Rome.Client.Get(t.Context(), identityKey, identity))
	fixture.Must(t, "reading the Node", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: w.Node}, node))
	after := before
	after.Spec, after.Labels, after.Taints = identity.Spec, node.Labels, ourTaints(node)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the provider changed (-before +after):\n%s", diff)
	}
	// It may grant what was asked for, which is more than it has, and nothing beyond.
	most := maps.Clone(granted)
	maps.Copy(most, local.Spec.Resources)
	for name, has := range node.Status.Capacity {
		if limit := most[name]; has.Cmp(limit) > 0 {
			t.Errorf("the node has %s of %s, and %s were asked for", has.String(), name, limit.String())
		}
	}
}
