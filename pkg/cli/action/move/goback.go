package move

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

// resume looks for a move of this claim that was interrupted. If its copy was proved, it is ended; whether that was the whole
// task is returned. Otherwise the claim may have been used since: it gets its old volume, and is moved anew.
func (j *job) resume(ctx context.Context) (bool, error) {
	_, m, err := j.remembered(ctx)
	if err != nil || m == nil {
		return false, err
	}
	j.uid = m.UID
	if !m.Proved {
		j.Observer.Note(progress.Info, j.Cluster.Name, "Going back before a move to node "+m.node()+" that was interrupted")
		return false, j.goBack(ctx, m)
	}
	j.Observer.Note(progress.Info, j.Cluster.Name, "Going on with a move to node "+m.node()+" that was interrupted")
	j.report.From, j.report.To = m.From, m.Claim.Spec.VolumeName
	return m.node() == j.TargetNode, j.finish(ctx, m)
}

// giveUp undoes what was done before the copy was proved, also after an interruption, and says how to go on.
func (j *job) giveUp(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	_, m, err := j.remembered(ctx)
	switch {
	case err != nil:
	case m == nil:
		err = j.step(ctx, "Removing the unfinished copy; the source is intact", "", j.clean)
		if err == nil {
			err = j.step(ctx, "Leaving the claim as it was", "", func(ctx context.Context, _ progress.Task) error {
				_, err := j.unmark(ctx)
				return err
			})
		}
	case m.Proved:
		err = errors.New("the copy is proved, and the claim does not have it yet")
	default:
		err = j.goBack(ctx, m)
	}
	if err != nil {
		j.Observer.Note(progress.Warning, j.Cluster.Name, "The move is neither done nor undone, and no data is lost: run the same command again")
	}
	return again(cause)
}

// goBack has the claim have its old volume, as it was before the move.
func (j *job) goBack(ctx context.Context, m *moved) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Claim}}
	found, err := j.Cluster.Get(ctx, claim)
	if err != nil {
		return err
	}
	leaving := found && claim.UID == m.UID && !claim.DeletionTimestamp.IsZero()
	return j.step(ctx, "Giving the claim its old volume "+m.From, "The claim has its old volume", func(ctx context.Context, task progress.Task) error {
		if !found || leaving {
			if err := j.restore(ctx, task, m, leaving); err != nil {
				return err
			}
		} else if claim.Spec.VolumeName != m.From {
			return foreign(claim, m.From)
		}
		return j.forget(ctx, task, m)
	})
}

// restore makes the claim again, with its old volume.
func (j *job) restore(ctx context.Context, task progress.Task, m *moved, leaving bool) error {
	if leaving {
		if err := j.gone(ctx, task, m.UID); err != nil {
			return err
		}
	}
	if err := j.unlock(ctx, task); err != nil {
		return err
	}
	return j.bind(ctx, task, m.Old)
}

// forget undoes an exchange of which the claim is not affected. The mark goes first: a run that is still at it cannot delete the
// claim after that.
func (j *job) forget(ctx context.Context, task progress.Task, m *moved) error {
	claim, err := j.unmark(ctx)
	if err != nil {
		return err
	}
	if claim == nil || claim.Spec.VolumeName != m.From {
		return failure.New(failure.Failed, "run the same command again", "PersistentVolumeClaim %s/%s was changed by somebody else", j.Namespace, j.Claim)
	}
	if err := j.policy(ctx, m.From, m.FromPolicy, nil); err != nil {
		return err
	}
	if err := j.policy(ctx, m.Claim.Spec.VolumeName, corev1.PersistentVolumeReclaimDelete, nil); err != nil {
		return err
	}
	if err := j.dismiss(ctx, task); err != nil {
		return err
	}
	if err := j.removeTemporary(ctx, task); err != nil {
		return err
	}
	return j.policy(ctx, m.Claim.Spec.VolumeName, corev1.PersistentVolumeReclaimDelete, ptr.To(""))
}

// unmark takes the mark off the claim and returns what that is then, nil if there is none. It is an error if it is being deleted.
func (j *job) unmark(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Claim}}
	found, err := j.Cluster.Get(ctx, claim)
	if err != nil || !found {
		return nil, err
	}
	if _, marked := claim.Annotations[offloadingv1beta1.MovingAnnotation]; marked {
		if err := j.mark(ctx, claim, ""); err != nil {
			return nil, err
		}
	}
	if !claim.DeletionTimestamp.IsZero() {
		return nil, failure.New(failure.Failed, "run the same command again", "%s is being deleted", j.Cluster.Describe(claim))
	}
	return claim, nil
}

// mark names the run that is about to change the very claim that was read; an empty one takes the mark off. What the claim is
// then is in it.
func (j *job) mark(ctx context.Context, claim *corev1.PersistentVolumeClaim, run string) error {
	var value any
	if run != "" {
		value = run
	}
	err := j.patch(ctx, claim, map[string]any{"metadata": map[string]any{
		"uid": claim.UID, "annotations": map[string]any{offloadingv1beta1.MovingAnnotation: value}}})
	if err != nil {
		return fmt.Errorf("marking %s: %w", j.Cluster.Describe(claim), err)
	}
	return nil
}

// again adds to an error how to go on, unless it says so.
func again(err error) error {
	const next = "run the same command again"
	var failed *failure.Error
	if errors.As(err, &failed) && strings.Contains(failed.Next, next) {
		return err
	}
	return failure.New(failure.CodeOf(err), next, "%w", err)
}
