package restarts

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// second is the name of another virtual node of milan.
const second = "milan-second"

// siblings are two virtual nodes of one provider, each with its virtual kubelet.
type siblings struct {
	w         *world.Peering
	namespace string
	kubelets  map[string]*fixture.Kubelet
}

// join makes the second virtual node, with labels of its own, and starts its virtual kubelet.
func (s *siblings) join(t *testing.T, labels map[string]string) {
	t.Helper()
	first := &offloadingv1beta1.VirtualNode{}
	fixture.Must(t, "reading the VirtualNode", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: s.w.Node}, first))
	vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ConsumerNamespace, Name: second}, Spec: *first.Spec.DeepCopy()}
	vn.Spec.Labels = maps.Clone(vn.Spec.Labels)
	if vn.Spec.Labels == nil {
		vn.Spec.Labels = map[string]string{}
	}
	maps.Copy(vn.Spec.Labels, labels)
	fixture.Must(t, "creating a second VirtualNode", env.Rome.Client.Create(t.Context(), vn))
	fixture.Await(t, 3*fixture.Patience, "the simulated pod of the second virtual kubelet", func(ctx context.Context) (bool, string) {
		pod, seen := env.Environment.KubeletPod(ctx, second)
		return pod != nil && pod.Status.PodIP != "", seen
	})
	s.kubelets[second] = env.Environment.StartKubelet(t, second)
}

// leave removes the second virtual node and restarts the first one's virtual kubelet, which needs no Lease then.
func (s *siblings) leave(t *testing.T) {
	t.Helper()
	vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ConsumerNamespace, Name: second}}
	fixture.Must(t, "removing the second VirtualNode", client.IgnoreNotFound(env.Rome.Client.Delete(t.Context(), vn)))
	fixture.Await(t, 2*fixture.Patience, "the second VirtualNode to go", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(vn), vn)
		return apierrors.IsNotFound(err), fmt.Sprintf("%v, error %v", vn.Status.All(), err)
	})
	for _, k := range s.kubelets {
		fixture.Must(t, "stopping a virtual kubelet", k.Stop())
	}
	s.w.Kubelet.Start(t)
}

// holder waits until one of the given virtual nodes reflects, and returns it and the other one.
func (s *siblings) holder(t *testing.T, candidates ...string) (holder, other string) {
	t.Helper()
	lease := &coordinationv1.Lease{}
	// A Lease of 30 s that is looked at every 22 s at the latest takes 74 s to change hands.
	fixture.Await(t, 3*fixture.Patience, fmt.Sprintf("one of %v to reflect", candidates), func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: "mirror-milan"}, lease)
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, fmt.Sprintf("holder %v, error %v", lease.Spec.HolderIdentity, err)
		}
		holder = *lease.Spec.HolderIdentity
		for _, candidate := range candidates {
			if holder == candidate {
				return true, ""
			}
		}
		return false, "holder " + holder
	})
	if holder == second {
		return second, s.w.Node
	}
	return s.w.Node, second
}

// run runs a pod on a virtual node that uses the Secret and the ConfigMap of its own name.
func (s *siblings) run(t *testing.T, name, node string) *corev1.Pod {
	t.Helper()
	p := world.Pod(s.namespace, name)
	p.Spec.NodeName = node
	used := corev1.LocalObjectReference{Name: name}
	p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: used}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: used}},
	}
	fixture.Must(t, "creating pod "+name, env.Rome.Client.Create(t.Context(), p))
	return p
}

// crossed waits until exactly those of the named Secrets and ConfigMaps are at milan that should be.
func (s *siblings) crossed(t *testing.T, what string, want map[string]bool) {
	t.Helper()
	for _, empty := range []func() client.Object{func() client.Object { return &corev1.Secret{} }, func() client.Object { return &corev1.ConfigMap{} }} {
		fixture.Await(t, fixture.Patience, fmt.Sprintf("%s: %T %v", what, empty(), want), func(ctx context.Context) (bool, string) {
			seen := map[string]bool{}
			for name := range want {
				err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, empty())
				if client.IgnoreNotFound(err) != nil {
					return false, err.Error()
				}
				seen[name] = err == nil
			}
			return maps.Equal(seen, want), fmt.Sprint(seen)
		})
	}
}

// referenced has Secrets and ConfigMaps cross by reference until the test ends.
func referenced(t *testing.T) {
	t.Helper()
	template := &offloadingv1beta1.VkOptionsTemplate{}
	name := client.ObjectKey{Namespace: fixture.Namespace, Name: offloadingv1beta1.DefaultVkOptionsTemplate}
	fixture.Must(t, "reading the VkOptionsTemplate", env.Rome.Client.Get(t.Context(), name, template))
	original := template.DeepCopy().Spec
	write := func(ctx context.Context, change func(*offloadingv1beta1.VkOptionsTemplateSpec)) {
		old := template.DeepCopy()
		template.Spec = *original.DeepCopy()
		change(&template.Spec)
		fixture.Must(t, "changing the VkOptionsTemplate", env.Rome.Client.Patch(ctx, template, client.MergeFrom(old)))
	}
	t.Cleanup(func() { write(context.WithoutCancel(t.Context()), func(*offloadingv1beta1.VkOptionsTemplateSpec) {}) })
	write(t.Context(), func(s *offloadingv1beta1.VkOptionsTemplateSpec) {
		s.ReflectorsConfig = maps.Clone(s.ReflectorsConfig)
		for _, kind := range []string{"secret", "configmap"} {
			s.ReflectorsConfig[kind] = offloadingv1beta1.ReflectorConfig{NumWorkers: 3, Type: offloadingv1beta1.Referenced}
		}
	})
}

