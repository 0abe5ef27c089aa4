// Package volume is the lab's dynamic provisioner: it answers claims of the
// storage class "standard" with a folder on the node that the scheduler chose.
//
// It is one process per cluster beside the control plane. All nodes of a lab
// share the machine's disk, so it makes and removes the folders itself:
// <root>/<node>/<volume>. It answers only for nodes that have a folder below
// root, which are the real ones: claims of pods on other nodes are left to others.
package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// Provisioner is the name that storage classes refer to.
	Provisioner = "lab.liqo.io/hostpath"

	annotationSelectedNode  = "volume.kubernetes.io/selected-node"
	annotationProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

// Controller makes and removes volumes.
type Controller struct {
	client  kubernetes.Interface
	root    string
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	queue   workqueue.TypedRateLimitingInterface[key]
}

// key names a claim, or a volume when its namespace is empty.
type key struct{ namespace, name string }

// Run answers claims until the context ends.
func Run(ctx context.Context, client kubernetes.Interface, root string) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	c := &Controller{
		client: client, root: root,
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](100*time.Millisecond, 30*time.Second)),
	}
	defer c.queue.ShutDown()
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().PersistentVolumeClaims().Informer(), factory.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(c.enqueuer()); err != nil {
			return fmt.Errorf("watching claims and volumes: %w", err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go wait.UntilWithContext(ctx, c.work, time.Second)
	<-ctx.Done()
	return nil
}

func (c *Controller) enqueuer() cache.ResourceEventHandler {
	add := func(object any) {
		if m, ok := object.(metav1.Object); ok {
			c.queue.Add(key{m.GetNamespace(), m.GetName()})
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }}
}

func (c *Controller) work(ctx context.Context) {
	for {
		k, quit := c.queue.Get()
		if quit {
			return
		}
		if err := c.sync(ctx, k); err != nil {
			klog.FromContext(ctx).Error(err, "Volume work failed, it is tried again", "namespace", k.namespace, "name", k.name)
			c.queue.AddRateLimited(k)
		} else {
			c.queue.Forget(k)
		}
		c.queue.Done(k)
	}
}

func (c *Controller) sync(ctx context.Context, k key) error {
	if k.namespace == "" {
		volume, err := c.volumes.Get(k.name)
		if err != nil {
			return client404(err)
		}
		return c.reclaim(ctx, volume)
	}
	claim, err := c.claims.PersistentVolumeClaims(k.namespace).Get(k.name)
	if err != nil {
		return client404(err)
	}
	return c.provision(ctx, claim)
}

func client404(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// provision makes the volume of a claim that waits for one of ours.
func (c *Controller) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.StorageClassName == nil || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	class, err := c.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return client404(err)
	}
	if class.Provisioner != Provisioner {
		return nil
	}
	node, err := c.nodeFor(claim, class)
	if err != nil || node == "" {
		return err
	}
	volume := Volume(claim, class, node, c.root)
	if err := os.MkdirAll(volume.Spec.HostPath.Path, 0o777); err != nil {
		return fmt.Errorf("creating the folder of volume %s: %w", volume.Name, err)
	}
	// Pods run as any user; the process's umask must not keep them out.
	if err := os.Chmod(volume.Spec.HostPath.Path, 0o777); err != nil {
		return fmt.Errorf("opening the folder of volume %s to pods: %w", volume.Name, err)
	}
	_, err = c.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating PersistentVolume %s: %w", volume.Name, err)
	}
	return nil
}

// nodeFor returns the node for a claim's volume, or "" when it is not (yet) ours to answer.
func (c *Controller) nodeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (string, error) {
	if node := claim.Annotations[annotationSelectedNode]; node != "" {
		if _, err := os.Stat(filepath.Join(c.root, node)); err != nil {
			return "", nil //nolint:nilerr // a node that is not real has no folder
		}
		return node, nil
	}
	if class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
		return "", nil
	}
	entries, err := os.ReadDir(c.root)
	if err != nil {
		return "", fmt.Errorf("listing the nodes with volumes: %w", err)
	}
	if len(entries) == 0 {
		return "", errors.New("the cluster has no real node to hold volumes")
	}
	return entries[0].Name(), nil
}

// reclaim removes a volume of ours whose claim is gone.
func (c *Controller) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[annotationProvisionedBy] != Provisioner || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.Spec.HostPath == nil {
		return nil
	}
	// The object is data: only a folder of our own naming below root is removed.
	if matched, err := filepath.Match(filepath.Join(c.root, "*", volume.Name), volume.Spec.HostPath.Path); err != nil || !matched {
		return nil
	}
	if err := os.RemoveAll(volume.Spec.HostPath.Path); err != nil {
		return fmt.Errorf("removing the folder of volume %s: %w", volume.Name, err)
	}
	err := c.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID}})
	if client404(err) != nil {
		return fmt.Errorf("deleting PersistentVolume %s: %w", volume.Name, err)
	}
	return nil
}

// Volume returns the volume that answers a claim on a node.
func Volume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node, root string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationProvisionedBy: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: policy,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(root, node, name)},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: types.UID(claim.UID),
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}},
			}}}},
		},
	}
}
