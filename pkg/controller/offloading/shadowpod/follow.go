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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/marks"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/restraint"
)

// contended is what is told while somebody keeps changing what is ours.
const contended = "somebody at the provider keeps changing %s of the pod: it is set right at most twice a minute"

// effort is what is remembered of the tries to bring a Pod in step. Losing it costs a request.
type effort struct {
	// pod and asked are what was tried for: another Pod, and other wishes, are an effort of their own.
	pod   types.UID
	asked string
	// times are those of the latest tries.
	times restraint.Writes
	// refused is what the last try was refused, in words.
	refused []string
	// insists is what the provider makes of labels and annotations whenever they are written.
	insists map[string]string
	// contended says what somebody keeps changing; empty if nobody does.
	contended string
	// told is when it was told last that something was put back.
	told time.Time
}

// wait is how long the same may not be tried again.
func (e *effort) wait(now time.Time) time.Duration {
	wait := e.times.Wait(now)
	if len(e.times) > 0 && len(e.refused) > 0 {
		return e.times[len(e.times)-1].Add(restraint.Within).Sub(now)
	}
	return wait
}

// follow brings to the Pod what may change in a ShadowPod: labels, annotations, and of the specification what Kubernetes lets
// change in a running pod. What of it is refused, or undone, holds up nothing else.
func (r *reconciler) follow(ctx context.Context, s *scope) error {
	if s.pod == nil || !metav1.IsControlledBy(s.pod, s.shadow) || !s.pod.DeletionTimestamp.IsZero() || !s.shadow.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := r.alter(ctx, s); err != nil {
		return client.IgnoreNotFound(err)
	}
	err := r.debug(ctx, s)
	if len(s.verdicts) == 0 && len(s.refused) > 0 {
		s.changeVerdict(nil)
	}
	err = errors.Join(err, followGates(ctx, r.Client, s, r.Clock.Now()))
	if r.Networking {
		err = errors.Join(err, followReach(ctx, r.Client, s, r.Clock.Now()))
	}
	return errors.Join(err, r.resize(ctx, s))
}

// effortOf is what is remembered of earlier tries to bring this Pod to what is asked for now.
func (r *reconciler) effortOf(s *scope) *effort {
	asked := map[string]string{}
	marks.Write(asked, marksOf(s.shadow))
	now := &effort{pod: s.pod.UID, asked: asked[offloadingv1beta1.AskedAnnotation]}
	if known, found := r.efforts.Load(client.ObjectKeyFromObject(s.shadow)); found {
		if e, ok := known.(*effort); ok && e.pod == now.pod {
			if e.asked == now.asked {
				return e
			}
			now.told, now.contended = e.told, e.contended
		}
		return now
	}
	if now.contended = contendedOf(s.shadow); now.contended != "" {
		// From before a restart: it stays told, and is not told again, until it was quiet for a while.
		now.told, now.times = r.Clock.Now(), []time.Time{r.Clock.Now()}
		r.efforts.Store(client.ObjectKeyFromObject(s.shadow), now)
	}
	return now
}

// contendedOf is what a ShadowPod says that somebody keeps changing of its Pod; empty if it says nothing of that.
func contendedOf(shadow *offloadingv1beta1.ShadowPod) string {
	said := meta.FindStatusCondition(shadow.Status.Conditions, offloadingv1beta1.ChangeRefusedCondition)
	if said == nil || said.Reason != offloadingv1beta1.ReasonContended {
		return ""
	}
	before, after, _ := strings.Cut(contended, "%s")
	rest, _ := strings.CutPrefix(said.Message, before)
	what, _, _ := strings.Cut(rest, after)
	return what
}

