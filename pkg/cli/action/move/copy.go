package move

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/diagnosis"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/reflection"
)

// The helper pods.
const (
	sender   = "-source"
	receiver = "-target"
	// tell is how often the progress is shown.
	tell = time.Second
)

// prepare makes the temporary claim and the helper pods, and waits until they run.
func (j *job) prepare(ctx context.Context, task progress.Task) error {
	j.temporary = j.temporaryClaim()
	if err := j.Cluster.Client.Create(ctx, j.temporary); err != nil {
		return fmt.Errorf("creating %s: %w", j.Cluster.Describe(j.temporary), err)
	}
	onTarget := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{j.TargetNode},
		}}}},
	}}}
	return j.start(ctx, task, j.sender(j.Claim), j.helper(receiver, j.temporary.Name, onTarget, clusterOf(j.node) != ""))
}

// sender is the helper pod that reads the source through one of its claims.
func (j *job) sender(claim string) *corev1.Pod {
	_, away := reflection.HandleOf(j.volume)
	return j.helper(sender, claim, nil, away)
}

// start makes helper pods and waits until they run.
func (j *job) start(ctx context.Context, task progress.Task, pods ...*corev1.Pod) error {
	for _, pod := range pods {
		if err := j.Cluster.Client.Create(ctx, pod); err != nil {
			return fmt.Errorf("creating %s: %w", j.Cluster.Describe(pod), err)
		}
	}
	for _, pod := range pods {
		err := await.Until(ctx, task, "pod "+pod.Name+" to run", func(ctx context.Context) (bool, string, error) {
			found, err := j.Cluster.Get(ctx, pod)
			if err == nil && !found {
				err = failure.New(failure.Failed, "run the same command again", "pod %s was deleted by somebody else", pod.Name)
			}
			if err == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Reason == offloadingv1beta1.ReasonPodRefused) {
				err = failure.New(failure.Failed, "remove the cause and run the same command again", "pod %s cannot run: %s", pod.Name, diagnosis.WhyNotReady(pod))
			}
			if err == nil {
				err = j.imaged(pod)
			}
			return err == nil && pod.Status.Phase == corev1.PodRunning, diagnosis.WhyNotReady(pod), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// imaged ends the move as soon as the image of a helper cannot be had: what was made is in the way of the claim's users until then.
func (j *job) imaged(pod *corev1.Pod) error {
	why, _ := diagnosis.WhyNoImage(pod)
	if why == "" {
		return nil
	}
	at := j.Cluster.Name
	if cluster := j.clusterOfHelper(pod); cluster != "" {
		at = cluster
	}
	return failure.New(failure.Failed,
		"load the image into the nodes, or name another one with --image or by the value storage.mover.image, and run the same command again",
		"%s (nodes of cluster %s)", why, at)
}

// clusterOfHelper is the provider that a helper runs at; empty for this cluster.
func (j *job) clusterOfHelper(pod *corev1.Pod) string {
	if strings.HasSuffix(pod.Name, receiver) {
		return clusterOf(j.node)
	}
	source, _ := reflection.HandleOf(j.volume)
	return source.Cluster
}

// temporaryClaim is like the claim that moves, at least as large as its volume is. At a provider it has that claim's name
// already, which it cannot change later.
func (j *job) temporaryClaim() *corev1.PersistentVolumeClaim {
	annotations := carried(j.claim.Annotations)
	if clusterOf(j.node) != "" {
		annotations[offloadingv1beta1.RemoteClaimNameAnnotation] = j.Claim
	}
	size := *j.claim.Spec.Resources.Requests.Storage()
	if actual := *j.claim.Status.Capacity.Storage(); actual.Cmp(size) > 0 {
		size = actual
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.name(), Labels: j.labels(), Annotations: annotations},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: j.claim.Spec.AccessModes, StorageClassName: j.claim.Spec.StorageClassName, VolumeMode: j.claim.Spec.VolumeMode,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}

// carried are a claim's annotations without those that bind it.
func carried(all map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range all {
		domain, _, _ := strings.Cut(key, "/")
		switch domain {
		case "pv.kubernetes.io", "volume.kubernetes.io", "volume.beta.kubernetes.io", "kubectl.kubernetes.io":
		default:
			kept[key] = value
		}
	}
	delete(kept, offloadingv1beta1.RemoteClaimNameAnnotation)
	delete(kept, offloadingv1beta1.MovingAnnotation)
	return kept
}

// helper is a pod that mounts a volume and waits.
func (j *job) helper(suffix, claim string, affinity *corev1.Affinity, away bool) *corev1.Pod {
	tolerations := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	if away {
		// Providers do not take pods that tolerate all; that of the virtual node is added on admission.
		tolerations = nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.name() + suffix, Labels: j.labels()},
		Spec: corev1.PodSpec{
			Affinity: affinity, Tolerations: tolerations,
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](2), ActiveDeadlineSeconds: ptr.To(int64(j.Timeout.Seconds()) + 60),
			Containers: []corev1.Container{{
				Name: "volume", Image: j.Image, Command: []string{program, "wait"}, Resources: j.Resources,
				// Files keep their owners, which only root can give them.
				SecurityContext: &corev1.SecurityContext{
					RunAsUser: ptr.To[int64](0), RunAsNonRoot: ptr.To(false), AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
					Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "volume", MountPath: folder}},
			}},
			Volumes: []corev1.Volume{{Name: "volume", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}},
		},
	}
}

