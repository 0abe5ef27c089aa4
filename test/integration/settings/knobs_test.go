package settings

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// maxTurns is how often a knob may be turned: a probe has so many labels, and each turn keeps the next one at home. None is used twice,
// because one of the two probes may be several turns behind.
const maxTurns = 100

func turnKey(turn int) string { return fmt.Sprintf("probe-%d", turn) }

// knobs is an offloaded namespace with pods at work, and the settings that the virtual kubelet obeys.
type knobs struct {
	w         *world.Peering
	namespace string
	template  *offloadingv1beta1.VkOptionsTemplate
	original  offloadingv1beta1.VkOptionsTemplateSpec
	turn      int
	probes    []client.Object
	// before are the remote pods and the Deployment of the virtual kubelet by name, each with UID and version.
	before map[string]string
	pid    *fixture.Process
}

func newKnobs(t *testing.T) *knobs {
	t.Helper()
	k := &knobs{w: env.Peered(t), namespace: env.Offloaded(t)}
	k.pid = k.w.Kubelet.Process
	probe := k.named("probe")
	for turn := range maxTurns {
		probe.Labels[turnKey(turn)] = ""
	}
	k.probes = []client.Object{&corev1.ConfigMap{ObjectMeta: probe}, &corev1.Secret{ObjectMeta: probe}}
	user := world.Pod(k.namespace, "user")
	used := corev1.LocalObjectReference{Name: "used"}
	user.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: used}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: used}},
	}
	for _, o := range append(k.probes, &corev1.ConfigMap{ObjectMeta: k.named("used")}, &corev1.Secret{ObjectMeta: k.named("used")},
		user, world.Pod(k.namespace, "bystander")) {
		fixture.Must(t, "creating "+o.GetName(), env.Rome.Client.Create(t.Context(), o.DeepCopyObject().(client.Object)))
	}
	world.AwaitPods(t, env.Milan, k.namespace, 2)
	world.AwaitPods(t, env.Rome, k.namespace, 2)
	env.Settled(t)
	k.before = k.state(t)

	k.template = &offloadingv1beta1.VkOptionsTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: offloadingv1beta1.DefaultVkOptionsTemplate}}
	fixture.Must(t, "reading the VkOptionsTemplate", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(k.template), k.template))
	k.original = k.template.DeepCopy().Spec
	t.Cleanup(func() { k.write(t, func(*offloadingv1beta1.VkOptionsTemplateSpec) {}) })
	return k
}

func (k *knobs) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: k.namespace, Name: name, Labels: map[string]string{"app": name}}
}

// write makes the template what it was at first, but for a change.
func (k *knobs) write(t *testing.T, change func(*offloadingv1beta1.VkOptionsTemplateSpec)) {
	t.Helper()
	old := k.template.DeepCopy()
	k.template.Spec = *k.original.DeepCopy()
	change(&k.template.Spec)
	fixture.Must(t, "changing the VkOptionsTemplate", env.Rome.Client.Patch(context.WithoutCancel(t.Context()), k.template, client.MergeFrom(old)))
}

// set changes the template and returns when the virtual kubelet is known to obey: a label that is to stay at home as of the
// same change, and of no other, is gone from a probe.
func (k *knobs) set(t *testing.T, change func(*offloadingv1beta1.VkOptionsTemplateSpec)) {
	t.Helper()
	if k.turn == maxTurns {
		t.Fatalf("a probe has labels for %d turns only", maxTurns)
	}
	home := turnKey(k.turn)
	k.turn++
	k.write(t, func(s *offloadingv1beta1.VkOptionsTemplateSpec) {
		change(s)
		s.LabelsNotReflected = append(s.LabelsNotReflected, home)
	})
	fixture.Await(t, fixture.Patience, "a setting to be obeyed", func(ctx context.Context) (bool, string) {
		var seen []string
		for _, probe := range k.probes {
			live := probe.DeepCopyObject().(client.Object)
			err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(probe), live)
			if _, crosses := live.GetLabels()[home]; err == nil && !crosses {
				return true, ""
			}
			seen = append(seen, fmt.Sprint(err))
		}
		return false, strings.Join(seen, "; ")
	})
}

// off turns a kind off. What stays at home is obeyed before anything else of the same change, so that nothing crosses that must not; the
// kind is off for certain once a second change is obeyed.
func (k *knobs) off(t *testing.T, kind string, policy offloadingv1beta1.ReflectionType) {
	t.Helper()
	k.set(t, configure(kind, 0, policy))
	k.set(t, configure(kind, 0, policy))
}

// passes lets something cross that was made later than all before, whichever kinds are turned off.
func (k *knobs) passes(t *testing.T) {
	t.Helper()
	name := fixture.Unique("later")
	objects := []client.Object{&corev1.ConfigMap{ObjectMeta: k.named(name)}, &corev1.Secret{ObjectMeta: k.named(name)}}
	for _, o := range objects {
		fixture.Must(t, "creating what is made later", env.Rome.Client.Create(t.Context(), o))
	}
	fixture.Await(t, fixture.Patience, "what was made later to cross", func(ctx context.Context) (bool, string) {
		var seen []string
		for _, o := range objects {
			err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
			if err == nil {
				return true, ""
			}
			seen = append(seen, err.Error())
		}
		return false, strings.Join(seen, "; ")
	})
}

