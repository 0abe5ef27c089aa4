package move

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/reflection"
)

// world is a cluster whose claim data has its volume on a node of its own. It plays what Kubernetes does with claims, volumes and
// pods: a claim stays while a pod uses it, a volume that nobody claims goes as its policy says, and takes its content with it.
type world struct {
	*fixture.Cluster
	// store is the cluster without interruptions.
	store client.WithWatch
	mu    sync.Mutex
	// content of the volumes, by name.
	content map[string]string
	// newest is what the user wrote last.
	newest string
	// before each call, with its number.
	before func(n int)
	calls  int
	// seen are the pods that used the claim when pods were listed last.
	seen []string
	// made counts objects.
	made int
	// dead refuses each call, as if the program had been killed.
	dead atomic.Bool
	// fail has a certain call fail.
	fail func(verb string, object client.Object) error
	// corrupt changes what is copied.
	corrupt bool
	// policy of new volumes; Delete if it is empty.
	policy corev1.PersistentVolumeReclaimPolicy
	// refuses is whether the provider takes no pods.
	refuses bool
	// imageless is why no helper has its image; empty if they have.
	imageless string
}

// at tells whether a pod goes to a node.
func at(pod *corev1.Pod, node string) bool {
	return pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0] == node
}

func own(name string, affinity map[string]string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{reflection.ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner}},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete},
	}
	var all []corev1.NodeSelectorRequirement
	for key, value := range affinity {
		all = append(all, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
	}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: all}}}}
	return v
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{content: map[string]string{"pvc-u1": "precious"}, newest: "precious"}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u1", Finalizers: []string{protection}, Labels: map[string]string{"app": "db"}, Annotations: map[string]string{
			"team": "db", "pv.kubernetes.io/bind-completed": "yes", reflection.SelectedNodeAnnotation: "worker"}},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("liqo"), VolumeName: "pvc-u1", Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
	}
	volume := own("pvc-u1", map[string]string{"zone": "here"})
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "u1"}
	objects = append(objects, claim, volume,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"zone": "here"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "rack", Labels: map[string]string{"zone": "there"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: "milan"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "paris", Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: "paris"}}},
		&offloadingv1beta1.NamespaceMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"},
			Spec:       offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome"}},
			Status: offloadingv1beta1.NamespaceMapStatus{CurrentMapping: map[string]offloadingv1beta1.RemoteNamespaceStatus{
				"shop": {RemoteNamespace: "shop-rome", Phase: offloadingv1beta1.MappingAccepted}}},
		})
	w.Cluster = fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: objects, Scheme: kinds(t)})
	w.store = w.Client.(client.WithWatch)
	w.Client = interceptor.NewClient(w.store, w.intercept(t))
	return w
}

// kinds are those that a move has to do with.
func kinds(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, storagev1.AddToScheme,
		corev1beta1.AddToScheme, authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme} {
		must(t, add(scheme))
	}
	return scheme
}

const protection = "kubernetes.io/pvc-protection"

// intercept counts calls, lets them fail, and plays Kubernetes after each write.
func (w *world) intercept(t *testing.T) interceptor.Funcs {
	call := func(verb string, object client.Object) error {
		if err := w.called(); err != nil {
			return err
		}
		if w.fail != nil {
			return w.fail(verb, object)
		}
		return nil
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := call("get", object); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := call("list", nil); err != nil {
				return err
			}
			if _, ok := list.(*corev1.PodList); ok {
				w.seen = w.using(t, "data")
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := call("create", object); err != nil {
				return err
			}
			w.admit(object)
			defer w.play(t)
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := call("patch", object); err != nil {
				return err
			}
			if err := sameUID(ctx, c, object, patch); err != nil {
				return err
			}
			defer w.play(t)
			return c.Patch(ctx, object, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := call("delete", object); err != nil {
				return err
			}
			if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Name == "data" && len(w.seen) > 0 {
				t.Errorf("the claim is deleted while pods use it: %v", w.seen)
			}
			defer w.play(t)
			return c.Delete(ctx, object, options...)
		},
	}
}

// sameUID refuses a patch that names another UID, as a real API server does.
func sameUID(ctx context.Context, c client.Client, object client.Object, patch client.Patch) error {
	data, err := patch.Data(object)
	wanted := metav1.PartialObjectMetadata{}
	if err = errors.Join(err, json.Unmarshal(data, &wanted)); err != nil || wanted.UID == "" {
		return err
	}
	live, _ := object.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err == nil && live.GetUID() != wanted.UID {
		return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), errors.New("it has another UID"))
	}
	return nil
}

