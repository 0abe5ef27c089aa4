package move

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/reflection"
)

// world is a cluster whose claim data has its volume on a node of its own.
type world struct {
	*fixture.Cluster
	mu sync.Mutex
	// content of the volumes, by name.
	content map[string]string
	// after each write, with their number.
	after  func(n int)
	writes int
	// corrupt changes what is copied.
	corrupt bool
	// refuses is whether the provider takes no pods.
	refuses bool
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
	w := &world{content: map[string]string{"pvc-u1": "precious"}}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u1", Labels: map[string]string{"app": "db"}, Annotations: map[string]string{
			"team": "db", "pv.kubernetes.io/bind-completed": "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("liqo"), VolumeName: "pvc-u1", Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
	}
	volume := own("pvc-u1", map[string]string{"zone": "here"})
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "u1"}
	objects = append(objects, claim, volume,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"zone": "here"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: "milan"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "paris", Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: "paris"}}},
		&offloadingv1beta1.NamespaceMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"},
			Spec:       offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome"}},
			Status: offloadingv1beta1.NamespaceMapStatus{CurrentMapping: map[string]offloadingv1beta1.RemoteNamespaceStatus{
				"shop": {RemoteNamespace: "shop-rome", Phase: offloadingv1beta1.MappingAccepted}}},
		})
	w.Cluster = fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: objects, React: w.react})
	return w
}

// react plays Kubernetes and the provisioners.
func (w *world) react(ctx context.Context, c client.Client, written client.Object) {
	ctx = context.WithoutCancel(ctx)
	switch object := written.(type) {
	case *corev1.Pod:
		object.Status.Phase = corev1.PodRunning
		if problems := reflection.CheckShadowPod(&corev1.PodSpec{Tolerations: object.Spec.Tolerations, AutomountServiceAccountToken: ptr.To(false)}, reflection.Rules{}); w.refuses || len(problems) > 0 && at(object, "milan") {
			object.Status.Phase, object.Status.Reason, object.Status.Message = corev1.PodPending, offloadingv1beta1.ReasonPodRefused, "no pods today"
		}
		_ = c.Status().Update(ctx, object)
	case *corev1.PersistentVolumeClaim:
		if object.Spec.VolumeName == "" {
			object.Spec.VolumeName = "pvc-" + string(object.UID)
			_ = c.Update(ctx, object)
			_ = c.Create(ctx, own(object.Spec.VolumeName, nil))
		}
		object.Status.Phase = corev1.ClaimBound
		_ = c.Status().Update(ctx, object)
	}
	w.writes++
	if w.after != nil {
		w.after(w.writes)
	}
}

// Exec plays the helper pods.
func (w *world) Exec(ctx context.Context, namespace, name string, command []string, in io.Reader, out io.Writer) error {
	pod := &corev1.Pod{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return err
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reflection.PodClaims(&pod.Spec)[0]}, claim); err != nil {
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
	claim := &corev1.PersistentVolumeClaim{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "data"}, claim); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return claim
}

func (w *world) policy(t *testing.T, name string) corev1.PersistentVolumeReclaimPolicy {
	t.Helper()
	volume := &corev1.PersistentVolume{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: name}, volume); err != nil {
		t.Fatal(err)
	}
	return volume.Spec.PersistentVolumeReclaimPolicy
}

func (w *world) moved(t *testing.T) {
	t.Helper()
	claim := w.claim(t)
	if claim.Spec.VolumeName == "pvc-u1" || w.content[claim.Spec.VolumeName] != "precious" || claim.Labels["app"] != "db" || claim.Annotations["team"] != "db" {
		t.Errorf("the claim is %+v %+v, its volume holds %q", claim.ObjectMeta, claim.Spec, w.content[claim.Spec.VolumeName])
	}
	for _, name := range []string{"pvc-u1", claim.Spec.VolumeName} {
		if got := w.policy(t, name); got != corev1.PersistentVolumeReclaimDelete {
			t.Errorf("volume %s has policy %s", name, got)
		}
	}
	pods, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	if err := w.Client.List(t.Context(), pods, client.InNamespace("shop")); err != nil || len(pods.Items) > 0 {
		t.Errorf("%d helper pods are left, error %v", len(pods.Items), err)
	}
	if err := w.Client.List(t.Context(), claims, client.InNamespace("shop")); err != nil || len(claims.Items) != 1 {
		t.Errorf("%d claims, error %v", len(claims.Items), err)
	}
}

// H5: interrupted after any of its writes, a move leaves the source intact, and the same command ends it.
func TestInterruptedAnywhere(t *testing.T) {
	for stop := 1; ; stop++ {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		w.after = func(n int) {
			if n == stop {
				cancel()
			}
		}
		err := w.move(ctx, "milan")
		cancel()
		if w.content["pvc-u1"] != "precious" {
			t.Fatalf("interrupted after write %d the source holds %q", stop, w.content["pvc-u1"])
		}
		claim := w.claim(t)
		intact := claim.UID == "u1" && claim.Spec.VolumeName == "pvc-u1"
		ended := claim.Spec.VolumeName != "" && claim.Spec.VolumeName != "pvc-u1" && w.content[claim.Spec.VolumeName] == "precious"
		if kept := w.policy(t, "pvc-u1") == corev1.PersistentVolumeReclaimRetain; !intact && !ended && !kept {
			t.Fatalf("interrupted after write %d the source is neither in use nor kept, and there is no copy in its place", stop)
		}
		if err != nil {
			w.after = nil
			if err := w.move(t.Context(), "milan"); err != nil {
				t.Fatalf("interrupted after write %d, going on: %v", stop, err)
			}
		}
		w.moved(t)
		if w.writes < stop {
			return // It came to its end before the interruption.
		}
		if stop > 100 {
			t.Fatal("the move does not end")
		}
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

func TestRefusals(t *testing.T) {
	user := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}
	for name, tc := range map[string]struct {
		node    string
		objects []client.Object
		says    string
	}{
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
