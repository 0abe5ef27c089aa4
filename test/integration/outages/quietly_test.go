package outages

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// noSlices has a provider deny slices of the default class.
var noSlices = map[string]any{"authentication": map[string]any{"defaultResourceSliceClassEnabled": false}}

// A provider takes rights back of which no watch ends and no object goes: nothing but a question tells. It shows at home, nothing is
// concluded of the pods, which run on there, neither by a virtual kubelet that starts meanwhile; and it heals when the rights are back.
func TestRightsTakenBackQuietly(t *testing.T) {
	w, whole := env.Peered(t), t
	for name, tc := range map[string]struct {
		// slices is what the ForeignCluster says of the slices, and cause the first cause that 'liqoctl info' names.
		slices, cause string
		begin, end    func(t *testing.T, twin string)
	}{
		"the slice is denied": {corev1beta1.StatusError, corev1beta1.ReasonResourceSliceDenied,
			func(t *testing.T, _ string) { w.Milan.Reconfigure(t, nil, noSlices) },
			func(t *testing.T, _ string) { w.Milan.Reconfigure(t, noSlices, nil) }},
		"the twins are forbidden": {corev1beta1.StatusEstablished, "list shadowpods", forbidTwin,
			// Its controller manager gives back what was taken behind its back.
			func(t *testing.T, _ string) {
				if !w.Milan.Running() {
					w.Milan.Start(t)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := env.Offloaded(t)
			for _, name := range []string{"one", "two"} {
				fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, name)))
			}
			world.AwaitPods(t, env.Rome, namespace, 2)
			remote := world.AwaitPods(t, env.Milan, namespace, 2)
			awaitSays(t, w, "all to be well", allIsWell)
			ended := false
			t.Cleanup(func() {
				if !ended {
					tc.end(whole, namespace)
				}
			})
			begin := time.Now()
			tc.begin(t, namespace)
			awaitSays(t, w, "the loss of the rights to show",
				"node False RightsRevoked, tainted true; virtual node False RightsRevoked; API server Established; authentication Established IdentityReady")
			t.Logf("it showed after %s", time.Since(begin).Round(time.Second))
			fixture.Await(t, fixture.Patience, "the ForeignCluster to say what is denied", func(ctx context.Context) (bool, string) {
				p, err := peeringOf(ctx, w)
				c := conditions.Find(p.foreign.Status.Modules.Authentication.Conditions, corev1beta1.AuthResourceSliceStatus)
				return err == nil && c != nil && c.Status == tc.slices, fmt.Sprint(c, err)
			})
			verdicts(t, true)
			if _, out := liqoctl(t, "info", "peer", "milan"); !strings.Contains(firstLine(out, "First cause"), tc.cause) {
				t.Errorf("the first cause does not name %q:\n%s", tc.cause, out)
			}
			fixture.Await(t, fixture.Patience, "nothing to be known of the pods", func(ctx context.Context) (bool, string) {
				seen := concluded(ctx, namespace)
				return seen == "", seen
			})
			fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
			w.Kubelet.Launch(t)
			end := time.Now().Add(apart)
			fixture.Await(t, 2*apart, "a new virtual kubelet to look at all", func(context.Context) (bool, string) {
				unknown(t, namespace)
				return time.Now().After(end), "it passes"
			})
			tc.end(t, namespace)
			ended = true
			awaitSays(t, w, "all to be well again by itself", allIsWell)
			world.AwaitPods(t, env.Rome, namespace, 2)
			if again := world.AwaitPods(t, env.Milan, namespace, 2); fmt.Sprint(again) != fmt.Sprint(remote) {
				t.Errorf("the pods were replaced: %v, before %v", again, remote)
			}
		})
	}
}

// firstLine is the first line that has a word.
func firstLine(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return line
		}
	}
	return ""
}

// unknown checks that nothing is concluded of the pods of a namespace.
func unknown(t *testing.T, namespace string) {
	t.Helper()
	if seen := concluded(t.Context(), namespace); seen != "" {
		t.Fatal(seen)
	}
}