func (w *world) called() error {
	w.mu.Lock()
	w.calls++
	n, before := w.calls, w.before
	w.mu.Unlock()
	if before != nil {
		before(n)
	}
	if w.dead.Load() {
		return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("the program was killed"))
	}
	return nil
}

// admit gives a new object what Kubernetes and the nodes give it.
func (w *world) admit(created client.Object) {
	w.made++
	created.SetUID(types.UID(fmt.Sprintf("n%d", w.made)))
	switch object := created.(type) {
	case *corev1.PersistentVolumeClaim:
		object.Finalizers = append(object.Finalizers, protection)
	case *corev1.Pod:
		object.Spec.NodeName, object.Status.Phase = "some", corev1.PodRunning
		if problems := reflection.CheckShadowPod(&corev1.PodSpec{Tolerations: object.Spec.Tolerations, AutomountServiceAccountToken: ptr.To(false)}, reflection.Rules{}); w.refuses || len(problems) > 0 && at(object, "milan") {
			object.Status.Phase, object.Status.Reason, object.Status.Message = corev1.PodPending, offloadingv1beta1.ReasonPodRefused, "no pods today"
		}
		if w.imageless != "" {
			object.Status.Phase = corev1.PodPending
			object.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "volume", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: w.imageless, Message: "not found"}}}}
		}
	}
}