// there waits until exactly those of the named objects are in the twin that should be.
func (k *knobs) there(t *testing.T, what string, empty func() client.Object, want map[string]bool) {
	t.Helper()
	fixture.Await(t, fixture.Patience, fmt.Sprintf("%s: %T %v", what, empty(), want), func(ctx context.Context) (bool, string) {
		seen := map[string]bool{}
		for name := range want {
			err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: name}, empty())
			if client.IgnoreNotFound(err) != nil {
				return false, err.Error()
			}
			seen[name] = !apierrors.IsNotFound(err)
		}
		return maps.Equal(seen, want), fmt.Sprint(seen)
	})
}

// annotate adds an annotation to an object at rome, or removes it.
func annotate(t *testing.T, object client.Object, key string, there bool) {
	t.Helper()
	live := object.DeepCopyObject().(client.Object)
	fixture.Must(t, "reading "+object.GetName(), env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(object), live))
	changed := live.DeepCopyObject().(client.Object)
	annotations := maps.Clone(changed.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = ""
	if !there {
		delete(annotations, key)
	}
	changed.SetAnnotations(annotations)
	fixture.Must(t, "annotating "+object.GetName(), env.Rome.Client.Patch(t.Context(), changed, client.MergeFrom(live)))
}

// keepByTemplate keeps keys at home by the template.
func (k *knobs) keepByTemplate(t *testing.T, labels, annotations []string) {
	t.Helper()
	k.set(t, func(s *offloadingv1beta1.VkOptionsTemplateSpec) {
		s.LabelsNotReflected = append(s.LabelsNotReflected, labels...)
		s.AnnotationsNotReflected = append(s.AnnotationsNotReflected, annotations...)
	})
}

// keepByNode keeps keys at home by the VirtualNode.
func (k *knobs) keepByNode(t *testing.T, labels, annotations []string) {
	t.Helper()
	vn := &offloadingv1beta1.VirtualNode{}
	fixture.Must(t, "reading the VirtualNode", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: k.w.Node}, vn))
	changed := vn.DeepCopy()
	if changed.Spec.OffloadingPatch == nil {
		changed.Spec.OffloadingPatch = &offloadingv1beta1.OffloadingPatch{}
	}
	changed.Spec.OffloadingPatch.LabelsNotReflected, changed.Spec.OffloadingPatch.AnnotationsNotReflected = labels, annotations
	fixture.Must(t, "changing the VirtualNode", env.Rome.Client.Patch(t.Context(), changed, client.MergeFrom(vn)))
}

// twin is the remote pod of a pod.
func (k *knobs) twin(t *testing.T, local *corev1.Pod) *corev1.Pod {
	t.Helper()
	twin := &corev1.Pod{}
	fixture.Must(t, "reading a twin", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(local), twin))
	return twin
}

func told(events []corev1.Event, message string) bool {
	for i := range events {
		if strings.HasSuffix(events[i].Message, message) {
			return true
		}
	}
	return false
}

// happensUntilSeen has something happen to a pod at milan until it is seen at rome: the watch begins at the present.
func (k *knobs) happensUntilSeen(t *testing.T, local *corev1.Pod, message string) {
	t.Helper()
	twin, next, times := k.twin(t, local), time.Now(), int32(0)
	name := strings.ReplaceAll(message, " ", "-") + "." + local.Name
	fixture.Await(t, fixture.Patience, fmt.Sprintf("Event %q of pod %s", message, local.Name), func(ctx context.Context) (bool, string) {
		if time.Now().After(next) {
			times++
			next = time.Now().Add(2 * time.Second)
			env.Happens(t, twin, name, corev1.EventTypeWarning, "Knob", message, times)
		}
		events, err := env.RemoteEvents(ctx, local)
		return err == nil && told(events, message), fmt.Sprint(events, err)
	})
}

// state is what no knob may change: the pods of the twin namespace that are there all the time, and the Deployment of the
// virtual kubelet.
func (k *knobs) state(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	pods := &corev1.PodList{}
	fixture.Must(t, "listing the remote pods", env.Milan.Client.List(t.Context(), pods, client.InNamespace(k.namespace)))
	for _, p := range pods.Items {
		state["pod "+p.Name] = fmt.Sprintf("%s version %s", p.UID, p.ResourceVersion)
	}
	shadows := &offloadingv1beta1.ShadowPodList{}
	fixture.Must(t, "listing the ShadowPods", env.Milan.Client.List(t.Context(), shadows, client.InNamespace(k.namespace)))
	for _, s := range shadows.Items {
		state["ShadowPod "+s.Name] = fmt.Sprintf("%s generation %d", s.UID, s.Generation)
	}
	deployments := &appsv1.DeploymentList{}
	fixture.Must(t, "listing Deployments", env.Rome.Client.List(t.Context(), deployments, client.InNamespace(fixture.ConsumerNamespace)))
	for _, d := range deployments.Items {
		state["Deployment "+d.Name] = fmt.Sprintf("%s generation %d", d.UID, d.Generation)
	}
	return state
}

// untouched fails if anything changed that no knob may change.
func (k *knobs) untouched(t *testing.T) {
	t.Helper()
	env.Settled(t)
	if diff := cmp.Diff(k.before, k.state(t)); diff != "" {
		t.Errorf("pods or the virtual kubelet's Deployment changed: %s", diff)
	}
	if k.w.Kubelet.Process != k.pid || !k.pid.Running() {
		t.Error("the virtual kubelet ran again")
	}
}
