package endings

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/test/integration/fixture"
)

var env fixture.Environment

func TestMain(m *testing.M) { fixture.Main(m, &env, fixture.Options{Nodes: 2, Linked: true}) }

const (
	// virtualClass is Liqo's own StorageClass.
	virtualClass = "liqo"
	// forceTimeout is what leaving a provider that is lost may take: until that is known, and then all of it.
	forceTimeout = 90 * time.Second
	// refusalTimeout is what a command may take to refuse.
	refusalTimeout = 20 * time.Second
)

var (
	once sync.Once
	// managers of rome and milan, by cluster ID.
	managers = map[string]*fixture.Manager{}
)

// contents are what a namespace holds when the provider is lost, by what it is called.
var contents = []string{"no pod", "refused pod", "running pod", "finished pod", "volume"}

// world is one peering, with a namespace for each of the contents.
type world struct {
	kubelet *fixture.Kubelet
	// namespaces at rome by their contents; the twins have the same names.
	namespaces map[string]string
	// kept are user's objects, by namespace, that no ending may take without a word.
	kept map[string][]client.Object
}

// whole is a peering that a test has left in order, for the next one to go on with; nil if there is none.
var whole *world

// handOn leaves the peering to the next test, without what this one offloaded.
func (w *world) handOn(t *testing.T, namespace string) {
	t.Helper()
	err := offload.Undo(t.Context(), offload.UndoOptions{
		Cluster: env.Rome.Target(t), Namespaces: []string{namespace}, DeleteVolumes: true, Timeout: fixture.Patience})
	fixture.Must(t, "taking namespace "+namespace+" back", err)
	fixture.Must(t, "deleting namespace "+namespace, env.Rome.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	if !t.Failed() {
		whole = w
	}
}

// begin peers rome with milan, unless an earlier test has left that to this one.
func begin(t *testing.T) *world {
	t.Helper()
	env.Explain(t)
	w := whole
	whole = nil
	if w == nil {
		w = anew(t)
	} else {
		w.awaitShows(t, "all to be well after the test before", "")
	}
	fixture.Await(t, fixture.Patience, "the VirtualNode to show the provider's storage class", func(ctx context.Context) (bool, string) {
		vn := &offloadingv1beta1.VirtualNode{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.kubelet.Node}, vn)
		return err == nil && slices.ContainsFunc(vn.Spec.StorageClasses, func(c authv1beta1.StorageType) bool { return c.StorageClassName == fixture.SimulatedClass }),
			fmt.Sprint(vn.Spec.StorageClasses, err)
	})
	return w
}

// anew peers rome with milan.
func anew(t *testing.T) *world {
	t.Helper()
	once.Do(func() {
		for _, c := range []*fixture.Cluster{env.Rome, env.Milan} {
			managers[c.ID] = env.StartManager(t, c)
			c.SimulateStorage(t)
		}
	})
	// A peering that an earlier test could not end is that test's failure, and would be this one's after many minutes.
	fixture.Await(t, fixture.Patience, "no tenant namespace of an earlier test to be terminating", func(ctx context.Context) (bool, string) {
		namespace := &corev1.Namespace{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: fixture.ConsumerNamespace}, namespace)
		return apierrors.IsNotFound(err) || (err == nil && namespace.DeletionTimestamp == nil), fmt.Sprint(namespace.Status, err)
	})
	return &world{kubelet: env.Peer(t), namespaces: map[string]string{}, kept: map[string][]client.Object{}}
}

// newWorld peers rome with milan and offloads the namespaces.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := begin(t)
	var group sync.WaitGroup
	var lock sync.Mutex
	for _, content := range contents {
		group.Go(func() {
			namespace := w.offload(t, strings.ReplaceAll(content, " ", "-"))
			lock.Lock()
			defer lock.Unlock()
			w.namespaces[content] = namespace
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	w.fill(t)
	return w
}

// offload makes a namespace and offloads it.
func (w *world) offload(t *testing.T, words string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique(words)}}
	fixture.Must(t, "creating a namespace", env.Rome.Client.Create(t.Context(), namespace))
	_, err := offload.Namespace(t.Context(), offload.Options{Cluster: env.Rome.Target(t), Namespaces: []string{namespace.Name}, Timeout: fixture.Patience,
		Spec: offloadingv1beta1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: offloadingv1beta1.EnforceSameNameMappingStrategyType,
			PodOffloadingStrategy:    offloadingv1beta1.RemotePodOffloadingStrategyType,
		}})
	fixture.Must(t, "offloading namespace "+namespace.Name, err)
	env.Rome.AwaitServiceAccount(t, namespace.Name)
	return namespace.Name
}