func (w *world) claims(t *testing.T) []corev1.PersistentVolumeClaim {
	t.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	if err := w.store.List(context.WithoutCancel(t.Context()), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (w *world) volumes(t *testing.T) map[string]*corev1.PersistentVolume {
	t.Helper()
	list := &corev1.PersistentVolumeList{}
	if err := w.store.List(context.WithoutCancel(t.Context()), list); err != nil {
		t.Fatal(err)
	}
	all := map[string]*corev1.PersistentVolume{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

// using names the pods on nodes that use a claim.
func (w *world) using(t *testing.T, claim string) (names []string) {
	t.Helper()
	list := &corev1.PodList{}
	if err := w.store.List(context.WithoutCancel(t.Context()), list, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.NodeName != "" && uses(&list.Items[i], claim) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// play lets Kubernetes and the provisioners do what they do about claims and volumes.
func (w *world) play(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	uids := map[types.UID]bool{}
	for _, claim := range w.claims(t) {
		if !claim.DeletionTimestamp.IsZero() && len(w.using(t, claim.Name)) == 0 {
			claim.Finalizers = nil
			must(t, w.store.Update(ctx, &claim))
			continue
		}
		uids[claim.UID] = true
		if claim.Spec.VolumeName == "" {
			claim.Spec.VolumeName = "pvc-" + string(claim.UID)
			must(t, w.store.Update(ctx, &claim))
			volume := own(claim.Spec.VolumeName, nil)
			volume.Spec.PersistentVolumeReclaimPolicy = cmp.Or(w.policy, corev1.PersistentVolumeReclaimDelete)
			volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: claim.Name, UID: claim.UID}
			must(t, w.store.Create(ctx, volume))
		}
		volume := w.volumes(t)[claim.Spec.VolumeName]
		if volume == nil || claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		if ref := volume.Spec.ClaimRef; ref.Name == claim.Name && ref.UID == "" {
			ref.UID = claim.UID
			must(t, w.store.Update(ctx, volume))
		} else if ref.UID != claim.UID {
			continue
		}
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		must(t, w.store.Status().Update(ctx, &claim))
	}
	for name, volume := range w.volumes(t) {
		if uid := volume.Spec.ClaimRef.UID; uid != "" && !uids[uid] && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			must(t, w.store.Delete(ctx, volume))
			w.mu.Lock()
			delete(w.content, name)
			w.mu.Unlock()
		}
	}
}

// Exec plays the helper pods.
func (w *world) Exec(ctx context.Context, namespace, name string, command []string, in io.Reader, out io.Writer) error {
	if err := errors.Join(w.called(), ctx.Err()); err != nil {
		return err
	}
	pod := &corev1.Pod{}
	if err := w.store.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return err
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := w.store.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reflection.PodClaims(&pod.Spec)[0]}, claim); err != nil {
		return err
	}
	w.mu.Lock()
	content := w.content[claim.Spec.VolumeName]
	w.mu.Unlock()
	switch command[1] {
	case "send":
		_, err := io.WriteString(out, content)
		return err
	case "receive":
		data, err := io.ReadAll(in)
		if w.corrupt {
			data = append(data, '!')
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.content[claim.Spec.VolumeName] = string(data)
		return err
	default:
		_, err := fmt.Fprintf(out, "%x 1 %d\n", sha256.Sum256([]byte(content)), len(content))
		return err
	}
}

func (w *world) move(ctx context.Context, node string) error {
	_, err := Volume(ctx, Options{Cluster: w.Cluster.Cluster, Namespace: "shop", Claim: "data", TargetNode: node, Streams: w, Timeout: 10 * time.Second})
	return err
}

func (w *world) claim(t *testing.T) *corev1.PersistentVolumeClaim {
	t.Helper()
	claims := w.claims(t)
	for i := range claims {
		if claims[i].Name == "data" {
			return &claims[i]
		}
	}
	return nil
}

// write changes what is in the claim's volume, as far as the user can get at it.
func (w *world) write(t *testing.T, text string) {
	t.Helper()
	claim := w.claim(t)
	if claim == nil || claim.Status.Phase != corev1.ClaimBound {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.content[claim.Spec.VolumeName] != w.newest {
		t.Errorf("a pod finds %q in volume %s, not %q", w.content[claim.Spec.VolumeName], claim.Spec.VolumeName, w.newest)
	}
	w.newest += text
	w.content[claim.Spec.VolumeName] = w.newest
}

// app is a pod that uses a claim.
func app(claim string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"},
		Spec: corev1.PodSpec{NodeName: "some", Volumes: []corev1.Volume{{
			Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// scaleUp starts a pod that writes to the claim's volume, if the scheduler lets it run.
func (w *world) scaleUp(t *testing.T) {
	t.Helper()
	if claim := w.claim(t); claim == nil || !claim.DeletionTimestamp.IsZero() || claim.Status.Phase != corev1.ClaimBound {
		return
	}
	must(t, w.store.Create(context.WithoutCancel(t.Context()), app("data")))
	w.write(t, " and started")
}

// scaleDown ends that pod, which writes a last time.
func (w *world) scaleDown(t *testing.T) {
	t.Helper()
	if len(w.using(t, "data")) == 0 || w.store.Delete(context.WithoutCancel(t.Context()), app("data")) != nil {
		return
	}
	w.write(t, " and ended")
	w.play(t)
}

// safe fails unless the newest content is in the claim's volume, or there is no claim and it is in a volume that is kept.
func (w *world) safe(t *testing.T) {
	t.Helper()
	if claim := w.claim(t); claim != nil {
		if w.content[claim.Spec.VolumeName] != w.newest {
			t.Fatalf("the claim has volume %s with %q instead of %q", claim.Spec.VolumeName, w.content[claim.Spec.VolumeName], w.newest)
		}
		return
	}
	for name, volume := range w.volumes(t) {
		if w.content[name] == w.newest && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
			return
		}
	}
	t.Fatalf("%q is lost: %v", w.newest, w.content)
}

// moved fails unless the claim has a new volume with the newest content, and nothing of the move is left.
func (w *world) moved(t *testing.T) {
	t.Helper()
	claim := w.claim(t)
	if claim.Spec.VolumeName == "pvc-u1" || claim.Labels["app"] != "db" || claim.Annotations["team"] != "db" || claim.Annotations[offloadingv1beta1.MovingAnnotation] != "" {
		t.Errorf("the claim is %+v %+v", claim.ObjectMeta, claim.Spec)
	}
	w.alone(t)
}

// alone fails unless there is nothing but the claim and its volume, with the newest content and the policy of the class.
func (w *world) alone(t *testing.T) {
	t.Helper()
	w.safe(t)
	claim, volumes := w.claim(t), w.volumes(t)
	volume := volumes[claim.Spec.VolumeName]
	if len(volumes) != 1 || volume == nil || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.Annotations[offloadingv1beta1.MovedClaimAnnotation] != "" {
		t.Errorf("the volumes are %v", volumes)
	}
	if claims := w.claims(t); len(claims) != 1 {
		t.Errorf("the claims are %v", claims)
	}
	pods := &corev1.PodList{}
	if err := w.store.List(t.Context(), pods, client.InNamespace("shop")); err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods are left, error %v", len(pods.Items), err)
	}
}

// H5: whatever happens at any call of a move, the newest content is there, no pod ever finds another one, and the same command
// ends the move.
func TestInterruptedAnywhere(t *testing.T) {
	for sentence, tc := range map[string]struct {
		// at the call that it is about, and n calls later.
		at func(t *testing.T, w *world, cancel func(), n int)
		// between two tries.
		between func(t *testing.T, w *world)
		node    string
	}{
		"killed": {at: func(_ *testing.T, w *world, _ func(), _ int) { w.dead.Store(true) }},
		"interrupted, and written to before the next try": {
			at:      func(_ *testing.T, _ *world, cancel func(), _ int) { cancel() },
			between: func(t *testing.T, w *world) { w.scaleUp(t); w.scaleDown(t) },
		},
		"killed, and written to before the next try": {
			at:      func(_ *testing.T, w *world, _ func(), _ int) { w.dead.Store(true) },
			between: func(t *testing.T, w *world) { w.scaleUp(t); w.scaleDown(t) },
		},
		"killed, and in use at the next try to another node": {
			at: func(_ *testing.T, w *world, _ func(), _ int) { w.dead.Store(true) }, node: "rack",
			between: func(t *testing.T, w *world) {
				w.scaleUp(t)
				if len(w.using(t, "data")) > 0 && w.move(t.Context(), "rack") == nil {
					t.Error("it was moved while a pod used it")
				}
				w.safe(t)
				w.scaleDown(t)
			},
		},
		"a pod writes and ends at once": {at: func(t *testing.T, w *world, _ func(), n int) {
			if n == 0 {
				w.scaleUp(t)
				w.scaleDown(t)
			}
		}},
		"a pod writes and ends later": {at: func(t *testing.T, w *world, _ func(), n int) {
			switch n {
			case 0:
				w.scaleUp(t)
			case 5:
				w.scaleDown(t)
			}
		}},
		"a pod comes, and it is killed then": {
			at: func(t *testing.T, w *world, _ func(), n int) {
				switch n {
				case 0:
					w.scaleUp(t)
				case 2:
					w.dead.Store(true)
				}
			},
			between: func(t *testing.T, w *world) { w.scaleDown(t) },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			node := "milan"
			for stop := 1; ; stop++ {
				w := newWorld(t)
				ctx, cancel := context.WithCancel(t.Context())
				w.before = func(n int) {
					if n >= stop {
						tc.at(t, w, cancel, n-stop)
					}
				}
				err := w.move(ctx, node)
				cancel()
				calls := w.calls
				w.before = nil
				w.dead.Store(false)
				w.scaleDown(t)
				w.safe(t)
				if tc.between != nil {
					tc.between(t, w)
					w.safe(t)
				}
				if next := cmp.Or(tc.node, node); err != nil || next != node {
					if err != nil && w.made > 0 && !strings.Contains(err.Error(), "run the same command again") {
						t.Errorf("call %d: the error does not say how to go on: %v", stop, err)
					}
					if err := w.move(t.Context(), next); err != nil {
						t.Fatalf("call %d: first %v, going on: %v", stop, err, err)
					}
				}
				w.moved(t)
				if t.Failed() {
					t.Fatalf("this was about call %d", stop)
				}
				if calls < stop {
					return // It came to its end before.
				}
				if stop > 300 {
					t.Fatal("the move does not end")
				}
			}
		})
	}
}

func TestCopyThatDiffers(t *testing.T) {
	w := newWorld(t)
	w.corrupt = true
	if err := w.move(t.Context(), "milan"); err == nil || !strings.Contains(err.Error(), "differs") {
		t.Fatalf("got %v", err)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := w.Client.List(t.Context(), claims, client.InNamespace("shop")); err != nil || len(claims.Items) != 1 || claims.Items[0].UID != "u1" {
		t.Errorf("the claims are %v, error %v", claims.Items, err)
	}
}

// A pod that the provider does not take never runs: nothing is gained by waiting for it.
func TestRefusedByTheProvider(t *testing.T) {
	w := newWorld(t)
	w.refuses = true
	if err := w.move(t.Context(), "milan"); failure.CodeOf(err) != failure.Failed || !strings.Contains(err.Error(), "PodRefused no pods today") {
		t.Fatalf("got %v", err)
	}
	if claim := w.claim(t); claim.Spec.VolumeName != "pvc-u1" {
		t.Errorf("the claim has volume %s", claim.Spec.VolumeName)
	}
}

// A helper without image never runs: the move says so at once, with the ways out, and leaves nothing behind.
func TestTheImageCannotBeHad(t *testing.T) {
	for _, reason := range []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			w.imageless = reason
			err := w.move(t.Context(), "milan")
			if failure.CodeOf(err) != failure.Failed {
				t.Fatalf("got %v", err)
			}
			for _, want := range []string{"cannot be had: " + reason + ": not found", "storage.mover.image", "--image"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if claim := w.claim(t); claim.Spec.VolumeName != "pvc-u1" || len(w.claims(t)) != 1 {
				t.Errorf("the claim has volume %s, there are %d claims", claim.Spec.VolumeName, len(w.claims(t)))
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	user := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}
	ended := app("data")
	ended.Status.Phase = corev1.PodSucceeded
	for name, tc := range map[string]struct {
		node    string
		objects []client.Object
		says    string
	}{
		"a pod that has ended holds it":  {"milan", []client.Object{ended}, "pods that have ended still hold the claim: app"},
		"a pod uses it":                  {"milan", []client.Object{user}, "db-0"},
		"it is there already":            {"worker", nil, "already"},
		"there is no such node":          {"nowhere", nil, "no Node nowhere"},
		"the namespace is not offloaded": {"paris", nil, "not offloaded to cluster paris"},
		"its pods run at providers only": {"milan", []client.Object{&offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}, Spec: offloadingv1beta1.NamespaceOffloadingSpec{PodOffloadingStrategy: offloadingv1beta1.RemotePodOffloadingStrategyType}}}, "may not run on physical nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			err := w.move(t.Context(), tc.node)
			if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
			if len(w.Writes()) > 0 {
				t.Errorf("wrote %v", w.Writes())
			}
		})
	}
}

// A generic ephemeral volume is a claim that is named after pod and volume.
func TestUses(t *testing.T) {
	ephemeral := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "conf"}, {Name: "space", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}}}
	for sentence, tc := range map[string]struct {
		pod   *corev1.Pod
		claim string
		want  bool
	}{
		"by its name":                      {app("data"), "data", true},
		"another one":                      {app("data"), "other", false},
		"as an ephemeral volume":           {ephemeral, "db-space", true},
		"a volume that is not ephemeral":   {ephemeral, "db-conf", false},
		"an ephemeral volume of its own":   {ephemeral, "space", false},
		"another pod's of the same volume": {ephemeral, "db2-space", false},
	} {
		if got := uses(tc.pod, tc.claim); got != tc.want {
			t.Errorf("%s: %t", sentence, got)
		}
	}
}

// A move that fails in its exchange leaves both policies, the claim and nothing else.
func TestExchangeThatFails(t *testing.T) {
	for sentence, fails := range map[string]func(w *world, verb string, object client.Object) bool{
		"the source's policy cannot be set": func(_ *world, verb string, object client.Object) bool {
			return verb == "patch" && object.GetName() == "pvc-u1"
		},
		"nothing can be written down": func(_ *world, verb string, object client.Object) bool {
			return verb == "patch" && object.GetName() != "pvc-u1" && strings.HasPrefix(object.GetName(), "pvc-")
		},
		"the claim cannot be deleted": func(_ *world, verb string, object client.Object) bool {
			return verb == "delete" && object.GetName() == "data"
		},
		"the source cannot be read again": func(w *world, verb string, object client.Object) bool {
			return verb == "create" && object.GetName() == "liqo-move-u1-source" && w.claim(t) == nil
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t)
			failed := false
			w.fail = func(verb string, object client.Object) error {
				if object == nil || failed || !fails(w, verb, object) {
					return nil
				}
				failed = true
				return apierrors.NewForbidden(schema.GroupResource{}, object.GetName(), errors.New("not today"))
			}
			err := w.move(t.Context(), "milan")
			if err == nil || !strings.Contains(err.Error(), "not today") || !strings.Contains(err.Error(), "run the same command again") {
				t.Errorf("got %v", err)
			}
			if claim := w.claim(t); claim == nil || claim.Spec.VolumeName != "pvc-u1" || claim.Annotations[reflection.SelectedNodeAnnotation] != "worker" {
				t.Errorf("the claim is %+v", claim)
			}
			w.alone(t)
			must(t, w.move(t.Context(), "milan"))
			w.moved(t)
		})
	}
}

