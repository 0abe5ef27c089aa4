package system

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// hostile stops milan's controllers, so that what the test writes there as the provider's administrator stays.
func hostile(t *testing.T, w *world) {
	t.Helper()
	fixture.Must(t, "stopping milan's controller manager", w.milan.Stop())
}

// lie writes a status at milan.
func lie(t *testing.T, object client.Object, status any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	fixture.Must(t, "encoding a status", err)
	fixture.Must(t, "writing a status as the provider", env.Milan.Client.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}

// W1: a provider acknowledges namespaces that were never offloaded; nothing of them leaves.
func TestUnaskedMapping(t *testing.T) {
	w := peered(t)
	namespace := offloaded(t)
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
	defer w.milan.Start(t)
	remote := &offloadingv1beta1.NamespaceMap{}
	fixture.Must(t, "reading the NamespaceMap at milan", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: providerNamespace, Name: "milan"}, remote))
	mapping := maps.Clone(remote.Status.CurrentMapping)
	for _, unasked := range []string{"kube-system", "default", fixture.Namespace, consumerNamespace, private} {
		mapping[unasked] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: loot.Name, Phase: offloadingv1beta1.MappingAccepted}
	}
	mark := offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: namespace, Phase: offloadingv1beta1.MappingAccepted, Message: fixture.Unique("mark")}
	mapping[namespace] = mark
	lie(t, remote, map[string]any{"currentMapping": mapping})

	// The lie has arrived once the mark beside it has, and reflection has run once something honest crossed after that.
	local := &offloadingv1beta1.NamespaceMap{}
	fixture.Await(t, fixture.Patience, "the status to travel to rome", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: consumerNamespace, Name: "milan"}, local)
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

// W2, W3: what a provider says about a pod is checked before it is shown.
func TestBadPodStatus(t *testing.T) {
	peered(t)
	namespace := offloaded(t)
	for name, tc := range map[string]struct {
		status map[string]any
		check  func(*corev1.Pod) string
	}{
		"an address outside the provider's range": {
			map[string]any{"podIP": "8.8.8.8", "podIPs": []map[string]any{{"ip": "8.8.8.8"}}},
			func(p *corev1.Pod) string {
				if p.Status.PodIP == "8.8.8.8" {
					return "the address is shown"
				}
				return invalid(p)
			},
		},
		"a container that does not exist": {
			map[string]any{"containerStatuses": []map[string]any{
				{"name": "ghost", "image": "b", "imageID": "", "ready": true, "restartCount": 1 << 30},
				{"name": "a", "image": "b", "imageID": "", "ready": true, "restartCount": 0}}},
			func(p *corev1.Pod) string {
				for _, c := range p.Status.ContainerStatuses {
					if c.Name == "ghost" {
						return "the container is shown"
					}
				}
				return invalid(p)
			},
		},
		"a huge message": {
			map[string]any{"message": strings.Repeat("x", 100_000)},
			func(p *corev1.Pod) string {
				if len(p.Status.Message) > 2048 {
					return fmt.Sprintf("a message of %d bytes is shown", len(p.Status.Message))
				}
				if p.Status.Message == "" {
					return "no message yet"
				}
				return ""
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := pod(namespace, fixture.Unique("pod"))
			fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod))
			key := client.ObjectKeyFromObject(pod)
			fixture.Await(t, 2*fixture.Patience, "the pod to run", func(ctx context.Context) (bool, string) {
				err := env.Rome.Client.Get(ctx, key, pod)
				return err == nil && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "", fmt.Sprint(pod.Status, err)
			})
			lie(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name}}, tc.status)
			fixture.Await(t, fixture.Patience, "the lie to be found out", func(ctx context.Context) (bool, string) {
				if err := env.Rome.Client.Get(ctx, key, pod); err != nil {
					return false, err.Error()
				}
				wrong := tc.check(pod)
				return wrong == "", fmt.Sprintf("%s: %+v", wrong, pod.Status)
			})
		})
	}
}

func invalid(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == offloadingv1beta1.InvalidRemoteStatusCondition && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return "no condition InvalidRemoteStatus"
}

// ourTaints leaves out those by which Kubernetes says how a node is, which come and go.
func ourTaints(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
		return strings.HasPrefix(taint.Key, "node.kubernetes.io/")
	})
}

// W5, W6: the provider's answer cannot move the consumer's clients elsewhere, nor make the virtual node what it is not.
func TestBadSliceStatus(t *testing.T) {
	w := peered(t)
	local := &authv1beta1.ResourceSlice{}
	key := client.ObjectKey{Namespace: consumerNamespace, Name: w.node}
	fixture.Must(t, "reading the ResourceSlice", env.Rome.Client.Get(t.Context(), key, local))
	identity := &authv1beta1.Identity{}
	identityKey := client.ObjectKey{Namespace: consumerNamespace, Name: authv1beta1.ResourceSliceIdentityPrefix + w.node}
	fixture.Must(t, "reading the Identity", env.Rome.Client.Get(t.Context(), identityKey, identity))
	node := &corev1.Node{}
	fixture.Must(t, "reading the Node", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: w.node}, node))
	before, granted := struct {
		Spec   authv1beta1.IdentitySpec
		Labels map[string]string
		Taints []corev1.Taint
	}{identity.Spec, node.Labels, ourTaints(node)}, node.Status.Capacity

	hostile(t, w)
	defer w.milan.Start(t)
	remote := &authv1beta1.ResourceSlice{}
	fixture.Must(t, "reading the slice at milan", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: providerNamespace, Name: w.node}, remote))
	lie(t, remote, map[string]any{
		"authParams": map[string]any{"apiServer": "https://127.0.0.1:1"},
		"resources":  map[string]string{"cpu": "1000000", "memory": "1000000Gi"},
		"nodeLabels": map[string]string{"node-role.kubernetes.io/control-plane": "", "kubernetes.io/hostname": "rome-sim-1", corev1beta1.TypeLabel: "physical"},
	})
	fixture.Await(t, fixture.Patience, "the slice's Identity to be refused with reason EndpointChanged", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, key, local)
		return err == nil && status(local, authv1beta1.IdentityCondition).Reason == authv1beta1.ReasonEndpointChanged, fmt.Sprint(local.Status.Conditions, err)
	})
	settled(t)
	fixture.Must(t, "reading the Identity", env.Rome.Client.Get(t.Context(), identityKey, identity))
	fixture.Must(t, "reading the Node", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: w.node}, node))
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
