package move

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

const (
	// DefaultTimeout of Volume.
	DefaultTimeout = 30 * time.Minute
	// DefaultImage of the helper pods, without its tag, which is the version of Liqo in the cluster.
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
	// Image of the helper pods; empty means DefaultImage in the version of the cluster.
	Image string
	// Resources of the helper pods.
	Resources corev1.ResourceRequirements
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
	// Streams into the helper pods; nil means the API server's.
	Streams Streams
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
	j := &job{Options: o, report: &Report{Claim: o.Namespace + "/" + o.Claim}}
	if j.Streams == nil {
		j.Streams = apiStreams{o.Cluster}
	}
	resumed, err := j.resume(ctx)
	if err != nil || resumed {
		return j.report, err
	}
	if err := j.step(ctx, "Checking preconditions", "Preconditions hold", j.check); err != nil {
		return nil, err
	}
	if err := j.step(ctx, "Removing what an earlier try left", "", j.clean); err != nil {
		return nil, err
	}
	if err := j.transfer(ctx); err != nil {
		// What was made on the way goes, also after an interruption; the claim is as it was.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		if cleaned := j.step(late, "Removing the unfinished copy; the source is intact", "", j.clean); cleaned != nil {
			o.Observer.Note(progress.Warning, o.Cluster.Name, "Run the same command again to have it removed")
		}
		return nil, err
	}
	return j.report, j.exchange(ctx)
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
		{"Making sure that nothing uses the volume", "", j.idle},
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
func (j *job) name() string { return prefix + string(j.claim.UID) }

func (j *job) labels() map[string]string {
	return map[string]string{offloadingv1beta1.MoveLabel: string(j.claim.UID)}
}

// clean removes what a try made: helper pods first, because they keep the claim.
func (j *job) clean(ctx context.Context, task progress.Task) error {
	if err := j.dismiss(ctx, task); err != nil {
		return err
	}
	temporary := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.name()}}
	found, err := j.Cluster.Get(ctx, temporary)
	if err != nil || !found {
		return err
	}
	if temporary.Labels[offloadingv1beta1.MoveLabel] != string(j.claim.UID) {
		return fmt.Errorf("%s exists and was not made by a move", j.Cluster.Describe(temporary))
	}
	return j.remove(ctx, task, temporary)
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
