package pod

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// unasked knows the pods for which the provider was surely never asked, in this life or an earlier one.
//
// A pod that is deleted while the provider does not answer may go at once only if it is one of them: a creation whose answer was lost may
// have been made, and then the pod's successor would run beside it. It is known of pods that came while this process watched, because no
// other one works for this node meanwhile, and is written down for the next process before this one can end: in the pod's status, whenever
// the pod has to wait. What is written is taken back before the provider is asked.
type unasked struct {
	local kubernetes.Interface
	clock clock.PassiveClock

	mu sync.Mutex
	// pods, and whether it was written down in this life.
	pods map[types.UID]bool
}

// errCacheBehind waits for what was written to the pod.
var errCacheBehind = reconcile.Wait("LocalCacheBehind", "waiting for the local cache to show the pod", time.Second)

// came takes note of a pod that comes to the node. Of those that a first list showed an earlier process may have asked for.
func (u *unasked) came(pod *corev1.Pod, listed bool) {
	if listed && !reflection.NotRequested(&pod.Status) || everRemote(pod) {
		return
	}
	u.put(pod.UID, false)
}

func (u *unasked) put(uid types.UID, written bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pods[uid] = written
}

func (u *unasked) has(uid types.UID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, has := u.pods[uid]
	return has
}

// take forgets a pod, and tells whether it was known and written down.
func (u *unasked) take(uid types.UID) (known, written bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	written, known = u.pods[uid]
	delete(u.pods, uid)
	return known, written
}

// write writes down that the provider was never asked for a pod that has to wait. It is the work of those who ask, of whom there is one at
// a time for each pod.
func (u *unasked) write(ctx context.Context, pod *corev1.Pod) error {
	if !u.has(pod.UID) || reflection.NotRequested(&pod.Status) || reflection.Terminal(pod.Status.Phase) {
		return nil
	}
	// Noted before the call, whose answer may be lost.
	u.put(pod.UID, true)
	wanted := reflection.WithRequest(&pod.Status, false, u.clock.Now())
	if _, err := writeStatus(ctx, u.local, pod, &wanted, nil); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing down that nothing was asked for pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// ask asks the provider for a pod, after it was taken back that it was never asked. What it declined it was not asked for.
func (u *unasked) ask(ctx context.Context, pod *corev1.Pod, create func() (types.UID, error)) (types.UID, error) {
	first, written := u.take(pod.UID)
	if written {
		// The cache may not show yet what was written, if it was.
		live, err := u.live(ctx, pod)
		if err != nil {
			u.put(pod.UID, true)
			return "", err
		}
		pod = live
	}
	if reflection.NotRequested(&pod.Status) {
		wanted := reflection.WithRequest(&pod.Status, true, u.clock.Now())
		_, err := writeStatus(ctx, u.local, pod, &wanted, nil)
		if err != nil && first {
			u.put(pod.UID, written)
		}
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return "", errCacheBehind
		case err != nil:
			return "", fmt.Errorf("writing down that pod %s/%s is asked for: %w", pod.Namespace, pod.Name, err)
		}
	}
	uid, err := create()
	if first && declined(err) {
		u.put(pod.UID, false)
	}
	return uid, err
}

// live reads the pod from this cluster's API server.
func (u *unasked) live(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	live, err := u.local.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && live.UID != pod.UID:
		return nil, errCacheBehind
	case err != nil:
		return nil, fmt.Errorf("reading pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return live, nil
}

// declined tells whether an error is the answer of a server that did not do what it was asked.
func declined(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusConflict && code != http.StatusRequestTimeout
}
