package volume

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

func class(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

func claim(name, class, node string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-" + "1"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if node != "" {
		c.Annotations = map[string]string{annotationSelectedNode: node}
	}
	return c
}

// run starts the provisioner with one real node and returns the folder for volumes.
func run(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "rome-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, client, root) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the provisioner ended: %v", err)
		}
	})
	return root
}

func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*time.Minute, true, condition); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func TestClaims(t *testing.T) {
	const wait, now = storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	for sentence, c := range map[string]struct {
		class *storagev1.StorageClass
		node  string
		want  bool
	}{
		"a claim on a real node gets a volume":               {class("standard", Provisioner, wait), "rome-1", true},
		"a claim without a node waits":                       {class("standard", Provisioner, wait), "", false},
		"a claim on a node that is not real is left alone":   {class("standard", Provisioner, wait), "virtual", false},
		"a claim of another provisioner is left alone":       {class("standard", "other", wait), "rome-1", false},
		"an immediate claim gets a volume on some real node": {class("standard", Provisioner, now), "", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := fake.NewClientset(c.class)
			root := run(t, client)
			// The class is known when a later claim of it was answered, or was not.
			if _, err := client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim("data", "standard", c.node), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(root, "rome-1", "pvc-uid-1")
			if !c.want {
				short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				<-short.Done()
				if list, err := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
					t.Errorf("volumes %v, error %v, want none", list.Items, err)
				}
				return
			}
			eventually(t, "the volume", func(ctx context.Context) (bool, error) {
				v, err := client.CoreV1().PersistentVolumes().Get(ctx, "pvc-uid-1", metav1.GetOptions{})
				if err != nil {
					return false, client404(err)
				}
				return v.Spec.HostPath.Path == path && v.Spec.ClaimRef.Name == "data", nil
			})
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o777 {
				t.Errorf("folder: %v, error %v, want mode 0777", info, err)
			}
		})
	}
}

func TestReleasedVolumes(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(v *corev1.PersistentVolume, root string)
		want   bool
	}{
		"ours goes with its folder":         {func(*corev1.PersistentVolume, string) {}, true},
		"a path outside our folder is left": {func(v *corev1.PersistentVolume, root string) { v.Spec.HostPath.Path = filepath.Join(root, "rome-1") }, false},
		"one that is to be retained is left": {func(v *corev1.PersistentVolume, _ string) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false},
		"one of another provisioner is left":    {func(v *corev1.PersistentVolume, _ string) { v.Annotations = nil }, false},
		"one that is still bound is left alone": {func(v *corev1.PersistentVolume, _ string) { v.Status.Phase = corev1.VolumeBound }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := fake.NewClientset()
			root := run(t, client)
			v := Volume(claim("data", "standard", "rome-1"), class("standard", Provisioner, storagev1.VolumeBindingImmediate), "rome-1", root)
			v.Status.Phase = corev1.VolumeReleased
			c.change(v, root)
			folder := filepath.Join(root, "rome-1", v.Name)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := client.CoreV1().PersistentVolumes().Create(t.Context(), v, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			gone := func(ctx context.Context) (bool, error) {
				_, err := client.CoreV1().PersistentVolumes().Get(ctx, v.Name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			}
			if c.want {
				eventually(t, "the volume's end", gone)
			} else {
				short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				if err := wait.PollUntilContextCancel(short, 10*time.Millisecond, true, gone); err == nil {
					t.Error("the volume was deleted")
				}
			}
			if _, err := os.Stat(folder); (err != nil) != c.want {
				t.Errorf("folder: %v, want it gone: %t", err, c.want)
			}
		})
	}
}
