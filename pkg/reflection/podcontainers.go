package reflection

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// remoteReplaced is what is shown of a pod that the provider makes again.
const remoteReplaced = "the remote pod was evicted and is made again"

// initField is where the statuses of init containers are.
const initField = "initContainerStatuses"

// maxRestarts bounds restart counts, so that adding them up cannot overflow.
const maxRestarts = 1 << 24

func (t *translation) containers() {
	t.out.ContainerStatuses = t.list("containerStatuses", names(t.local.Spec.Containers),
		t.local.Status.ContainerStatuses, t.remote.Status.ContainerStatuses)
	t.out.InitContainerStatuses = t.list(initField, names(t.local.Spec.InitContainers),
		t.local.Status.InitContainerStatuses, t.remote.Status.InitContainerStatuses)
	ephemeral := make([]string, len(t.local.Spec.EphemeralContainers))
	for i := range ephemeral {
		ephemeral[i] = t.local.Spec.EphemeralContainers[i].Name
	}
	t.out.EphemeralContainerStatuses = t.list("ephemeralContainerStatuses", ephemeral,
		t.local.Status.EphemeralContainerStatuses, t.remote.Status.EphemeralContainerStatuses)
}

// ends leaves nothing running in a pod that is over, whatever of it was not reported any more.
func (t *translation) ends() {
	if !Terminal(t.out.Phase) {
		return
	}
	for _, list := range [][]corev1.ContainerStatus{t.out.InitContainerStatuses, t.out.ContainerStatuses} {
		for i := range list {
			if list[i].State.Running != nil {
				endContainer(&list[i], lostExitCode, lostReason, metav1.Time{})
			}
		}
	}
}

func names(containers []corev1.Container) []string {
	list := make([]string, len(containers))
	for i := range containers {
		list[i] = containers[i].Name
	}
	return list
}

// list returns one status per known container that has one, in the order of the specification.
func (t *translation) list(field string, known []string, local, remote []corev1.ContainerStatus) []corev1.ContainerStatus {
	byName := make(map[string]*corev1.ContainerStatus, len(remote))
	for i := range remote {
		if _, twice := byName[remote[i].Name]; twice {
			t.refuse(field, "container %q is listed twice", bounded(remote[i].Name))
			continue
		}
		byName[remote[i].Name] = &remote[i]
	}
	var out []corev1.ContainerStatus
	for _, name := range known {
		before := containerStatus(local, name)
		now := byName[name]
		delete(byName, name)
		switch {
		case now != nil && !t.stays(before, now):
			out = append(out, t.container(field, before, now))
		case before != nil:
			out = append(out, t.kept(field, before, now))
		}
	}
	if len(byName) > 0 {
		t.refuse(field, "%d containers are not the pod's", len(byName))
	}
	return out
}

// kept is the status of a container that the remote pod says nothing new about: nothing is known to run. One of a pod that was evicted
// waits for the next one, which counts as a restart.
func (t *translation) kept(field string, before, now *corev1.ContainerStatus) corev1.ContainerStatus {
	kept := *before.DeepCopy()
	kept.Ready = completed(&kept) && kept.Ready
	if now != nil && t.replacing() && kept.State.Running != nil {
		kept.Started = new(false)
		if now.State.Terminated != nil {
			kept.LastTerminationState = t.state(field, now.Name, &before.LastTerminationState, &now.State)
		}
		kept.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: offloadingv1beta1.ReasonRemotePodMissing, Message: remoteReplaced}}
	}
	return kept
}

// replacing tells whether the remote pod is over while the local one is not, because the provider makes it again.
func (t *translation) replacing() bool { return Terminal(t.remote.Status.Phase) && !t.finished }

// completed tells whether a container did what it was to do.
func completed(status *corev1.ContainerStatus) bool {
	return status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
}

