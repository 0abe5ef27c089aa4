package shadowpod

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/provenance"
)

func of(origin, name string) metav1.ObjectMeta {
	object := metav1.ObjectMeta{Namespace: key.Namespace, Name: name}
	if origin != "" {
		object.Labels = map[string]string{offloadingv1beta1.OriginLabel: origin}
	}
	return object
}

// using are all ways in which a pod names something.
var using = map[string]struct {
	kind   string
	needed bool
	by     func(spec *corev1.PodSpec, name string)
}{
	"a volume of a Secret": {"Secret", true, mounting(func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}
	})},
	"an optional volume of a Secret": {"Secret", false, mounting(func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: ptr.To(true)}}
	})},
	"a projected Secret": {"Secret", true, mounting(func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: named(name)}}}}}
	})},
	"the Secret of a CSI driver": {"Secret", true, mounting(func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "a.b", NodePublishSecretRef: ptr.To(named(name))}}
	})},
	"a Secret as environment": {"Secret", true, func(spec *corev1.PodSpec, name string) {
		spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named(name)}}}
	}},
	"a Secret in a variable of an init container": {"Secret", true, func(spec *corev1.PodSpec, name string) {
		spec.InitContainers = []corev1.Container{{Name: "i", Env: []corev1.EnvVar{{Name: "a", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named(name), Key: "a"}}}}}}
	}},
	"a Secret to pull images": {"Secret", false, func(spec *corev1.PodSpec, name string) {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{named(name)}
	}},
	"a volume of a ConfigMap": {"ConfigMap", true, mounting(func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named(name)}}
	})},
	"a projected ConfigMap": {"ConfigMap", true, mounting(func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named(name)}}}}}
	})},
	"a ConfigMap as environment": {"ConfigMap", true, func(spec *corev1.PodSpec, name string) {
		spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named(name)}}}
	}},
	"an optional ConfigMap in a variable": {"ConfigMap", false, func(spec *corev1.PodSpec, name string) {
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "a", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named(name), Key: "a", Optional: ptr.To(true)}}}}
	}},
	"a claim": {"PersistentVolumeClaim", true, mounting(func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	})},
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func mounting(source func(name string) corev1.VolumeSource) func(*corev1.PodSpec, string) {
	return func(spec *corev1.PodSpec, name string) {
		spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source(name)}}
	}
}

func made(kind string, meta metav1.ObjectMeta) client.Object {
	switch kind {
	case "Secret":
		return &corev1.Secret{ObjectMeta: meta}
	case "ConfigMap":
		return &corev1.ConfigMap{ObjectMeta: meta}
	default:
		return &corev1.PersistentVolumeClaim{ObjectMeta: meta}
	}
}

// Whatever a pod names, in whatever way, it gets only what its own consumer brought; what is not there yet is awaited.
func TestPodsUseOnlyWhatTheirConsumerBrought(t *testing.T) {
	for way, used := range using {
		for name, tc := range map[string]struct {
			there  bool
			origin string
			age    time.Duration
			pod    bool
			ready  string
		}{
			"its own":                      {there: true, origin: "rome", pod: true},
			"the provider's":               {there: true, ready: "False ForeignReference"},
			"another consumer's":           {there: true, origin: "turin", ready: "False ForeignReference"},
			"not there":                    {pod: !used.needed},
			"not there after a while":      {age: time.Minute, pod: !used.needed, ready: map[bool]string{true: "False ReferencesPending"}[used.needed]},
			"the provider's after a while": {there: true, age: time.Hour, ready: "False ForeignReference"},
		} {
			t.Run(way+", "+name, func(t *testing.T) {
				shadow := job()
				shadow.CreationTimestamp.Time = start
				used.by(&shadow.Spec.Pod, "x")
				objects := []client.Object{shadow}
				if tc.there {
					objects = append(objects, made(used.kind, of(tc.origin, "x")))
				}
				w := newWorld(t, objects...)
				w.clock.SetTime(start.Add(tc.age))
				result, err := w.pass()
				if got := w.pod() != nil; got != tc.pod || w.ready() != tc.ready {
					t.Errorf("there is a Pod: %v, want %v; Ready is %q, want %q (%v)", got, tc.pod, w.ready(), tc.ready, err)
				}
				if waits := result.RequeueAfter > 0 || err != nil; waits == tc.pod {
					t.Errorf("it is looked at again: %v (%v)", result, err)
				}
				if tc.ready == "" || tc.pod {
					return
				}
				if c := meta.FindStatusCondition(w.shadow().Status.Conditions, "Ready"); !strings.Contains(c.Message, used.kind+" x") {
					t.Errorf("the condition says %q", c.Message)
				}
				if tc.there {
					return
				}
				// It comes, and is the consumer's or not.
				if err := w.Create(t.Context(), made(used.kind, of("rome", "x"))); err != nil {
					t.Fatal(err)
				}
				if _, err := w.pass(); err != nil || w.pod() == nil {
					t.Errorf("now that it is there the Pod is not made: %v", err)
				}
			})
		}
	}
}

