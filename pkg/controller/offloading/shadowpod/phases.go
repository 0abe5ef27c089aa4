package shadowpod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/marks"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// lag is how long to wait for the cache to show what was just written, if no event does it.
const lag = 2 * time.Second

// fresh is an age at which a ShadowPod cannot have lost a Pod without this process knowing: no other replica takes over, or
// is taken over from, so fast.
const fresh = 10 * time.Second

// reserved are the annotations that only this controller writes to pods, or that are about the ShadowPod.
var reserved = []string{
	offloadingv1beta1.LogsRequestedAnnotation, offloadingv1beta1.EndsInAnnotation, offloadingv1beta1.OpenGatesAnnotation,
	offloadingv1beta1.CreatorUserAnnotation, offloadingv1beta1.ResourcesAskedAnnotation, offloadingv1beta1.AskedAnnotation,
	offloadingv1beta1.ReflectedKeysAnnotation, offloadingv1beta1.ContainersAnnotation, offloadingv1beta1.NoPullSecretsAnnotation,
}

// substitutes are prefixes of annotations that stand for fields of a specification, and of those of static pods: what they say is
// said by the fields, which are checked.
var substitutes = []string{
	"container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/",
	"seccomp.security.alpha.kubernetes.io/", "kubernetes.io/config.",
}

// scope is what one pass learns.
type scope struct {
	// shadow as it is in the API server, changed by report, but for what its Pod does without.
	shadow *offloadingv1beta1.ShadowPod
	// lacks says which labels and annotations these are, and reduced what of the specification; empty if there is nothing.
	lacks, reduced string
	// gates says which readiness gates of the consumer's pod are not met; nil if that pod has none.
	gates *string
	// pod of the same name, nil if there is none.
	pod *corev1.Pod
	// decision taken over the two.
	decision Decision
	// verdicts on the changes of a Pod that runs, from debug and resize; what they did not look at has none.
	verdicts []verdict
	// refused are the changes of labels, annotations and the specification that the provider does not take, in words, and why is the
	// reason of it.
	refused []string
	why     string
}

// act carries the decision out.
func (r *reconciler) act(ctx context.Context, s *scope) error {
	switch s.decision.Action {
	case Create:
		return r.create(ctx, s)
	case Record:
		if err := r.record(ctx, s); err != nil {
			return err
		}
		return r.release(ctx, s.pod)
	case Release:
		if err := r.present(ctx, s); err != nil {
			return err
		}
		return r.release(ctx, s.pod)
	case Replace, Evict:
		if err := r.present(ctx, s); err != nil {
			return err
		}
		return r.remove(ctx, s)
	case Stop:
		if err := r.record(ctx, s); err != nil || !s.runs() {
			return err
		}
		return r.remove(ctx, s)
	case End:
		return r.remove(ctx, s, client.GracePeriodSeconds(s.decision.Grace))
	case Await:
		if s.decision.After > 0 {
			return nil
		}
		return reconcile.Wait(offloadingv1beta1.ReasonPodTerminated, s.decision.Message, reconcile.RefusedRetry)
	case Conflict:
		return reconcile.NotOurs(offloadingv1beta1.ReasonPodConflict, "Pod", client.ObjectKeyFromObject(s.shadow))
	default:
		return r.follow(ctx, s)
	}
}

// runs tells whether there is a Pod that nobody deleted.
func (s *scope) runs() bool { return s.pod != nil && s.pod.DeletionTimestamp.IsZero() }

