package endings

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/peer"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
)

// peerTimeout is how long peering again may take.
const peerTimeout = 3 * time.Minute

// again peers rome with milan as 'liqoctl peer' does.
func again(ctx context.Context, t *testing.T) error {
	t.Helper()
	_, err := peer.Run(ctx, peer.Options{Consumer: env.Rome.Target(t), Provider: env.Milan.Target(t), SkipValidation: true, Timeout: peerTimeout,
		Resources: corev1.ResourceList{"cpu": resource.MustParse("1000"), "memory": resource.MustParse("1000Gi"), "pods": resource.MustParse("500")}})
	return err
}

// info is what 'liqoctl info peer milan' prints at rome, and its exit code.
func info(t *testing.T) (code int, output string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), env.Binary(t, "liqoctl"), "info", "peer", "milan")
	command.Env = []string{"KUBECONFIG=" + env.Rome.Kubeconfig, "HOME=" + t.TempDir()}
	out, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		t.Fatalf("running liqoctl: %v", err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

// shows is the reason of each object that stands for the peering at rome; empty if it is well.
func (w *world) shows(ctx context.Context) (node, virtual, foreign string, err error) {
	n, vn, fc := &corev1.Node{}, &offloadingv1beta1.VirtualNode{}, &corev1beta1.ForeignCluster{}
	err = errors.Join(
		env.Rome.Client.Get(ctx, client.ObjectKey{Name: w.kubelet.Node}, n),
		env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.kubelet.Node}, vn),
		env.Rome.Client.Get(ctx, client.ObjectKey{Name: "milan"}, fc))
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			node = c.Reason
		}
	}
	if c := conditions.Find(vn.Status.All(), corev1beta1.ConditionReady); c == nil || c.Status != string(corev1.ConditionTrue) {
		virtual = fmt.Sprint(c)
		if c != nil {
			virtual = c.Reason
		}
	}
	for _, c := range slices.Concat(fc.Status.Conditions, fc.Status.Modules.Authentication.Conditions) {
		if c.Type != corev1beta1.ConditionReady && c.Status != corev1beta1.StatusEstablished {
			foreign = c.Reason
		}
	}
	return node, virtual, foreign, err
}

func (w *world) awaitShows(t *testing.T, what, reason string) {
	t.Helper()
	fixture.Await(t, 3*fixture.Patience, what, func(ctx context.Context) (bool, string) {
		node, virtual, foreign, err := w.shows(ctx)
		return err == nil && node == reason && virtual == reason && foreign == reason, fmt.Sprintf("node %q, virtual node %q, authentication %q, error %v", node, virtual, foreign, err)
	})
}

