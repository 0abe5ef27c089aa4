package skew

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

const (
	app, keeper = "app", "keeper"
	appLabel    = "app"
	// speaking ends at once on SIGTERM.
	speaking = `echo "$WORD $(cat /page/word)"; trap 'exit 0' TERM; while true; do sleep 1 & wait $!; done`
)

// application is one that a consumer offloads to a provider.
type application struct {
	peering
	namespace, twin string
	// replicas that the Deployment has, and how often the ConfigMap was changed.
	replicas int32
	changes  int
}

// deploys makes an application of everything that crosses.
func (p peering) deploys(t *testing.T, name string) *application {
	t.Helper()
	a := &application{peering: p, namespace: name, twin: name + "-" + p.consumer.name, replicas: 2}
	fixture.Must(t, "creating a namespace", p.consumer.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	p.consumer.release.liqoctl(t, "offload", "namespace", name, "--kubeconfig", p.consumer.kubeconfig, "--timeout", "1m")
	fixture.Await(t, patience, "the ServiceAccount of namespace "+name, func(ctx context.Context) (bool, string) {
		err := p.consumer.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, fmt.Sprint(err)
	})
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: a.namespace, Name: name} }
	labels := map[string]string{appLabel: app}
	single := corev1.Pod{ObjectMeta: meta(keeper), Spec: podSpec()}
	single.Spec.Volumes = append(single.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}})
	single.Spec.Containers[0].VolumeMounts = append(single.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta("page"), Data: map[string]string{"word": "sesame"}},
		&corev1.Secret{ObjectMeta: meta("token"), StringData: map[string]string{"word": "open"}},
		&corev1.Service{ObjectMeta: meta(app), Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta("data"), Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("liqo"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}},
		}},
		&single,
		&appsv1.Deployment{ObjectMeta: meta(app), Spec: appsv1.DeploymentSpec{Replicas: &a.replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()}}},
	} {
		fixture.Must(t, fmt.Sprintf("creating %T %s", object, object.GetName()), p.consumer.Create(t.Context(), object))
	}
	a.works(t)
	return a
}

// podSpec is that of a pod that runs on a virtual node, and says what it was given.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}, TerminationGracePeriodSeconds: ptr.To(int64(2)),
		Containers: []corev1.Container{{
			Name: "main", Image: "busybox:1.36", ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", speaking},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("8Mi")}},
			Env: []corev1.EnvVar{{Name: "WORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "token"}, Key: "word"}}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "page", MountPath: "/page"}},
		}},
		Volumes: []corev1.Volume{{Name: "page", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "page"}}}}},
	}
}

// works sees that all of the application is at the provider, and that everything comes back.
func (a *application) works(t *testing.T) {
	t.Helper()
	home := a.ready(t, a.consumer, a.namespace)
	a.ready(t, a.provider, a.twin)
	for i := range home {
		pod := &home[i]
		if pod.Spec.NodeName != a.provider.name {
			t.Errorf("the pod is not on the virtual node: %s", describe(pod))
		}
		fixture.Await(t, patience, "the logs of pod "+pod.Name, func(ctx context.Context) (bool, string) {
			text, err := a.consumer.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
			return err == nil && strings.HasPrefix(string(text), "open sesame"), fmt.Sprint(string(text), err)
		})
		fixture.Await(t, patience, "the Event that pod "+pod.Name+" was started", func(ctx context.Context) (bool, string) {
			events := &corev1.EventList{}
			err := a.consumer.List(ctx, events, client.InNamespace(a.namespace))
			return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID == pod.UID && e.Reason == "Started" }),
				fmt.Sprint(len(events.Items), " Events, ", err)
		})
	}
	for what, look := range map[string]func(ctx context.Context) (bool, string){
		"the Secret to be in the twin": func(ctx context.Context) (bool, string) {
			remote := &corev1.Secret{}
			err := a.provider.Get(ctx, client.ObjectKey{Namespace: a.twin, Name: "token"}, remote)
			return string(remote.Data["word"]) == "open", fmt.Sprint(err)
		},
		"the Service of the twin to have all ready pods": func(ctx context.Context) (bool, string) {
			remote, endpoints := &corev1.Service{}, &corev1.Endpoints{} //nolint:staticcheck // shorter than slices of endpoints
			err := a.provider.Get(ctx, client.ObjectKey{Namespace: a.twin, Name: app}, remote)
			if err == nil {
				err = a.provider.Get(ctx, client.ObjectKey{Namespace: a.twin, Name: app}, endpoints)
			}
			return len(endpoints.Subsets) == 1 && len(endpoints.Subsets[0].Addresses) == int(a.replicas), fmt.Sprint(endpoints.Subsets, err)
		},
		"the claim to be bound": func(ctx context.Context) (bool, string) {
			claim := &corev1.PersistentVolumeClaim{}
			err := a.consumer.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "data"}, claim)
			return claim.Status.Phase == corev1.ClaimBound, fmt.Sprint(claim.Status, err)
		},
	} {
		fixture.Await(t, patience, what, look)
	}
}

