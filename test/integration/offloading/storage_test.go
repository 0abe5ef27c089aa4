package offloading

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// A claim whose first pod runs at the provider has its data there, grows there (H3), holds the namespace (H4) and is deleted
// there once its claim is.
func TestVolumeAtProvider(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	local := world.Claim(namespace, "data", world.VirtualClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	user := world.PodWith(namespace, "db", "data")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	world.AwaitClaim(t, env.Rome, local, "to be bound", world.Bound)
	remote := world.Claim(namespace, "data", "")
	world.AwaitClaim(t, env.Milan, remote, "to be bound", world.Bound)
	world.AwaitPods(t, env.Rome, namespace, 1)
	volume := &corev1.PersistentVolume{}
	fixture.Must(t, "reading the volume", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: local.Spec.VolumeName}, volume))
	if handle, ok := reflection.HandleOf(volume); !ok || handle.UID != remote.UID || handle.Cluster != "milan" {
		t.Errorf("the volume stands for %+v, not for the claim at milan", handle)
	}
	if remote.Labels["app"] != "db" {
		t.Errorf("labels at milan: %v", remote.Labels)
	}

	changed := local.DeepCopy()
	changed.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	fixture.Must(t, "asking for more", env.Rome.Client.Patch(t.Context(), changed, client.MergeFrom(local)))
	world.AwaitClaim(t, env.Rome, local, "to have grown", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Status.Capacity.Storage().Cmp(resource.MustParse("2Gi")) == 0
	})

	rome, err := target.FromKubeconfig(env.Rome.Kubeconfig, "")
	fixture.Must(t, "opening the kubeconfig of rome", err)
	err = offload.Undo(t.Context(), offload.UndoOptions{Cluster: rome, Namespaces: []string{namespace}, Timeout: fixture.Patience})
	if failure.CodeOf(err) != failure.Precondition || !strings.Contains(fmt.Sprint(err), namespace+"/data") {
		t.Errorf("unoffloading answered %v", err)
	}
	nso := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
	fixture.Must(t, "deleting the NamespaceOffloading", env.Rome.Client.Delete(t.Context(), nso))
	fixture.Await(t, fixture.Patience, "the NamespaceOffloading to say that volumes hold it", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(nso), nso)
		for _, c := range nso.Status.Conditions {
			if c.Type == corev1beta1.ConditionReady && c.Reason == offloadingv1beta1.ReasonVolumesHoldData && strings.Contains(c.Message, namespace+"/data") {
				return true, ""
			}
		}
		return false, fmt.Sprint(nso.Status.Conditions, err)
	})
	fixture.Must(t, "reading the claim at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(remote), remote))
	if !remote.DeletionTimestamp.IsZero() {
		t.Error("the data at milan is being deleted")
	}

	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), user))
	fixture.Must(t, "deleting the claim", env.Rome.Client.Delete(t.Context(), local))
	world.AwaitGone(t, env.Rome, volume)
	world.AwaitGone(t, env.Milan, remote)
	world.AwaitGone(t, env.Rome, nso)
}

// C4 and D5 for claims: one that is gone at the provider is told, and never made again; C2: its name is not given to others.
func TestClaimIsNeverMadeAgain(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	local := world.Claim(namespace, "data", world.VirtualClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	user := world.PodWith(namespace, "db", "data")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	remote := world.Claim(namespace, "data", "")
	world.AwaitClaim(t, env.Milan, remote, "to be bound", world.Bound)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), user))
	world.AwaitGone(t, env.Milan, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}})
	fixture.Must(t, "deleting the claim at milan", env.Milan.Client.Delete(t.Context(), remote))
	env.AwaitEvent(t, local, offloadingv1beta1.ReasonVolumeLost)
	world.AwaitGone(t, env.Milan, remote)

	stranger := world.Claim(namespace, "taken", fixture.SimulatedClass)
	fixture.Must(t, "creating a claim of somebody else at milan", env.Milan.Client.Create(t.Context(), stranger))
	taken := world.Claim(namespace, "taken", world.VirtualClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), taken))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.PodWith(namespace, "other", "taken")))
	env.AwaitEvent(t, taken, offloadingv1beta1.ReasonClaimConflict)
}

// D9 and H1: what the provider does not offer is refused in words, and a claim of another class does not cross.
func TestClaimsThatAreRefused(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	missing := world.Claim(namespace, "missing", world.VirtualClass)
	missing.Annotations = map[string]string{offloadingv1beta1.RemoteStorageClassAnnotation: "fast"}
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), missing))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.PodWith(namespace, "a", "missing")))
	env.AwaitEvent(t, missing, offloadingv1beta1.ReasonVolumeRefused)

	local := world.Claim(namespace, "local", fixture.SimulatedClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	user := world.PodWith(namespace, "b", "local")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	fixture.Await(t, 2*fixture.Patience, "the pod to say that its volume is not at milan", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(user), user)
		return err == nil && strings.Contains(user.Status.Message, "liqoctl move volume"), fmt.Sprint(user.Status, err)
	})
}