// What a killed run left goes, even if the next one is refused.
func TestLeftovers(t *testing.T) {
	w := newWorld(t)
	w.fail = func(verb string, object client.Object) error {
		if pod, ok := object.(*corev1.Pod); ok && verb == "delete" {
			w.dead.Store(true)
			return apierrors.NewForbidden(schema.GroupResource{}, pod.Name, errors.New("killed"))
		}
		return nil
	}
	if err := w.move(t.Context(), "milan"); err == nil || len(w.claims(t)) != 2 || len(w.volumes(t)) != 2 {
		t.Fatalf("error %v with claims %v", err, w.claims(t))
	}
	w.fail = nil
	w.dead.Store(false)
	if err := w.move(t.Context(), "nowhere"); failure.CodeOf(err) != failure.Precondition {
		t.Errorf("got %v", err)
	}
	w.alone(t)
}

// A copy that is not used goes also if the volumes of the class are retained: nobody else would ever give it up.
func TestRetainedClass(t *testing.T) {
	w := newWorld(t)
	w.policy = corev1.PersistentVolumeReclaimRetain
	w.corrupt = true
	if err := w.move(t.Context(), "milan"); err == nil {
		t.Fatal("it was moved")
	}
	if volumes := w.volumes(t); len(volumes) != 1 {
		t.Errorf("the volumes are %v", volumes)
	}
}