// ready waits until all pods of the application are ready in one of its namespaces.
func (a *application) ready(t *testing.T, c *side, namespace string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	fixture.Await(t, patience, fmt.Sprintf("%d ready pods in namespace %s of %s", a.replicas+1, namespace, c.name), func(ctx context.Context) (bool, string) {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, err.Error()
		}
		var seen []string
		ready := int32(0)
		for i := range list.Items {
			p := &list.Items[i]
			seen = append(seen, describe(p))
			if p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(condition corev1.PodCondition) bool {
				return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		return ready == a.replicas+1 && len(list.Items) == int(ready), strings.Join(seen, "; ")
	})
	return list.Items
}

// grows changes the application, and sees that the changes cross.
func (a *application) grows(t *testing.T) {
	t.Helper()
	a.replicas++
	a.changes++
	home := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: app}}
	fixture.Must(t, "scaling the Deployment", a.consumer.Patch(t.Context(), home, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, a.replicas))))
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "page"}}
	fixture.Must(t, "changing the ConfigMap", a.consumer.Patch(t.Context(), page, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"data":{"changes":"%d"}}`, a.changes))))
	fixture.Await(t, patience, "the change of the ConfigMap to cross", func(ctx context.Context) (bool, string) {
		remote := &corev1.ConfigMap{}
		err := a.provider.Get(ctx, client.ObjectKey{Namespace: a.twin, Name: "page"}, remote)
		return remote.Data["changes"] == fmt.Sprint(a.changes), fmt.Sprint(remote.Data, err)
	})
	a.works(t)
}

// goes deletes the application; its twin goes with it.
func (a *application) goes(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	fixture.Must(t, "deleting namespace "+a.namespace, client.IgnoreNotFound(a.consumer.Delete(t.Context(), namespace)))
	for c, name := range map[*side]string{a.consumer: a.namespace, a.provider: a.twin} {
		fixture.Await(t, patience, fmt.Sprintf("namespace %s to be gone at %s", name, c.name), func(ctx context.Context) (bool, string) {
			err := c.Get(ctx, client.ObjectKey{Name: name}, namespace)
			return client.IgnoreNotFound(err) == nil && err != nil, fmt.Sprint(namespace.Status, err)
		})
	}
}

// objects are those of the application in both clusters, by cluster, kind, name and UID.
func (a *application) objects(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for c, namespace := range map[*side]string{a.consumer: a.namespace, a.provider: a.twin} {
		fixture.Must(t, "listing what is there", c.each(t.Context(), func(group string) bool { return group != "events.k8s.io" && group != "metrics.k8s.io" },
			func(kind string, o *unstructured.Unstructured) {
				if o.GetNamespace() == namespace && kind != "events." {
					found[fmt.Sprintf("%s: %s %s %s", c.name, kind, o.GetName(), o.GetUID())] = o.DeepCopy()
				}
			}))
	}
	return found
}