func containerStatus(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// stays tells whether the local status of a container is kept. That is so while the provider has to make an evicted pod
// again, and for containers that ended for good: Kubernetes does not let them run again in the same pod.
func (t *translation) stays(before, now *corev1.ContainerStatus) bool {
	if t.replacing() {
		return before != nil
	}
	if before == nil || before.State.Terminated == nil || now.State.Terminated != nil {
		return false
	}
	return !mayRunAgain(&t.local.Spec, before.Name, before.State.Terminated.ExitCode)
}

func (t *translation) container(field string, before, now *corev1.ContainerStatus) corev1.ContainerStatus {
	if before == nil {
		before = &corev1.ContainerStatus{}
	}
	if now.RestartCount < 0 || now.RestartCount > maxRestarts {
		t.refuse(field, "the restart count of container %q is out of bounds", now.Name)
	}
	out := corev1.ContainerStatus{
		Name: now.Name, Ready: now.Ready, Started: now.Started,
		RestartCount: min(max(now.RestartCount, 0), maxRestarts) + min(t.restarts[now.Name], maxRestarts),
		Image:        bounded(now.Image), ImageID: bounded(now.ImageID), ContainerID: bounded(now.ContainerID),
		State:                t.state(field, now.Name, &before.State, &now.State),
		LastTerminationState: t.state(field, now.Name, &before.LastTerminationState, &now.LastTerminationState),
		Resources:            t.resources(now.Name, before.Resources, now.Resources),
		AllocatedResources:   t.allocated(now.Name, before.AllocatedResources, now.AllocatedResources),
	}
	if lasting := before.LastTerminationState.Terminated; lasting != nil && t.restarts[now.Name] > 0 && now.LastTerminationState == (corev1.ContainerState{}) {
		// It is how the container ended in an earlier remote pod.
		out.LastTerminationState = *before.LastTerminationState.DeepCopy()
	}
	// A kubelet calls an init container ready that is done. No other one is that does not run.
	done := field == initField && !t.restartable(now.Name) && completed(&out)
	out.Ready = out.Ready && (out.State.Running != nil || done)
	return out
}

// state takes the first of a container's states; there may be only one.
func (t *translation) state(field, name string, before, now *corev1.ContainerState) corev1.ContainerState {
	set := 0
	for _, is := range []bool{now.Waiting != nil, now.Running != nil, now.Terminated != nil} {
		if is {
			set++
		}
	}
	if set > 1 {
		t.refuse(field, "container %q is in several states at once", name)
	}
	switch {
	case now.Terminated != nil:
		old := before.Terminated
		if old == nil {
			old = &corev1.ContainerStateTerminated{}
		}
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: now.Terminated.ExitCode, Signal: now.Terminated.Signal,
			Reason: bounded(now.Terminated.Reason), Message: bounded(now.Terminated.Message),
			StartedAt:   t.clamped(now.Terminated.StartedAt, old.StartedAt),
			FinishedAt:  t.clamped(now.Terminated.FinishedAt, old.FinishedAt),
			ContainerID: bounded(now.Terminated.ContainerID),
		}}
	case now.Running != nil:
		known := metav1.Time{}
		if before.Running != nil {
			known = before.Running.StartedAt
		}
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: t.clamped(now.Running.StartedAt, known)}}
	case now.Waiting != nil:
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: bounded(now.Waiting.Reason), Message: bounded(now.Waiting.Message)}}
	default:
		return corev1.ContainerState{}
	}
}

// restartable tells whether a container is a sidecar: an init container that runs beside the others.
func (t *translation) restartable(name string) bool { return sidecars(&t.local.Spec)[name] }

// sidecars are the names of the init containers that run beside the others.
func sidecars(spec *corev1.PodSpec) map[string]bool {
	list := map[string]bool{}
	for i := range spec.InitContainers {
		if policy := spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			list[spec.InitContainers[i].Name] = true
		}
	}
	return list
}

// bounded makes a text of the provider fit to be shown.
func bounded(text string) string { return corev1beta1.BoundMessage(text) }