// counter counts what passes.
type counter struct {
	io.Reader
	n atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// stream lets the one helper's archive flow into the other.
func (j *job) stream(ctx context.Context, task progress.Task) error {
	total, err := j.identify(ctx, sender)
	if err != nil {
		return err
	}
	j.report.Files, j.report.Bytes, j.report.Checksum = total.files, total.bytes, total.digest
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	passed := &counter{Reader: reader}
	ended := make(chan error, 2)
	go func() {
		err := j.Streams.Exec(ctx, j.Namespace, j.name()+sender, []string{program, "send", folder}, nil, writer)
		ended <- errors.Join(wrap(err, "reading the source"), writer.CloseWithError(err))
	}()
	go func() {
		err := j.Streams.Exec(ctx, j.Namespace, j.name()+receiver, []string{program, "receive", folder}, passed, io.Discard)
		ended <- errors.Join(wrap(err, "writing the copy"), reader.CloseWithError(io.ErrClosedPipe))
	}()
	ticker := time.NewTicker(tell)
	defer ticker.Stop()
	var failed error
	for open := 2; open > 0; {
		select {
		case <-ticker.C:
			task.Waiting(fmt.Sprintf("%s of %s", sizeOf(passed.n.Load()), sizeOf(total.bytes)))
		case err := <-ended:
			open--
			if err != nil && failed == nil {
				// The other end is waited for all the same: what comes next must not meet it at work.
				failed = err
				cancel()
			}
		}
	}
	return failed
}

func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func sizeOf(n int64) string {
	return resource.NewQuantity(n>>20<<20, resource.BinarySI).String() + "B"
}

// content identifies what is in a volume.
type content struct {
	digest       string
	files, bytes int64
}

// maxManifest bounds, in bytes, what a helper pod says of a volume: a checksum of 64, two numbers of 20 at most, and what stands between.
const maxManifest = 256

func (j *job) identify(ctx context.Context, suffix string) (content, error) {
	out, err := target.Answer(ctx, j.Streams, j.Namespace, j.name()+suffix, []string{program, "manifest", folder}, maxManifest)
	if err != nil {
		return content{}, fmt.Errorf("asking pod %s for the checksum: %w", j.name()+suffix, err)
	}
	fields := strings.Fields(out)
	if len(fields) != 3 || len(fields[0]) != 64 {
		return content{}, fmt.Errorf("pod %s gave no checksum", j.name()+suffix)
	}
	files, err1 := strconv.ParseInt(fields[1], 10, 64)
	size, err2 := strconv.ParseInt(fields[2], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return content{}, fmt.Errorf("reading what pod %s says of its volume: %w", j.name()+suffix, err)
	}
	return content{fields[0], files, size}, nil
}

// verify compares both ends, after the copy: the source must be what it was before it, too.
func (j *job) verify(ctx context.Context, _ progress.Task) error {
	source, err := j.identify(ctx, sender)
	if err != nil {
		return err
	}
	target, err := j.identify(ctx, receiver)
	if err != nil {
		return err
	}
	before := content{j.report.Checksum, j.report.Files, j.report.Bytes}
	if source != before {
		return failure.New(failure.Failed, "stop whatever writes to it, and run the same command again", "the source changed during the copy")
	}
	if source != target {
		return failure.New(failure.Failed, "run the same command again", "the copy differs from the source: %d files of %d bytes instead of %d of %d",
			target.files, target.bytes, source.files, source.bytes)
	}
	found, err := j.Cluster.Get(ctx, j.temporary)
	if err == nil && (!found || j.temporary.Spec.VolumeName == "") {
		err = errors.New("the temporary claim lost its volume")
	}
	if err != nil {
		return err
	}
	j.copy = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: j.temporary.Spec.VolumeName}}
	if found, err = j.Cluster.Get(ctx, j.copy); err == nil && (!found || !reflection.OwnVolume(j.copy)) {
		err = errors.New("the volume of the temporary claim is gone")
	}
	j.report.To = j.copy.Name
	return err
}

// remove deletes an object and waits until it is gone.
func (j *job) remove(ctx context.Context, task progress.Task, object client.Object) error {
	if err := j.Cluster.Remove(ctx, object); err != nil {
		return err
	}
	return removal.Gone(ctx, task, j.Cluster, object)
}