// concluded is what is concluded of the pods of a namespace: that one failed, or is ready; empty if it is nothing.
func concluded(ctx context.Context, namespace string) string {
	pods := &corev1.PodList{}
	if err := env.Rome.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return err.Error()
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		for _, c := range p.Status.Conditions {
			if p.Status.Phase != corev1.PodRunning || c.Type == corev1.PodReady && (c.Status == corev1.ConditionTrue || c.Reason != offloadingv1beta1.ReasonRightsRevoked) {
				return fmt.Sprintf("pod %s is %s %s: %v", p.Name, p.Status.Phase, p.Status.Reason, p.Status.Conditions)
			}
		}
	}
	if len(pods.Items) == 0 {
		return "the pods are gone"
	}
	return ""
}

// forbidTwin takes the consumer's rights in its twins, while the controller manager that would give them back does not run.
func forbidTwin(t *testing.T, _ string) {
	t.Helper()
	fixture.Must(t, "stopping the controller manager of milan", env.Peered(t).Milan.Stop())
	bindings := &rbacv1.RoleBindingList{}
	fixture.Must(t, "listing the RoleBindings of milan", env.Milan.Client.List(t.Context(), bindings))
	removed := 0
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if b.Namespace == fixture.ProviderNamespace || len(b.Subjects) == 0 || !strings.HasPrefix(b.Subjects[0].Name, "liqo.io:") {
			continue
		}
		removed++
		fixture.Must(t, "removing RoleBinding "+b.Name, env.Milan.Client.Delete(t.Context(), b))
	}
	if removed == 0 {
		t.Fatalf("there was nothing to forbid: %v", bindings.Items)
	}
}

// A provider drains its tenant while no virtual kubelet runs: that pods ended is not seen. They are neither shown to be ready nor to have
// failed until the rights are back, and then what they show is true.
func TestPodsThatWentUnseenWithTheRights(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "one")))
	world.AwaitPods(t, env.Rome, namespace, 1)
	awaitSays(t, w, "all to be well", allIsWell)
	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	grant(t, authv1beta1.TenantDrained)
	t.Cleanup(func() { grant(t, authv1beta1.TenantActive) })
	world.AwaitPods(t, env.Milan, namespace, 0)
	w.Kubelet.Launch(t)
	fixture.Await(t, 3*fixture.Patience, "the pod to say that nothing is known of it", func(ctx context.Context) (bool, string) {
		p := &corev1.Pod{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "one"}, p)
		if p.Status.Phase == corev1.PodFailed {
			t.Fatalf("it failed: %s %s", p.Status.Reason, p.Status.Message)
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && c.Reason == offloadingv1beta1.ReasonRightsRevoked {
				return err == nil, ""
			}
		}
		return false, fmt.Sprint(p.Status, err)
	})
	end := time.Now().Add(apart)
	fixture.Await(t, 2*apart, "it to stay so", func(context.Context) (bool, string) {
		unknown(t, namespace)
		return time.Now().After(end), "it passes"
	})
	grant(t, authv1beta1.TenantActive)
	awaitSays(t, w, "all to be well again by itself", allIsWell)
	fixture.Await(t, 2*fixture.Patience, "the pod to run anew, or to have failed", func(ctx context.Context) (bool, string) {
		p, there := &corev1.Pod{}, &corev1.PodList{}
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "one"}, p)
		if err == nil {
			err = env.Milan.Client.List(ctx, there, client.InNamespace(namespace))
		}
		isReady := false
		for _, c := range p.Status.Conditions {
			isReady = isReady || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		return err == nil && (p.Status.Phase == corev1.PodFailed && len(there.Items) == 0 || isReady && len(there.Items) == 1),
			fmt.Sprintf("%s %s, %d remote, %v", p.Status.Phase, p.Status.Reason, len(there.Items), err)
	})
}
