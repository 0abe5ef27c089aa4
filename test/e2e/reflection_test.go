package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// TestReflection shows that ConfigMaps and Secrets cross, follow their originals, and stay at home when they are told to.
func TestReflection(t *testing.T) {
	the.shared(t)
	const namespace = "things"
	twin := the.offloaded(t, namespace)
	config := &corev1.ConfigMap{ObjectMeta: named(namespace, "settings"), Data: map[string]string{"word": "one"}}
	secret := &corev1.Secret{ObjectMeta: named(namespace, "password"), Data: map[string][]byte{"word": []byte("one")}}
	remoteConfig, remoteSecret := &corev1.ConfigMap{ObjectMeta: named(twin, "settings")}, &corev1.Secret{ObjectMeta: named(twin, "password")}
	the.rome.creates(t, config, secret)
	crossed := func(word string) {
		t.Helper()
		the.milan.holds(t, remoteConfig, func() string { return remoteConfig.Data["word"] }, word)
		the.milan.holds(t, remoteSecret, func() string { return string(remoteSecret.Data["word"]) }, word)
	}
	crossed("one")

	the.rome.changes(t, config, func() { config.Data["word"] = "two" })
	the.rome.changes(t, secret, func() { secret.Data["word"] = []byte("two") })
	crossed("two")

	the.milan.changes(t, remoteConfig, func() { remoteConfig.Data["word"] = "meddled" })
	the.milan.changes(t, remoteSecret, func() { remoteSecret.Data["word"] = []byte("meddled") })
	crossed("two")

	// Content of its own, because the same is not written again and again in a minute.
	the.rome.changes(t, config, func() { config.Data["word"] = "three" })
	the.rome.changes(t, secret, func() { secret.Data["word"] = []byte("three") })
	crossed("three")
	the.milan.deletes(t, remoteConfig)
	the.milan.deletes(t, remoteSecret)
	crossed("three")

	for _, object := range []client.Object{config, secret} {
		the.rome.changes(t, object, func() {
			metav1.SetMetaDataAnnotation(objectMeta(object), offloadingv1beta1.SkipReflectionAnnotation, "")
		})
	}
	the.milan.misses(t, remoteConfig, "the copy of a ConfigMap that is to stay at home")
	the.milan.misses(t, remoteSecret, "the copy of a Secret that is to stay at home")
	for _, object := range []client.Object{config, secret} {
		the.rome.changes(t, object, func() { delete(object.GetAnnotations(), offloadingv1beta1.SkipReflectionAnnotation) })
	}
	crossed("three")

	foreign := &corev1.ConfigMap{ObjectMeta: named(twin, "taken"), Data: map[string]string{"word": "provider's"}}
	the.milan.creates(t, foreign)
	the.rome.creates(t, &corev1.ConfigMap{ObjectMeta: named(namespace, "taken"), Data: map[string]string{"word": "consumer's"}})
	the.rome.warned(t, namespace, "taken", offloadingv1beta1.ReasonNameConflict)
	the.milan.holds(t, foreign, func() string { return foreign.Data["word"] }, "provider's")

	the.rome.deletes(t, config)
	the.rome.deletes(t, secret)
	the.milan.misses(t, remoteConfig, "the copy of a deleted ConfigMap")
	the.milan.misses(t, remoteSecret, "the copy of a deleted Secret")
}

// TestSecretInPod shows that what crosses serves the pods that use it.
func TestSecretInPod(t *testing.T) {
	the.shared(t)
	const namespace = "mounted"
	the.offloaded(t, namespace)
	the.rome.creates(t, &corev1.Secret{ObjectMeta: named(namespace, "token"), StringData: map[string]string{"word": "sesame"}},
		&corev1.ConfigMap{ObjectMeta: named(namespace, "page"), Data: map[string]string{"index.html": "open"}})
	spec := script(`echo "$(cat /page/index.html) $WORD"; ` + forever)
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "WORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "token"}, Key: "word",
	}}}}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "page", MountPath: "/page"}}
	spec.Volumes = []corev1.Volume{{Name: "page", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "page"},
	}}}}
	the.rome.creates(t, podOf(namespace, "reader", spec))
	the.rome.ready(t, namespace, "reader", 1)
	// The pod is ready as soon as its shell runs.
	eventually(t, soon, "the pod to say what it was given", func(context.Context) (bool, string) {
		o := the.kubectl(t, the.rome, 20*time.Second, "logs", "-n", namespace, "reader")
		return o.code == 0 && strings.Contains(o.stdout, "open sesame"), o.String()
	})
}

// holds waits until an object has a value. What somebody undoes is written again at most twice a minute.
func (c *side) holds(t *testing.T, object client.Object, value func() string, want string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%T %s at %s to hold %q", object, client.ObjectKeyFromObject(object), c.name, want), func(ctx context.Context) (bool, string) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err.Error()
		}
		return value() == want && object.GetDeletionTimestamp() == nil, value()
	})
}

// warned waits for an Event about an object.
func (c *side) warned(t *testing.T, namespace, name, reason string) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("an Event %s about %s/%s", reason, namespace, name), func(ctx context.Context) (bool, string) {
		events := &corev1.EventList{}
		if err := c.List(ctx, events, client.InNamespace(namespace)); err != nil {
			return false, err.Error()
		}
		var seen []string
		for i := range events.Items {
			e := &events.Items[i]
			if e.InvolvedObject.Name != name {
				continue
			}
			if e.Reason == reason {
				return true, e.Message
			}
			seen = append(seen, e.Reason+": "+e.Message)
		}
		return false, fmt.Sprintf("%d Events %q", len(seen), seen)
	})
}

func objectMeta(object client.Object) *metav1.ObjectMeta {
	switch typed := object.(type) {
	case *corev1.ConfigMap:
		return &typed.ObjectMeta
	case *corev1.Secret:
		return &typed.ObjectMeta
	default:
		panic(fmt.Sprintf("metadata of %T wanted", object))
	}
}