// copies are the UIDs of what stands at milan for something of rome, but for pods.
func (s *siblings) copies(t *testing.T) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	for kind, list := range map[string]client.ObjectList{"ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{}, "Service": &corev1.ServiceList{}} {
		fixture.Must(t, "listing copies at milan", env.Milan.Client.List(t.Context(), list, client.InNamespace(s.namespace),
			client.MatchingLabels{offloadingv1beta1.OriginLabel: "rome"}))
		fixture.Must(t, "looking at copies", meta.EachListItem(list, func(object runtime.Object) error {
			copied := object.(client.Object)
			uids[kind+" "+copied.GetName()] = copied.GetUID()
			return nil
		}))
	}
	return uids
}

// service makes a Service at rome and waits until it has crossed.
func (s *siblings) service(t *testing.T, name string) *corev1.Service {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	fixture.Must(t, "creating a Service", env.Rome.Client.Create(t.Context(), service))
	fixture.Await(t, fixture.Patience, "Service "+name+" to cross", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(service), &corev1.Service{})
		return err == nil, fmt.Sprint(err)
	})
	return service
}

// takeOver kills the virtual kubelet that reflects, which leaves its Lease behind, and waits until the other one does. What stands at
// milan stays as it is: nothing of it is removed, or made or written once more. What was removed at rome meanwhile goes.
func (s *siblings) takeOver(t *testing.T, holder, other string) {
	t.Helper()
	removed := s.service(t, "removed")
	s.service(t, "stays")
	env.Settled(t)
	before := s.copies(t)
	start := env.Milan.Recorder.Now(t)
	fixture.Must(t, "killing the virtual kubelet that reflects", s.kubelets[holder].Kill())
	fixture.Must(t, "removing a Service while nobody reflects", env.Rome.Client.Delete(t.Context(), removed))
	if now, _ := s.holder(t, other); now != other {
		t.Fatalf("%s reflects now", now)
	}
	s.service(t, "next")
	world.AwaitGone(t, env.Milan, removed)
	after := s.copies(t)
	delete(before, "Service removed")
	delete(after, "Service next")
	if diff := cmp.Diff(before, after); diff != "" || len(before) < 5 {
		t.Errorf("what stands at milan was replaced (-before +after):\n%s", diff)
	}
	for _, write := range env.Milan.Recorder.Since(t, start, func(user string) bool { return strings.HasPrefix(user, "liqo.io:slice:") }) {
		if write.Namespace == s.namespace && write.Name != removed.Name && write.Name != "next" {
			t.Errorf("whoever takes over made a write: %s: %s", write, write.Body)
		}
	}
}

// C16: of several virtual nodes of a provider one reflects, and another one takes over when it is killed. By the policy Referenced it brings what pods on any of them use, removes
// what none of them uses any more, and nothing else: whichever of them it is, while the other one is down, and once that is gone.
func TestC16ReferencedBySeveralVirtualNodes(t *testing.T) {
	w := env.Peered(t)
	s := &siblings{w: w, namespace: env.Offloaded(t), kubelets: map[string]*fixture.Kubelet{w.Node: w.Kubelet}}
	defer s.leave(t)
	s.join(t, nil)
	holder, other := s.holder(t, s.w.Node, second)
	referenced(t)
	for _, name := range []string{"own", "others", "late", "nobodys"} {
		named := metav1.ObjectMeta{Namespace: s.namespace, Name: name}
		fixture.Must(t, "creating a Secret", env.Rome.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: named, Data: map[string][]byte{"a": []byte("1")}}))
		fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"a": "1"}}))
	}
	s.run(t, "own", holder)
	others := s.run(t, "others", other)
	s.crossed(t, "a pod on each of two virtual nodes", map[string]bool{"own": true, "others": true, "late": false, "nobodys": false})
	world.AwaitPods(t, env.Milan, s.namespace, 2)

	fixture.Must(t, "deleting the pod on the sibling", env.Rome.Client.Delete(t.Context(), others))
	s.crossed(t, "the pod on the sibling is gone", map[string]bool{"own": true, "others": false, "late": false, "nobodys": false})
	world.AwaitGone(t, env.Rome, others)
	s.run(t, "others", other)
	s.crossed(t, "it is there again", map[string]bool{"own": true, "others": true, "late": false, "nobodys": false})

	s.takeOver(t, holder, other)
	late := s.run(t, "late", holder)
	s.crossed(t, "a pod on the virtual node that does not run", map[string]bool{"own": true, "others": true, "late": true, "nobodys": false})
	fixture.Must(t, "deleting that pod", env.Rome.Client.Delete(t.Context(), late, &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	s.crossed(t, "that pod is gone", map[string]bool{"own": true, "others": true, "late": false, "nobodys": false})
	s.kubelets[holder].Start(t)
	s.crossed(t, "both run", map[string]bool{"own": true, "others": true, "late": false, "nobodys": false})

	fixture.Must(t, "removing the second VirtualNode", env.Rome.Client.Delete(t.Context(),
		&offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ConsumerNamespace, Name: second}}))
	onFirst, onSecond := "own", "others"
	if holder == second {
		onFirst, onSecond = onSecond, onFirst
	}
	s.crossed(t, "the second virtual node went, and its pods with it", map[string]bool{onFirst: true, onSecond: false, "late": false, "nobodys": false})
}
