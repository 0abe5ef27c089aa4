package system

import (
	"context"
	"fmt"
	"strings"
	"sync"
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
)

const (
	simulated    = fixture.SimulatedClass
	virtualClass = "liqo"
)

var simulation sync.Once

// simulateStorage gives both clusters a default class whose volumes are simulated.
func simulateStorage(t *testing.T) {
	t.Helper()
	simulation.Do(func() {
		for _, c := range []*fixture.Cluster{env.Rome, env.Milan} {
			c.SimulateStorage(t)
		}
	})
}

// stored gives both clusters a default class whose volumes are simulated, and waits until milan offers it.
func stored(t *testing.T, w *world) {
	t.Helper()
	simulateStorage(t)
	fixture.Await(t, 2*fixture.Patience, "the VirtualNode to show the provider's storage class", func(ctx context.Context) (bool, string) {
		vn := &offloadingv1beta1.VirtualNode{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: consumerNamespace, Name: w.node}, vn)
		for _, class := range vn.Spec.StorageClasses {
			if class.StorageClassName == simulated && class.Default {
				return true, ""
			}
		}
		return false, fmt.Sprint(vn.Spec.StorageClasses, err)
	})
}

func claim(namespace, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "db"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func podWith(namespace, name, claim string) *corev1.Pod {
	p := pod(namespace, name)
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	return p
}

func awaitClaim(t *testing.T, c *fixture.Cluster, of *corev1.PersistentVolumeClaim, what string, ask func(*corev1.PersistentVolumeClaim) bool) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, fmt.Sprintf("PersistentVolumeClaim %s in %s %s", of.Name, c.ID, what), func(ctx context.Context) (bool, string) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(of), of)
		return err == nil && ask(of), fmt.Sprintf("%+v %+v %v", of.Spec, of.Status, err)
	})
}

func awaitGone(t *testing.T, c *fixture.Cluster, object client.Object) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, fmt.Sprintf("%T %s to go from %s", object, object.GetName(), c.ID), func(ctx context.Context) (bool, string) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), fmt.Sprintf("finalizers %v, deleted %v, error %v", object.GetFinalizers(), object.GetDeletionTimestamp(), err)
	})
}

func bound(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound }

// A claim whose first pod runs at the provider has its data there, grows there (H3), holds the namespace (H4) and is deleted
// there once its claim is.
func TestVolumeAtProvider(t *testing.T) {
	w := peered(t)
	stored(t, w)
	namespace := offloaded(t)
	local := claim(namespace, "data", virtualClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	user := podWith(namespace, "db", "data")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	awaitClaim(t, env.Rome, local, "to be bound", bound)
	remote := claim(namespace, "data", "")
	awaitClaim(t, env.Milan, remote, "to be bound", bound)
	awaitPods(t, env.Rome, namespace, 1)
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
	awaitClaim(t, env.Rome, local, "to have grown", func(c *corev1.PersistentVolumeClaim) bool {
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
	awaitGone(t, env.Rome, volume)
	awaitGone(t, env.Milan, remote)
	awaitGone(t, env.Rome, nso)
}

// C4 and D5 for claims: one that is gone at the provider is told, and never made again; C2: its name is not given to others.
func TestClaimIsNeverMadeAgain(t *testing.T) {
	w := peered(t)
	stored(t, w)
	namespace := offloaded(t)
	local := claim(namespace, "data", virtualClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	user := podWith(namespace, "db", "data")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	remote := claim(namespace, "data", "")
	awaitClaim(t, env.Milan, remote, "to be bound", bound)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), user))
	awaitGone(t, env.Milan, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}})
	fixture.Must(t, "deleting the claim at milan", env.Milan.Client.Delete(t.Context(), remote))
	awaitEvent(t, local, offloadingv1beta1.ReasonVolumeLost)
	awaitGone(t, env.Milan, remote)

	stranger := claim(namespace, "taken", simulated)
	fixture.Must(t, "creating a claim of somebody else at milan", env.Milan.Client.Create(t.Context(), stranger))
	taken := claim(namespace, "taken", virtualClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), taken))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), podWith(namespace, "other", "taken")))
	awaitEvent(t, taken, offloadingv1beta1.ReasonClaimConflict)
}