// fill makes the contents of the namespaces, and a ConfigMap of the user in each.
func (w *world) fill(t *testing.T) {
	t.Helper()
	for _, namespace := range w.namespaces {
		w.keep(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: map[string]string{"a": "b"}})
	}
	refused, running := pod(w.namespaces["refused pod"]), pod(w.namespaces["running pod"])
	// The scheduler would not place it.
	refused.Spec.NodeName = w.kubelet.Node
	refused.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}}}}
	finished := pod(w.namespaces["finished pod"])
	finished.Spec.RestartPolicy = corev1.RestartPolicyNever
	data, user := volume(w.namespaces["volume"])
	w.keep(t, data)
	for _, p := range []*corev1.Pod{refused, running, finished, user} {
		fixture.Must(t, "creating a pod in "+p.Namespace, env.Rome.Client.Create(t.Context(), p))
	}
	awaitPod(t, env.Rome, refused, "to be refused", func(p *corev1.Pod) bool { return p.Status.Reason == offloadingv1beta1.ReasonPodRefused })
	for _, p := range []*corev1.Pod{running, finished, user} {
		awaitPod(t, env.Rome, p, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	}
	finish(t, finished)
	awaitPod(t, env.Rome, finished, "to be done", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	fixture.Must(t, "reading the claim", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(data), data))
	bound := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: data.Spec.VolumeName}}
	fixture.Must(t, "reading the volume", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(bound), bound))
	w.kept[data.Namespace] = append(w.kept[data.Namespace], bound)
}

// keep makes an object of a user that has to stay.
func (w *world) keep(t *testing.T, object client.Object) {
	t.Helper()
	fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	w.kept[object.GetNamespace()] = append(w.kept[object.GetNamespace()], object)
}

// volume is a claim for a volume at milan, and a pod that uses it.
func volume(namespace string) (data *corev1.PersistentVolumeClaim, user *corev1.Pod) {
	user = pod(namespace)
	class := virtualClass
	data = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	user.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	user.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	return data, user
}

func pod(namespace string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
}

// finish has the pod at milan of that name end well.
func finish(t *testing.T, p *corev1.Pod) {
	t.Helper()
	ended := metav1.Now().UTC().Format(time.RFC3339)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"phase": "Succeeded", "containerStatuses": []map[string]any{{"name": "a", "image": "b", "imageID": "",
		"ready": false, "restartCount": 0, "state": map[string]any{"terminated": map[string]any{"exitCode": 0, "reason": "Completed", "startedAt": ended, "finishedAt": ended}}}}}})
	fixture.Must(t, "encoding a status", err)
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	fixture.Must(t, "ending the pod at milan", env.Milan.Client.Status().Patch(t.Context(), remote, client.RawPatch(types.MergePatchType, patch)))
}

func awaitPod(t *testing.T, c *fixture.Cluster, of *corev1.Pod, what string, ask func(*corev1.Pod) bool) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, fmt.Sprintf("pod %s/%s of %s %s", of.Namespace, of.Name, c.ID, what), func(ctx context.Context) (bool, string) {
		live := &corev1.Pod{}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(of), live)
		return err == nil && ask(live), fmt.Sprintf("%s %s %s %v %v", live.Status.Phase, live.Status.Reason, live.Status.Message, live.Status.Conditions, err)
	})
}

// awaitLost waits until rome knows that nothing can be done at milan any more.
func (w *world) awaitLost(t *testing.T) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, "rome to know that milan is lost", func(ctx context.Context) (bool, string) {
		fc := &corev1beta1.ForeignCluster{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: "milan"}, fc)
		return err == nil && fc.WhyLost() != "", fmt.Sprint(fc.Status.Conditions, fc.Status.Modules.Authentication.Conditions, err)
	})
}

// forget has milan forget rome, so that they can peer again.
func forget(t *testing.T) {
	t.Helper()
	_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: env.Milan.Target(t), PeerID: "rome", DeleteVolumes: true, Timeout: 2 * forceTimeout})
	fixture.Must(t, "leaving rome at milan", unlessForgotten(err, "milan", "rome"))
}

// unlessForgotten is the error of an end by force, but for that of a cluster which knows nothing of the peer any more.
func unlessForgotten(err error, cluster, peer string) error {
	if err != nil && strings.HasPrefix(err.Error(), "cluster "+cluster+" has no peer "+peer+", and nothing is left of one") {
		return nil
	}
	return err
}
