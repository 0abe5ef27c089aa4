package move

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/reflection"
)

const (
	// DefaultTimeout of Volume.
	DefaultTimeout = 30 * time.Minute
	// DefaultImage of the helper pods where the installation names none; its tag is the version of Liqo in the cluster.
	DefaultImage = "ghcr.io/liqotech/liqo-volume"
	// prefix of the names of what is made on the way.
	prefix = "liqo-move-"
	// cleanTimeout bounds the cleaning up, which happens after an interruption too.
	cleanTimeout = time.Minute
	// folder that the helper pods mount the volume at, and program that they run.
	folder, program = "/volume", "/usr/bin/liqo-volume"
)

// Options of Volume.
type Options struct {
	// Cluster that the claim is in.
	Cluster *target.Cluster
	// Namespace and Claim to move.
	Namespace, Claim string
	// TargetNode is a node, physical or virtual, of the cluster.
	TargetNode string
	// Image of the helper pods; empty means that of the installation.
	Image string
	// Resources of the helper pods.
	Resources corev1.ResourceRequirements
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
	// Streams into the helper pods; nil means the API server's.
	Streams target.Streams
}

// Report says what was moved.
type Report struct {
	// Claim that was moved, as <namespace>/<name>.
	Claim string `json:"claim"`
	// From and To are the volumes.
	From string `json:"from"`
	To   string `json:"to"`
	// Files and Bytes that were copied, and their checksum.
	Files    int64  `json:"files"`
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum"`
}

// job is one move.
type job struct {
	Options
	// run tells this run from others.
	run string
	// uid of the claim that moves.
	uid types.UID
	// claim, volume and node as they are.
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	node   *corev1.Node
	// temporary claim that the data is copied to.
	temporary *corev1.PersistentVolumeClaim
	// copy is the volume of the temporary claim.
	copy   *corev1.PersistentVolume
	report *Report
}

// Volume moves a volume.
func Volume(ctx context.Context, o Options) (*Report, error) {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	j := &job{Options: o, run: string(uuid.NewUUID()), report: &Report{Claim: o.Namespace + "/" + o.Claim}}
	if j.Streams == nil {
		j.Streams = o.Cluster
	}
	ended, err := j.resume(ctx)
	if err != nil {
		return nil, again(err)
	}
	if ended {
		return j.report, nil
	}
	for _, s := range []struct {
		title, done string
		run         func(context.Context, progress.Task) error
	}{
		{"Looking at the claim", "", j.load},
		{"Removing what an earlier try left", "", j.clean},
		{"Checking preconditions", "Preconditions hold", j.check},
	} {
		if err := j.step(ctx, s.title, s.done, s.run); err != nil {
			return nil, err
		}
	}
	err = j.transfer(ctx)
	if err == nil {
		err = j.exchange(ctx)
	}
	if err != nil {
		return nil, j.giveUp(ctx, err)
	}
	return j.report, nil
}

// transfer copies the data and proves that the copy is the same.
func (j *job) transfer(ctx context.Context) error {
	for _, s := range []struct {
		title, done string
		run         func(context.Context, progress.Task) error
	}{
		{"Preparing the volume on node " + j.TargetNode, "", j.prepare},
		{"Copying the data", "Data copied", j.stream},
		{"Comparing the checksums of both volumes", "Both volumes hold the same", j.verify},
		{"Removing the helper pods", "", j.dismiss},
	} {
		if err := j.step(ctx, s.title, s.done, s.run); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) step(ctx context.Context, title, done string, run func(context.Context, progress.Task) error) error {
	return progress.Run(ctx, j.Observer, j.Cluster.Name, title, func(ctx context.Context, task progress.Task) (string, error) {
		return done, run(ctx, task)
	})
}

// name of what is made on the way: the same at every try.
func (j *job) name() string { return prefix + string(j.uid) }

func (j *job) labels() map[string]string {
	return map[string]string{offloadingv1beta1.MoveLabel: string(j.uid)}
}

// clean removes what a try made: helper pods first, because they keep the claim. A copy that another run is about to give to
// the claim stays.
func (j *job) clean(ctx context.Context, task progress.Task) error {
	if err := j.dismiss(ctx, task); err != nil {
		return err
	}
	temporary, err := j.made(ctx, j.name())
	if err != nil || temporary == nil {
		return err
	}
	// Whatever its class says: half a copy, or one that is not used, is of no use to anybody.
	if name := temporary.Spec.VolumeName; name == reflection.VolumeName(temporary.UID) {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		found, err := j.Cluster.Get(ctx, volume)
		if err != nil {
			return err
		}
		if volume.Annotations[offloadingv1beta1.MovedClaimAnnotation] != "" {
			return failure.New(failure.Failed, "run the same command again when that has ended", "another move of the claim is under way")
		}
		if found && volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			err := j.patch(ctx, volume, map[string]any{"metadata": map[string]any{"resourceVersion": volume.ResourceVersion},
				"spec": map[string]any{"persistentVolumeReclaimPolicy": corev1.PersistentVolumeReclaimDelete}})
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("giving up PersistentVolume %s: %w", name, err)
			}
		}
	}
	return j.remove(ctx, task, temporary)
}

// made reads a claim that a move makes on the way; nil if it is not there.
func (j *job) made(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: name}}
	found, err := j.Cluster.Get(ctx, claim)
	if err != nil || !found {
		return nil, err
	}
	if claim.Labels[offloadingv1beta1.MoveLabel] != string(j.uid) {
		return nil, fmt.Errorf("%s exists and was not made by a move", j.Cluster.Describe(claim))
	}
	return claim, nil
}

// dismiss removes the helper pods and waits until they are gone.
func (j *job) dismiss(ctx context.Context, task progress.Task) error {
	pods := &corev1.PodList{}
	if err := j.Cluster.List(ctx, pods, client.InNamespace(j.Namespace), client.MatchingLabels(j.labels())); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := j.remove(ctx, task, &pods.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