// D9 and H1: what the provider does not offer is refused in words, and a claim of another class does not cross.
func TestClaimsThatAreRefused(t *testing.T) {
	w := peered(t)
	stored(t, w)
	namespace := offloaded(t)
	missing := claim(namespace, "missing", virtualClass)
	missing.Annotations = map[string]string{offloadingv1beta1.RemoteStorageClassAnnotation: "fast"}
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), missing))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), podWith(namespace, "a", "missing")))
	awaitEvent(t, missing, offloadingv1beta1.ReasonVolumeRefused)

	local := claim(namespace, "local", simulated)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	user := podWith(namespace, "b", "local")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	fixture.Await(t, 2*fixture.Patience, "the pod to say that its volume is not at milan", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(user), user)
		return err == nil && strings.Contains(user.Status.Message, "liqoctl move volume"), fmt.Sprint(user.Status, err)
	})
}

func awaitEvent(t *testing.T, about *corev1.PersistentVolumeClaim, reason string) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, "Event "+reason+" about claim "+about.Name, func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		if err := env.Rome.Client.List(ctx, list, client.InNamespace(about.Namespace)); err != nil {
			return false, err.Error()
		}
		var seen []string
		for _, event := range list.Items {
			if event.InvolvedObject.Name == about.Name && event.InvolvedObject.UID == about.UID {
				if event.Reason == reason {
					return true, ""
				}
				seen = append(seen, event.Reason+": "+event.Message)
			}
		}
		return false, strings.Join(seen, "\n")
	})
}

// A claim whose first pod runs on a physical node has a real volume behind it, which goes with it.
func TestVolumeOnPhysicalNode(t *testing.T) {
	w := peered(t)
	stored(t, w)
	namespace := fixture.Unique("home")
	fixture.Must(t, "creating a namespace", env.Rome.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	env.Rome.AwaitServiceAccount(t, namespace)
	local := claim(namespace, "data", virtualClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), local))
	user := podWith(namespace, "db", "data")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	awaitClaim(t, env.Rome, local, "to be bound", bound)
	behind := claim(offloadingv1beta1.DefaultStorageNamespace, string(local.UID), "")
	awaitClaim(t, env.Rome, behind, "to be bound", bound)
	volume, real := &corev1.PersistentVolume{}, &corev1.PersistentVolume{}
	fixture.Must(t, "reading the volume", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: local.Spec.VolumeName}, volume))
	fixture.Must(t, "reading the volume behind", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: behind.Spec.VolumeName}, real))
	if diff := cmp.Diff(real.Spec.PersistentVolumeSource, volume.Spec.PersistentVolumeSource); diff != "" {
		t.Errorf("the volume's source (-behind +in front):\n%s", diff)
	}
	awaitPods(t, env.Rome, namespace, 1)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), user))
	fixture.Must(t, "deleting the claim", env.Rome.Client.Delete(t.Context(), local))
	awaitGone(t, env.Rome, volume)
	awaitGone(t, env.Rome, behind)
}

// A stolen virtual kubelet cannot write volumes that anybody could mount, and a consumer cannot choose its volume.
func TestVolumesThatNobodyMayWrite(t *testing.T) {
	w := peered(t)
	config, err := clientcmd.BuildConfigFromFlags("", env.AccountKubeconfig(t, env.Rome, consumerNamespace, w.node))
	fixture.Must(t, "opening a kubeconfig", err)
	thief, err := client.New(config, client.Options{Scheme: fixture.Scheme})
	fixture.Must(t, "making a client", err)
	volume := func(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		v := reflection.PlaceholderVolume(
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "c"}, Spec: claim("a", "b", virtualClass).Spec},
			&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: virtualClass}}, "milan",
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

	c := newTenant(t)
	c.granted(t, grantedSlice, quantities("cpu", "1", "memory", "1Gi", "pods", "10"))
	namespace := c.twin(t)
	user := env.Milan.Slice(t, c.id, grantedSlice)
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
			p := claim(namespace, "x", simulated)
			p.Labels = map[string]string{offloadingv1beta1.OriginLabel: c.id, offloadingv1beta1.DestinationLabel: "milan"}
			tc.change(p)
			err := user.Create(t.Context(), p, client.DryRunAll)
			if refused := apierrors.IsForbidden(err); refused != tc.refused || err != nil && !refused {
				t.Errorf("got %v", err)
			}
		})
	}
}