// create makes the Pod.
func (r *reconciler) create(ctx context.Context, s *scope) error {
	if problems := r.Check(&s.shadow.Spec.Pod); len(problems) > 0 {
		return reconcile.Terminate(offloadingv1beta1.ReasonPodRefused, problems.ToAggregate())
	}
	if wait, why := r.awaitTokens(s.shadow); wait > 0 {
		s.decision = Decision{Action: Nothing, After: wait}
		return why
	}
	if wait, why := r.awaitReferences(ctx, s.shadow); wait > 0 || why != nil {
		s.decision = Decision{Action: Nothing, After: wait}
		return why
	}
	pod := build(s.shadow)
	if s.gates != nil {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: offloadingv1beta1.ReadinessGatesCondition})
	}
	if err := errors.Join(r.translate(ctx, s.shadow, &pod.Spec), loosen(ctx, r.Client, &pod.Spec)); err != nil {
		return err
	}
	if err := r.confirm(ctx, s.shadow); err != nil {
		return err
	}
	if err := r.claim(ctx, s.shadow, nil); err != nil {
		return err
	}
	err := r.Create(ctx, pod)
	r.claims.made(s.shadow, pod.UID)
	switch {
	case err == nil:
		s.pod = pod
		r.seen.Store(client.ObjectKeyFromObject(s.shadow), s.shadow.UID)
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.existing(ctx, s)
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reconcile.Wait(offloadingv1beta1.ReasonPodCreationFailed, "waiting for the namespace: "+err.Error(), reconcile.RefusedRetry)
	}
	switch reconcile.Classify(err) {
	case reconcile.Refused:
		return r.refused(s, err)
	case reconcile.Terminal:
		return reconcile.Terminate(offloadingv1beta1.ReasonPodCreationFailed, err)
	default:
		return fmt.Errorf("creating Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
}

// refused is the provider's refusal to have the Pod. Its rules may change at any time; a pod that is called invalid may also be just
// that, and is tried ever more rarely.
func (r *reconciler) refused(s *scope, err error) error {
	if reconcile.ReasonOf(err) != reconcile.ReasonInvalid {
		return reconcile.Refuse(offloadingv1beta1.ReasonPodCreationFailed, err)
	}
	var elapsed time.Duration
	ready := meta.FindStatusCondition(s.shadow.Status.Conditions, corev1beta1.ConditionReady)
	if ready != nil && ready.Reason == offloadingv1beta1.ReasonPodCreationFailed {
		elapsed = r.Clock.Since(ready.LastTransitionTime.Time)
	}
	return reconcile.RefuseAgain(offloadingv1beta1.ReasonPodCreationFailed, err, elapsed)
}

// confirm reads a ShadowPod that may have had a Pod already from the API server before it gets another one: the cache may not
// yet show that it finished or is being deleted.
func (r *reconciler) confirm(ctx context.Context, shadow *offloadingv1beta1.ShadowPod) error {
	uid, had := r.seen.Load(client.ObjectKeyFromObject(shadow))
	had = had && uid == shadow.UID || len(shadow.Status.Conditions) > 0
	if age := r.Clock.Since(shadow.CreationTimestamp.Time); !had && age >= 0 && age < fresh {
		return nil
	}
	live, err := r.live(ctx, client.ObjectKeyFromObject(shadow))
	if err != nil {
		return err
	}
	if live == nil || live.UID != shadow.UID || !live.DeletionTimestamp.IsZero() || Terminal(live.Status.Phase) {
		return reconcile.Wait(offloadingv1beta1.ReasonPodTerminated, "waiting for the cache to show the latest state of the ShadowPod", lag)
	}
	return nil
}

// live reads a ShadowPod from the API server itself, nil if there is none.
func (r *reconciler) live(ctx context.Context, key client.ObjectKey) (*offloadingv1beta1.ShadowPod, error) {
	shadow := &offloadingv1beta1.ShadowPod{}
	err := r.Live.Get(ctx, key, shadow)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ShadowPod %s: %w", key, err)
	}
	return shadow, nil
}

// present makes sure that this ShadowPod is the present one of its name before it sends away a Pod that was made for another: to a cache
// of the past the successor's is an earlier one.
func (r *reconciler) present(ctx context.Context, s *scope) error {
	if metav1.IsControlledBy(s.pod, s.shadow) {
		return nil
	}
	live, err := r.live(ctx, client.ObjectKeyFromObject(s.shadow))
	if err != nil {
		return err
	}
	if live == nil || live.UID != s.shadow.UID {
		return reconcile.Wait(offloadingv1beta1.ReasonPodTerminated, "waiting for the cache to show what became of the ShadowPod", lag)
	}
	return nil
}

// existing finds out what the Pod is that the cache does not show.
func (r *reconciler) existing(ctx context.Context, s *scope) error {
	pod, err := r.pod(ctx, r.Live, client.ObjectKeyFromObject(s.shadow))
	if err != nil {
		return err
	}
	if pod != nil && !metav1.IsControlledBy(pod, s.shadow) {
		s.pod = pod
		s.decision = Decide(s.shadow, pod, r.Clock.Now())
		return r.act(ctx, s)
	}
	return reconcile.Wait(offloadingv1beta1.ReasonPodCreated, "waiting for the cache to show the pod", lag)
}

// build is the Pod of a ShadowPod.
func build(shadow *offloadingv1beta1.ShadowPod) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: shadow.Namespace, Name: shadow.Name, Labels: podLabels(shadow), Annotations: podAnnotations(shadow),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(shadow, offloadingv1beta1.GroupVersion.WithKind("ShadowPod"))}},
		Spec: *shadow.Spec.Pod.DeepCopy(),
	}
	if user := shadow.Labels[offloadingv1beta1.CreatorUserLabel]; user != "" {
		pod.Annotations[offloadingv1beta1.CreatorUserAnnotation] = user
	}
	// Whatever the allow-list says: a consumer does not choose the node by name, and gets a token of the provider only with a
	// ServiceAccount that the rules name.
	pod.Spec.NodeName = ""
	// Kubernetes takes these for a pod that exists only; see debug.
	pod.Spec.EphemeralContainers = nil
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.AutomountServiceAccountToken = ptr.To(false)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 && pod.Spec.ServiceAccountName == "" {
		// API servers give a pod without any those of its account, which are the provider's; policy liqo-pull-secrets takes them away again.
		pod.Annotations[offloadingv1beta1.NoPullSecretsAnnotation] = "true"
	}
	pod.Annotations[offloadingv1beta1.ContainersAnnotation] = containerNames(&shadow.Spec.Pod)
	pod.Annotations[offloadingv1beta1.ResourcesAskedAnnotation] = reflection.ResourcesAsked(&shadow.Spec.Pod)
	marks.Write(pod.Annotations, marksOf(shadow))
	pod.Spec.HostNetwork, pod.Spec.HostPID, pod.Spec.HostIPC = false, false, false
	if reflection.MayEnd(&pod.Spec) {
		controllerutil.AddFinalizer(pod, offloadingv1beta1.ShadowPodRecordFinalizer)
	}
	return pod
}