// The administrator of milan ends the peering there, by the command or by hand: rome says so, and peering again heals all.
func TestWhatTheProviderEndedIsSeenAndHealsByPeeringAgain(t *testing.T) {
	remove := func(t *testing.T) {
		fixture.Must(t, "deleting the tenant namespace", env.Milan.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.ProviderNamespace}}))
		fixture.Await(t, 2*fixture.Patience, "the tenant namespace to go", func(ctx context.Context) (bool, string) {
			err := env.Milan.Client.Get(ctx, client.ObjectKey{Name: fixture.ProviderNamespace}, &corev1.Namespace{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
	for _, tc := range []struct {
		name string
		end  func(t *testing.T)
		// empty says that no namespace is offloaded, so that nothing is asked of milan.
		empty bool
	}{
		{"unpeer --force", forget, false},
		{"unpeer --force, nothing is offloaded", forget, true},
		{"its tenant namespace is deleted", remove, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := begin(t)
			running := pod("")
			if !tc.empty {
				running.Namespace = w.offload(t, "shop")
				fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), running))
				awaitPod(t, env.Rome, running, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
			}
			w.awaitShows(t, "all to be well", "")
			started := time.Now()
			tc.end(t)
			w.awaitShows(t, "the loss of the rights to show", corev1beta1.ReasonRightsRevoked)
			t.Logf("it showed after %s", time.Since(started).Round(time.Second))
			if code, out := info(t); code != 4 || !strings.Contains(out, corev1beta1.ReasonRightsRevoked) {
				t.Errorf("info exits with %d:\n%s", code, out)
			}
			if !tc.empty {
				awaitPod(t, env.Rome, running, "to fail", func(p *corev1.Pod) bool {
					return p.Status.Phase == corev1.PodFailed && p.Status.Reason == offloadingv1beta1.ReasonRightsRevoked
				})
			}
			fixture.Must(t, "peering again", again(t.Context(), t))
			w.awaitShows(t, "all to be well again", "")
			if tc.empty {
				running.Namespace = w.offload(t, "shop")
			}
			late := pod(running.Namespace)
			late.Name = "late"
			fixture.Must(t, "creating another pod", env.Rome.Client.Create(t.Context(), late))
			awaitPod(t, env.Rome, late, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
			w.handOn(t, running.Namespace)
		})
	}
}

// An administrator begins to leave milan by force, is interrupted, and peers again: what was said then is not held against the new
// peering. In the next outage the data there is guarded as ever.
func TestAMarkOlderThanThePeeringGivesNoDataUp(t *testing.T) {
	w := begin(t)
	namespace := w.offload(t, "shop")
	data, user := volume(namespace)
	for _, object := range []client.Object{data, user} {
		fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	}
	awaitPod(t, env.Rome, user, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	there := &corev1.PersistentVolumeClaim{}
	fixture.Must(t, "reading the claim at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(data), there))
	marked := func() bool {
		fc := &corev1beta1.ForeignCluster{}
		fixture.Must(t, "reading the ForeignCluster", env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: "milan"}, fc))
		return fc.IsMarkedDead()
	}
	env.Milan.Link.Cut()
	t.Cleanup(env.Milan.Link.Mend)
	w.awaitLost(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := unpeer.Force(ctx, unpeer.ForceOptions{Cluster: env.Rome.Target(t), PeerID: "milan", Timeout: forceTimeout, Observer: &interrupter{cancel: cancel}})
	if err == nil || !marked() {
		t.Fatalf("it was not interrupted: %v, marked %t", err, marked())
	}
	if code, out := info(t); code != 4 || !strings.Contains(out, "PermanentlyUnreachable") {
		t.Errorf("info does not show the mark, and exits with %d:\n%s", code, out)
	}
	// The controllers do not reach milan yet: nobody takes the mark back but the command.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	ended, seen := make(chan error, 1), "it runs"
	go func() { ended <- again(ctx, t) }()
	fixture.Await(t, fixture.Patience, "'peer' to take the mark back", func(context.Context) (bool, string) {
		select {
		case err := <-ended:
			ended <- err
			seen = fmt.Sprintf("it ended: %v", err)
		default:
		}
		return !marked(), seen
	})
	cancel()
	t.Logf("it was interrupted: %v", <-ended)
	env.Milan.Link.Mend()
	fixture.Must(t, "peering again", again(t.Context(), t))
	w.awaitShows(t, "all to be well", "")

	env.Milan.Link.Cut()
	w.awaitLost(t)
	fixture.Must(t, "giving up the pod", env.Rome.Client.Delete(t.Context(), user, client.GracePeriodSeconds(0)))
	nso := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
	fixture.Must(t, "taking the namespace back, by hand", env.Rome.Client.Delete(t.Context(), nso))
	fixture.Await(t, 2*fixture.Patience, "the volume to hold the twin", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(nso), nso)
		seen := fmt.Sprint(nso.Status.Conditions, err)
		return err == nil && strings.Contains(seen, offloadingv1beta1.ReasonVolumesHoldData), seen
	})
	env.Milan.Link.Mend()
	w.awaitShows(t, "all to be well again", "")
	live := &corev1.PersistentVolumeClaim{}
	fixture.Must(t, "reading the claim at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(data), live))
	if live.UID != there.UID || live.DeletionTimestamp != nil {
		t.Errorf("the data is given up: deleted %v", live.DeletionTimestamp)
	}
	w.leave(t, namespace)
}

// interrupter interrupts a command once its first step is done.
type interrupter struct {
	progress.Recorder
	cancel func()
	began  bool
}

// Begin implements progress.Observer.
func (i *interrupter) Begin(cluster, title string) progress.Task {
	if i.began {
		i.cancel()
	}
	i.began = true
	return i.Recorder.Begin(cluster, title)
}

// Note implements progress.Observer.
func (i *interrupter) Note(level progress.Level, cluster, message string) {
	if i.began {
		i.cancel()
	}
	i.Recorder.Note(level, cluster, message)
}

// leave ends a world, with all that it has.
func (w *world) leave(t *testing.T, namespace string) {
	t.Helper()
	_, err := unpeer.Run(t.Context(), unpeer.Options{Consumer: env.Rome.Target(t), Provider: env.Milan.Target(t), DeleteVolumes: true, DeleteNamespaces: true, Timeout: peerTimeout})
	fixture.Must(t, "unpeering", err)
	fixture.Must(t, "stopping the virtual kubelet", w.kubelet.Stop())
	fixture.Must(t, "deleting namespace "+namespace, env.Rome.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
}