// A Secret that is known to be the consumer's costs no request; one that is known to be another's is looked at.
func TestKnownSecretsAreNotRead(t *testing.T) {
	for name, tc := range map[string]struct {
		known string
		pod   bool
	}{
		"the consumer's own": {known: "rome", pod: true},
		"another consumer's": {known: "turin"},
		"not known":          {},
	} {
		t.Run(name, func(t *testing.T) {
			shadow := job()
			using["a volume of a Secret"].by(&shadow.Spec.Pod, "x")
			// What is read says that it is the provider's, so that a Pod shows that it was not read.
			w := newWorld(t, shadow, made("Secret", of("", "x")))
			w.reconciler.provenance = provenance.New(w.Client, w.Client, func(secret types.NamespacedName) string {
				return map[types.NamespacedName]string{{Namespace: key.Namespace, Name: "x"}: tc.known}[secret]
			})
			if _, err := w.pass(); (w.pod() != nil) != tc.pod {
				t.Errorf("there is a Pod: %v (%v)", w.pod() != nil, err)
			}
		})
	}
}

// What everybody has, and what comes with the pod, is not waited for.
func TestReferencesThatAreNobodysOwn(t *testing.T) {
	shadow := withTokens()
	shadow.Spec.Pod.Volumes[0].Projected.Sources = append(shadow.Spec.Pod.Volumes[0].Projected.Sources,
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("kube-root-ca.crt")}})
	w := newWorld(t, shadow, &corev1.ConfigMap{ObjectMeta: of("", "kube-root-ca.crt")})
	if _, err := w.pass(); err != nil || w.pod() == nil {
		t.Errorf("the Pod is not made: %v", err)
	}
}

// Kubernetes makes the claims of ephemeral volumes: of a class that there is, for else they get a volume of the provider's own.
func TestEphemeralVolumesHaveAClassOfTheProviders(t *testing.T) {
	class := func(name string, isDefault string) client.Object {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": isDefault}}}
	}
	for name, tc := range map[string]struct {
		class   *string
		classes []client.Object
		pod     bool
	}{
		"one that is offered":             {ptr.To("fast"), []client.Object{class("fast", "false")}, true},
		"the default":                     {nil, []client.Object{class("fast", "true")}, true},
		"none, and there is no default":   {nil, []client.Object{class("fast", "false")}, false},
		"one of somebody's volumes alone": {ptr.To("payroll"), []client.Object{class("fast", "true")}, false},
		"the empty one":                   {ptr.To(""), []client.Object{class("fast", "true")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			shadow := job()
			shadow.Spec.Pod.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: tc.class}}}}}}
			w := newWorld(t, append(tc.classes, shadow)...)
			if _, err := w.pass(); (w.pod() != nil) != tc.pod || !tc.pod && w.ready() != "False PodRefused" {
				t.Errorf("there is a Pod: %v, Ready is %q (%v)", w.pod() != nil, w.ready(), err)
			}
		})
	}
}

// A container that is added to a running pod names things, too.
func TestEphemeralContainersUseOnlyWhatTheirConsumerBrought(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		added   bool
		words   string
	}{
		"its own":        {[]client.Object{made("Secret", of("rome", "x"))}, true, ""},
		"the provider's": {[]client.Object{made("Secret", of("", "x"))}, false, "Secret x did not come from this pod's cluster"},
		"not there":      {nil, false, "does not have Secret x yet"},
	} {
		t.Run(name, func(t *testing.T) {
			shadow := job()
			shadow.Spec.Pod.RestartPolicy = corev1.RestartPolicyAlways
			w := newWorld(t, append(tc.objects, shadow)...)
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			live := w.shadow()
			live.Generation++
			live.Spec.Pod.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "b",
				EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("x")}}}}}}
			if err := w.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			result, err := w.pass()
			if err != nil {
				t.Fatal(err)
			}
			said := meta.FindStatusCondition(w.shadow().Status.Conditions, offloadingv1beta1.ChangeRefusedCondition)
			if added := len(w.pod().Spec.EphemeralContainers) == 1; added != tc.added || (said == nil) != tc.added {
				t.Errorf("it was added: %v; the condition is %v", added, said)
			}
			if said != nil && !strings.Contains(said.Message, tc.words) {
				t.Errorf("the condition says %q", said.Message)
			}
			if name == "not there" && result.RequeueAfter == 0 {
				t.Error("it is not looked at again")
			}
		})
	}
}