// containerNames are those of a pod's containers, init containers among them.
func containerNames(spec *corev1.PodSpec) string {
	var names []string
	for i := range spec.InitContainers {
		names = append(names, spec.InitContainers[i].Name)
	}
	for i := range spec.Containers {
		names = append(names, spec.Containers[i].Name)
	}
	return strings.Join(names, ",")
}

func podLabels(shadow *offloadingv1beta1.ShadowPod) map[string]string {
	labels := maps.Clone(shadow.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, offloadingv1beta1.CreatorUserLabel)
	// Consumers of earlier versions send those of their own nodes.
	for _, key := range reflection.BoundLabels {
		delete(labels, key)
	}
	labels[offloadingv1beta1.ManagedByLabel] = offloadingv1beta1.ManagedByShadowPod
	labels[corev1beta1.ManagedLabel] = "true"
	if ptr.Deref(shadow.Spec.Pod.ShareProcessNamespace, false) {
		labels[offloadingv1beta1.SharedProcessesLabel] = "true"
	}
	return labels
}

func podAnnotations(shadow *offloadingv1beta1.ShadowPod) map[string]string {
	annotations := map[string]string{}
	for key, value := range shadow.Annotations {
		if !hasPrefix(key, substitutes) && !slices.Contains(reserved, key) {
			annotations[key] = value
		}
	}
	return annotations
}

// podKeys are the labels and annotations that a ShadowPod asks for.
func podKeys(shadow *offloadingv1beta1.ShadowPod) (labels, annotations map[string]string) {
	return shadow.Labels, podAnnotations(shadow)
}

func hasPrefix(key string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// record writes down how the Pod ended, or that it is stopped: whatever happens next, none is made again then. One that turns out to have
// finished is not stopped.
func (r *reconciler) record(ctx context.Context, s *scope) error {
	before := s.shadow.DeepCopy()
	switch {
	case s.decision.Action != Stop:
		s.shadow.Status.Phase = s.pod.Status.Phase
		s.shadow.Status.ContainerStatuses = s.pod.Status.ContainerStatuses
		s.terminated()
	case stopped(s.shadow):
		return nil
	default:
		live, err := r.pod(ctx, r.Live, client.ObjectKeyFromObject(s.shadow))
		if err != nil {
			return err
		}
		if live != nil && reflection.Finished(&live.Spec, live) {
			return reconcile.Wait(offloadingv1beta1.ReasonPodTerminated, "waiting for the cache to show how the pod finished", lag)
		}
		s.shadow.Status.Phase = corev1.PodFailed
		s.ready(metav1.ConditionTrue, offloadingv1beta1.ReasonStoppedOnPartition, s.decision.Message)
	}
	if err := r.Status().Patch(ctx, s.shadow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("recording the end of ShadowPod %s/%s: %w", s.shadow.Namespace, s.shadow.Name, err)
	}
	r.finished.Store(client.ObjectKeyFromObject(s.shadow), s.shadow.UID)
	return nil
}

// release removes our finalizer from a Pod.
func (r *reconciler) release(ctx context.Context, pod *corev1.Pod) error {
	changed := pod.DeepCopy()
	if !controllerutil.RemoveFinalizer(changed, offloadingv1beta1.ShadowPodRecordFinalizer) {
		return nil
	}
	err := r.Patch(ctx, changed, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// remove deletes the Pod.
func (r *reconciler) remove(ctx context.Context, s *scope, options ...client.DeleteOption) error {
	return keep.Delete(ctx, r.Client, s.pod, options...)
}

// orphaned lets the Pod of a ShadowPod go that does not exist any more.
func (r *reconciler) orphaned(ctx context.Context, req ctrl.Request) error {
	r.finished.Delete(req.NamespacedName)
	r.efforts.Delete(req.NamespacedName)
	r.seen.Delete(req.NamespacedName)
	if r.Tokens != nil {
		r.Tokens.Forget(req.NamespacedName)
	}
	pod, err := r.pod(ctx, r.Client, req.NamespacedName)
	if err != nil || pod == nil || !held(pod) {
		return err
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ShadowPod" || owner.Name != pod.Name {
		return nil
	}
	live, err := r.live(ctx, req.NamespacedName)
	if err != nil {
		return err
	}
	if live != nil {
		return reconcile.Wait(offloadingv1beta1.ReasonPodTerminated, "waiting for the cache to show the ShadowPod", lag)
	}
	return r.release(ctx, pod)
}