// Two runs at once: at whatever call the other gets its turn, the newest content is there in the end.
func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	for stop := 1; ; stop += 2 {
		w := newWorld(t)
		var came atomic.Bool
		w.before = func(n int) {
			if n < stop || came.Swap(true) {
				return
			}
			_ = w.move(t.Context(), "rack")
			w.scaleUp(t)
			w.scaleDown(t)
		}
		err := w.move(t.Context(), "milan")
		alone := !came.Load()
		w.before = nil
		w.safe(t)
		w.scaleUp(t)
		w.scaleDown(t)
		w.safe(t)
		for range 2 {
			if err = w.move(t.Context(), "milan"); failure.CodeOf(err) == failure.Precondition {
				err = nil // It is there already.
			}
			w.safe(t)
		}
		if err != nil {
			t.Errorf("call %d: going on: %v", stop, err)
		}
		if t.Failed() {
			t.Fatalf("this was about call %d", stop)
		}
		if alone {
			return
		}
	}
}

// A run that stalls before its last write does not give up the copy, which another run moves on meanwhile.
func TestARunThatStallsAtItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stalled := false
	w.fail = func(verb string, object client.Object) error {
		claim := w.claim(t)
		if _, volume := object.(*corev1.PersistentVolume); verb != "patch" || !volume || claim == nil || object.GetName() == "pvc-u1" || object.GetName() != claim.Spec.VolumeName {
			return nil
		}
		copied := claim.Spec.VolumeName
		stalled = true
		w.fail = func(verb string, object client.Object) error {
			if verb == "patch" && object.GetName() == copied && w.claim(t) == nil {
				w.dead.Store(true)
				return errors.New("killed")
			}
			return nil
		}
		_ = w.move(t.Context(), "rack")
		w.fail = nil
		w.dead.Store(false)
		if w.claim(t) != nil {
			t.Fatal("the other run did not take the claim away: this proves nothing")
		}
		return nil
	}
	_ = w.move(t.Context(), "milan")
	if !stalled {
		t.Fatal("no run stalled")
	}
	w.safe(t)
	must(t, w.move(t.Context(), "rack"))
	w.moved(t)
}