// A claim whose first pod runs on a physical node has a real volume behind it, which goes with it.
func TestVolumeOnPhysicalNode(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	env.Stored(t)
	namespace := fixture.Unique("home")
	fixture.Must(t, "creating a namespace", env.Rome.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	env.Rome.AwaitServiceAccount(t, namespace)
	local := world.Claim(namespace, "data", world.VirtualClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	user := world.PodWith(namespace, "db", "data")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	world.AwaitClaim(t, env.Rome, local, "to be bound", world.Bound)
	behind := world.Claim(offloadingv1beta1.DefaultStorageNamespace, string(local.UID), "")
	world.AwaitClaim(t, env.Rome, behind, "to be bound", world.Bound)
	volume, real := &corev1.PersistentVolume{}, &corev1.PersistentVolume{}
	fixture.Must(t, "reading the volume", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: local.Spec.VolumeName}, volume))
	fixture.Must(t, "reading the volume behind", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: behind.Spec.VolumeName}, real))
	if diff := cmp.Diff(real.Spec.PersistentVolumeSource, volume.Spec.PersistentVolumeSource); diff != "" {
		t.Errorf("the volume's source (-behind +in front):\n%s", diff)
	}
	world.AwaitPods(t, env.Rome, namespace, 1)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), user))
	fixture.Must(t, "deleting the claim", env.Rome.Client.Delete(t.Context(), local))
	world.AwaitGone(t, env.Rome, volume)
	world.AwaitGone(t, env.Rome, behind)
}

// A stolen virtual kubelet cannot write volumes that anybody could mount, and a consumer cannot choose its volume.
func TestVolumesThatNobodyMayWrite(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	config, err := clientcmd.BuildConfigFromFlags("", env.AccountKubeconfig(t, env.Rome, fixture.ConsumerNamespace, virtual))
	fixture.Must(t, "opening a kubeconfig", err)
	thief, err := client.New(config, client.Options{Scheme: fixture.Scheme})
	fixture.Must(t, "making a client", err)
	volume := func(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		v := reflection.PlaceholderVolume(
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "c"}, Spec: world.Claim("a", "b", world.VirtualClass).Spec},
			&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: world.VirtualClass}}, "milan",
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "d"}})
		change(v)
		return v
	}
	for name, tc := range map[string]struct {
		change  func(*corev1.PersistentVolume)
		refused bool
	}{
		"one of its own": {func(*corev1.PersistentVolume) {}, false},
		"a folder of a node": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		}, true},
		"another provider's":       {func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "paris/a/b/d" }, true},
		"one for physical nodes":   {func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = nil }, true},
		"one for any claim":        {func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, true},
		"one that is not marked":   {func(v *corev1.PersistentVolume) { v.Annotations = nil }, true},
		"one of a real CSI driver": {func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "ebs.csi.aws.com" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := thief.Create(t.Context(), volume(tc.change), client.DryRunAll)
			if apierrors.IsForbidden(err) != tc.refused || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := thief.List(t.Context(), &corev1.PersistentVolumeList{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing volumes: got %v", err)
	}

	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "1", "memory", "1Gi", "pods", "10"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	for name, tc := range map[string]struct {
		change  func(*corev1.PersistentVolumeClaim)
		refused bool
	}{
		"an honest claim":              {func(*corev1.PersistentVolumeClaim) {}, false},
		"a claim of a certain volume":  {func(p *corev1.PersistentVolumeClaim) { p.Spec.VolumeName = "loot" }, true},
		"a claim that selects volumes": {func(p *corev1.PersistentVolumeClaim) { p.Spec.Selector = &metav1.LabelSelector{} }, true},
		"a node of its choice": {func(p *corev1.PersistentVolumeClaim) {
			p.Annotations = map[string]string{reflection.SelectedNodeAnnotation: "x"}
		}, true},
		"a claim of nobody": {func(p *corev1.PersistentVolumeClaim) { p.Labels = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := world.Claim(namespace, "x", fixture.SimulatedClass)
			p.Labels = map[string]string{offloadingv1beta1.OriginLabel: c.ID, offloadingv1beta1.DestinationLabel: "milan"}
			tc.change(p)
			err := user.Create(t.Context(), p, client.DryRunAll)
			if refused := apierrors.IsForbidden(err); refused != tc.refused || err != nil && !refused {
				t.Errorf("got %v", err)
			}
		})
	}
}