// alter brings labels, annotations, images, deadline and tolerations in step.
func (r *reconciler) alter(ctx context.Context, s *scope) error {
	if _, tried := r.efforts.Load(client.ObjectKeyFromObject(s.shadow)); !tried && inStep(s.pod, s.shadow) {
		return nil // most passes end here
	}
	e, now, parts := r.effortOf(s), r.Clock.Now(), allParts
	changed := altered(s.pod, s.shadow, parts, e.insists)
	if !equality.Semantic.DeepEqual(s.pod.Spec, changed.Spec) && len(r.Check(&s.shadow.Spec.Pod)) > 0 {
		parts = marks.Metadata // admission said so already
		changed = altered(s.pod, s.shadow, parts, e.insists)
	}
	if equality.Semantic.DeepEqual(s.pod, changed) {
		r.rest(s, e, now)
		return nil
	}
	r.efforts.Store(client.ObjectKeyFromObject(s.shadow), e)
	what := drift(s.pod, changed)
	if wait := e.wait(now); wait > 0 {
		if len(e.refused) == 0 {
			e.contended = what
		}
		s.say(e, wait)
		return nil
	}
	before, known := marks.Read(s.pod.Annotations)
	if err := r.try(ctx, s, e, parts); err != nil {
		return err
	}
	e.times.Add(now)
	s.say(e, restraint.Within)
	if news := known && before.Equal(marksOf(s.shadow)) && len(e.refused)+len(e.insists) == 0; news && restraint.MayTell(&e.told, now) {
		r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonRemoteChangeReverted, "ChangePod",
			"somebody at the provider changed %s of the pod; it was put back", what)
	}
	return nil
}

// say says what of an effort is in vain, and looks again after a while.
func (s *scope) say(e *effort, after time.Duration) {
	s.refused, s.why = e.refused, offloadingv1beta1.ReasonFailedReflection
	if len(e.refused) == 0 && e.contended != "" {
		s.refused, s.why = []string{fmt.Sprintf(contended, e.contended)}, offloadingv1beta1.ReasonContended
	}
	if len(s.refused) > 0 {
		s.again(after)
	}
}

// rest is a pass that finds all in step. Who kept changing it may do so again: until it was quiet for a while, that stays told.
func (r *reconciler) rest(s *scope, e *effort, now time.Time) {
	e.refused = nil
	switch wait := e.wait(now); {
	case e.contended != "" && len(e.times) > 0:
		s.say(e, e.times[len(e.times)-1].Add(restraint.Within).Sub(now))
	case wait == 0 && len(e.insists) == 0 && restraint.Due(e.told, now):
		r.efforts.Delete(client.ObjectKeyFromObject(s.shadow))
	default:
		e.contended = ""
	}
}

// again asks for another pass, the soonest that anything asked for.
func (s *scope) again(after time.Duration) {
	if s.decision.After == 0 || after < s.decision.After {
		s.decision.After = after
	}
}

// try writes the Pod. If the provider refuses that, its parts are tried one by one, so that what is refused keeps nothing else away.
func (r *reconciler) try(ctx context.Context, s *scope, e *effort, parts string) error {
	err := r.write(ctx, s, e, parts)
	e.refused = nil
	switch {
	case !refuses(err):
		return err
	case parts == marks.Metadata:
		e.refused = []string{err.Error()}
		return nil
	}
	for _, part := range []string{marks.Metadata, string(imageMark), string(deadlineMark), string(tolerationMark)} {
		switch err := r.write(ctx, s, e, part); {
		case err == nil:
		case refuses(err):
			e.refused = append(e.refused, err.Error())
		default:
			return err
		}
	}
	return nil
}

func refuses(err error) bool {
	class := reconcile.Classify(err)
	return err != nil && (class == reconcile.Refused || class == reconcile.Terminal)
}

// names of the parts, for people.
var names = map[string]string{
	marks.Metadata: "labels and annotations", string(imageMark): "images", string(deadlineMark): "activeDeadlineSeconds", string(tolerationMark): "tolerations",
}

// write brings parts of the Pod in step; the Pod becomes what the API server made of it.
func (r *reconciler) write(ctx context.Context, s *scope, e *effort, parts string) error {
	changed := altered(s.pod, s.shadow, parts, e.insists)
	if equality.Semantic.DeepEqual(s.pod, changed) {
		return nil
	}
	err := r.Patch(ctx, changed, client.MergeFromWithOptions(s.pod, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsNotFound(err):
		return err
	case err != nil && names[parts] != "":
		return fmt.Errorf("changing %s: %w", names[parts], err)
	case err != nil:
		return fmt.Errorf("changing Pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err)
	}
	if s.pod = changed; strings.Contains(parts, marks.Metadata) {
		e.insists = insistence(changed, s.shadow)
	}
	return nil
}

// drift names what differs from what it must be, a label or annotation if one does.
func drift(pod, wanted *corev1.Pod) string {
	for _, of := range []struct {
		what       string
		have, want map[string]string
	}{{"label", pod.Labels, wanted.Labels}, {"annotation", pod.Annotations, wanted.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(of.want)) {
			if shown(of.have, key) != shown(of.want, key) {
				return of.what + " " + key
			}
		}
	}
	return "the specification"
}
