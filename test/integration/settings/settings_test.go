package settings

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

const (
	skipIt  = offloadingv1beta1.SkipReflectionAnnotation
	allowIt = offloadingv1beta1.AllowReflectionAnnotation
)

// Acceptance 3: every knob of reflection changes while the virtual kubelet runs, by the VkOptionsTemplate that the chart's
// values become, by the VirtualNode and by annotations. Nothing is unpeered, no pod that runs is touched, and neither the
// process nor the Deployment of the virtual kubelet changes.
func TestSettingsChangeAtRunTime(t *testing.T) {
	k := newKnobs(t)
	for _, row := range []struct {
		knob string
		turn func(*testing.T, *knobs)
	}{
		{"policies, annotations and workers of ConfigMaps", ofKind("configmap", func() client.Object { return &corev1.ConfigMap{} })},
		{"policies, annotations and workers of Secrets", ofKind("secret", func() client.Object { return &corev1.Secret{} })},
		{"policies, annotations and workers of Services", ofKind("service", func() client.Object {
			return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		})},
		{"policies, annotations and workers of Ingresses", ingresses},
		{"EndpointSlices by annotation, Service and workers", endpointSlices},
		{"Events by policy, annotation and workers", events},
		{"the annotation of a namespace", theNamespace},
		{"labels and annotations that stay at home, by the template", func(t *testing.T, k *knobs) { keysAtHome(t, k, k.keepByTemplate) }},
		{"labels and annotations that stay at home, by the VirtualNode", func(t *testing.T, k *knobs) { keysAtHome(t, k, k.keepByNode) }},
		{"workers of pods", podWorkers},
		{"workers of pods' tokens", tokenWorkers},
		{"workers of claims", claimWorkers},
	} {
		t.Run(row.knob, func(t *testing.T) {
			defer k.set(t, func(*offloadingv1beta1.VkOptionsTemplateSpec) {})
			row.turn(t, k)
		})
	}
	k.untouched(t)
}

// ofKind turns all knobs of a mirrored kind. What pods use of it is named "used".
func ofKind(kind string, empty func() client.Object) func(*testing.T, *knobs) {
	return func(t *testing.T, k *knobs) {
		known, _ := reflection.Lookup(kind)
		create := func(name, annotation string) client.Object {
			o := empty()
			o.SetNamespace(k.namespace)
			o.SetName(kind + "-" + name)
			if annotation != "" {
				o.SetAnnotations(map[string]string{annotation: ""})
			}
			fixture.Must(t, "creating "+o.GetName(), env.Rome.Client.Create(t.Context(), o))
			return o
		}
		plain, allowed := create("plain", ""), create("allowed", allowIt)
		create("skipped", skipIt)
		at := func(what string, names ...string) {
			t.Helper()
			want := map[string]bool{}
			for _, name := range []string{"plain", "allowed", "skipped"} {
				want[kind+"-"+name] = false
			}
			if known.ByReference {
				want["used"] = false
			}
			for _, name := range names {
				if name == "used" && !known.ByReference {
					continue
				}
				if name != "used" {
					name = kind + "-" + name
				}
				want[name] = true
			}
			k.there(t, what, empty, want)
		}
		policy := func(policy offloadingv1beta1.ReflectionType) { k.set(t, configure(kind, 3, policy)) }

		policy(offloadingv1beta1.DenyList)
		at("DenyList", "plain", "allowed", "used")
		annotate(t, plain, skipIt, true)
		at("DenyList and an annotation that came", "allowed", "used")
		annotate(t, plain, skipIt, false)
		at("DenyList and an annotation that went", "plain", "allowed", "used")

		policy(offloadingv1beta1.AllowList)
		at("AllowList", "allowed")
		annotate(t, plain, allowIt, true)
		at("AllowList and an annotation that came", "plain", "allowed")
		annotate(t, plain, allowIt, false)
		annotate(t, allowed, allowIt, false)
		at("AllowList and annotations that went")
		annotate(t, allowed, allowIt, true)

		if known.ByReference {
			policy(offloadingv1beta1.Referenced)
			at("Referenced", "allowed", "used")
			annotate(t, plain, allowIt, true)
			at("Referenced and an annotation that came", "plain", "allowed", "used")
			annotate(t, plain, allowIt, false)
			at("Referenced and an annotation that went", "allowed", "used")
		}

		policy(offloadingv1beta1.DenyList)
		at("DenyList again", "plain", "allowed", "used")
		k.off(t, kind, offloadingv1beta1.DenyList)
		late := create("late", "")
		fixture.Must(t, "deleting what is at the provider", env.Rome.Client.Delete(t.Context(), allowed))
		k.passes(t)
		k.there(t, "no workers: nothing comes or goes", empty, map[string]bool{late.GetName(): false, allowed.GetName(): true})
		policy(offloadingv1beta1.DenyList)
		k.there(t, "workers again", empty, map[string]bool{late.GetName(): true, allowed.GetName(): false})
	}
}

// ingresses cross once there is a Service.
func ingresses(t *testing.T, k *knobs) {
	service := &corev1.Service{ObjectMeta: k.named("web"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	fixture.Must(t, "creating a Service", env.Rome.Client.Create(t.Context(), service))
	ofKind("ingress", func() client.Object {
		return &networkingv1.Ingress{Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: service.Name, Port: networkingv1.ServiceBackendPort{Number: 80}}}}}
	})(t, k)
}

// endpointSlices follow their Service unless they are annotated themselves.
func endpointSlices(t *testing.T, k *knobs) {
	meta := k.named("hand-made")
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	slice := func(name string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: k.named(name), AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.9.8.7"}}}}
		s.Labels[discoveryv1.LabelServiceName] = service.Name
		fixture.Must(t, "creating an EndpointSlice", env.Rome.Client.Create(t.Context(), s))
		return s
	}
	fixture.Must(t, "creating a Service", env.Rome.Client.Create(t.Context(), service))
	first := slice("hand-made-1")
	at := func(what string, want map[string]bool) {
		t.Helper()
		k.there(t, what, func() client.Object { return &offloadingv1beta1.ShadowEndpointSlice{} }, want)
	}
	at("a Service that crosses", map[string]bool{first.Name: true})
	annotate(t, first, skipIt, true)
	at("a slice that is annotated", map[string]bool{first.Name: false})
	annotate(t, first, skipIt, false)
	at("a slice that is not annotated any more", map[string]bool{first.Name: true})
	annotate(t, service, skipIt, true)
	at("a Service that is annotated", map[string]bool{first.Name: false})
	annotate(t, service, skipIt, false)
	at("a Service that is not annotated any more", map[string]bool{first.Name: true})

	k.set(t, configure("service", 3, offloadingv1beta1.AllowList))
	at("the policy of Services", map[string]bool{first.Name: false})
	annotate(t, first, allowIt, true)
	at("a slice that is allowed", map[string]bool{first.Name: true})
	annotate(t, first, allowIt, false)
	at("a slice that is not allowed any more", map[string]bool{first.Name: false})
	k.set(t, configure("service", 3, offloadingv1beta1.DenyList))
	at("the other policy of Services", map[string]bool{first.Name: true})

	k.off(t, "endpointslice", "")
	late := slice("hand-made-2")
	k.passes(t)
	at("no workers", map[string]bool{first.Name: true, late.Name: false})
	k.set(t, configure("endpointslice", 3, ""))
	at("workers again", map[string]bool{first.Name: true, late.Name: true})
}

// events of the provider come back as the policy says. Each is followed by one about another pod, which shows that it was
// looked at.
func events(t *testing.T, k *knobs) {
	bystander := &corev1.Pod{}
	fixture.Must(t, "reading a pod", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "bystander"}, bystander))
	subject := &corev1.Pod{}
	fixture.Must(t, "reading a pod", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "user"}, subject))
	annotate(t, bystander, allowIt, true)
	step := 0
	next := func() string {
		step++
		return fmt.Sprintf("step %d", step)
	}
	at := func(what string, comes bool) {
		t.Helper()
		if comes {
			k.happensUntilSeen(t, subject, next())
			return
		}
		// The annotation and the Event are seen by watches of two clusters: the first Event may be the earlier one.
		fixture.Await(t, 3*fixture.Patience, what+": nothing to come", func(ctx context.Context) (bool, string) {
			message := next()
			env.Happens(t, k.twin(t, subject), message[5:]+".knob", corev1.EventTypeWarning, "Knob", message, 1)
			k.happensUntilSeen(t, bystander, message)
			found, err := env.RemoteEvents(ctx, subject)
			return err == nil && !told(found, message), fmt.Sprintf("%v, error %v", found, err)
		})
	}
	at("DenyList", true)
	annotate(t, subject, skipIt, true)
	at("DenyList and an annotation that came", false)
	annotate(t, subject, skipIt, false)
	at("DenyList and an annotation that went", true)
	k.set(t, configure("event", 3, offloadingv1beta1.AllowList))
	at("AllowList", false)
	annotate(t, subject, allowIt, true)
	at("AllowList and an annotation that came", true)
	annotate(t, subject, allowIt, false)
	k.off(t, "event", offloadingv1beta1.DenyList)
	env.Happens(t, k.twin(t, subject), "lost", corev1.EventTypeWarning, "Knob", "nobody listens", 1)
	k.passes(t)
	k.set(t, configure("event", 3, offloadingv1beta1.DenyList))
	at("workers again", true)
	if found, err := env.RemoteEvents(t.Context(), subject); err != nil || told(found, "nobody listens") {
		t.Errorf("without workers came %v, error %v", found, err)
	}
}

// theNamespace keeps everything in it at home.
func theNamespace(t *testing.T, k *knobs) {
	namespace := &corev1.Namespace{}
	namespace.Name = k.namespace
	configMap := func() client.Object { return &corev1.ConfigMap{} }
	secret := func() client.Object { return &corev1.Secret{} }
	for _, skipped := range []bool{true, false} {
		annotate(t, namespace, skipIt, skipped)
		k.there(t, fmt.Sprintf("a namespace that is annotated: %v", skipped), configMap, map[string]bool{"used": !skipped, "probe": !skipped})
		k.there(t, fmt.Sprintf("a namespace that is annotated: %v", skipped), secret, map[string]bool{"used": !skipped, "probe": !skipped})
	}
}

// keysAtHome keeps labels and annotations at home, and lets them go again.
func keysAtHome(t *testing.T, k *knobs, keep func(t *testing.T, labels, annotations []string)) {
	meta := k.named("keys")
	meta.Labels = map[string]string{"stays": "here", "travels": "far"}
	meta.Annotations = map[string]string{"note-stays": "here", "note-travels": "far"}
	kinds := map[string]client.Object{
		"configmap": &corev1.ConfigMap{ObjectMeta: meta}, "secret": &corev1.Secret{ObjectMeta: meta},
		"service": &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	}
	for kind, object := range kinds {
		fixture.Must(t, "creating a "+kind, env.Rome.Client.Create(t.Context(), object))
	}
	defer func() {
		for kind, object := range kinds {
			fixture.Must(t, "deleting a "+kind, env.Rome.Client.Delete(t.Context(), object))
			world.AwaitGone(t, env.Milan, object)
		}
	}()
	for _, kept := range []bool{false, true, false} {
		var labels, annotations []string
		if kept {
			labels, annotations = []string{"stays"}, []string{"note-stays"}
		}
		keep(t, labels, annotations)
		for kind, object := range kinds {
			live := object.DeepCopyObject().(client.Object)
			fixture.Await(t, fixture.Patience, fmt.Sprintf("the keys of a %s to stay at home: %v", kind, kept), func(ctx context.Context) (bool, string) {
				err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(object), live)
				_, label := live.GetLabels()["stays"]
				_, annotation := live.GetAnnotations()["note-stays"]
				others := live.GetLabels()["travels"] == "far" && live.GetAnnotations()["note-travels"] == "far"
				return err == nil && others && label != kept && annotation != kept, fmt.Sprint(live.GetLabels(), live.GetAnnotations(), err)
			})
		}
	}
}

func podWorkers(t *testing.T, k *knobs) {
	k.off(t, "pod", "")
	late := world.Pod(k.namespace, "late")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), late))
	fixture.Await(t, fixture.Patience, "the pod to be bound", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(late), late)
		return err == nil && late.Spec.NodeName == k.w.Node, fmt.Sprint(late.Spec.NodeName, err)
	})
	k.passes(t)
	shadow := func() client.Object { return &offloadingv1beta1.ShadowPod{} }
	k.there(t, "no workers", shadow, map[string]bool{late.Name: false, "user": true})
	k.set(t, configure("pod", 4, ""))
	k.there(t, "workers again", shadow, map[string]bool{late.Name: true, "user": true})
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), late))
	world.AwaitGone(t, env.Milan, late)
}

func tokenWorkers(t *testing.T, k *knobs) {
	k.off(t, "serviceaccount", "")
	talker := world.Pod(k.namespace, "talker")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), talker))
	k.there(t, "the pod", func() client.Object { return &offloadingv1beta1.ShadowPod{} }, map[string]bool{talker.Name: true})
	k.passes(t)
	k.there(t, "no workers", func() client.Object { return &corev1.Secret{} }, map[string]bool{reflection.TokenSecretName(talker.Name): false})
	k.set(t, configure("serviceaccount", 3, ""))
	env.TokensOf(t, k.namespace, talker.Name)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), talker))
	world.AwaitGone(t, env.Milan, talker)
}

func claimWorkers(t *testing.T, k *knobs) {
	env.Stored(t)
	k.off(t, "persistentvolumeclaim", "")
	data, db := world.Claim(k.namespace, "data", world.VirtualClass), world.PodWith(k.namespace, "db", "data")
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), data))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), db))
	world.AwaitClaim(t, env.Rome, data, "to be meant for the virtual node", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Annotations[reflection.SelectedNodeAnnotation] == k.w.Node
	})
	k.passes(t)
	k.there(t, "no workers", func() client.Object { return &corev1.PersistentVolumeClaim{} }, map[string]bool{data.Name: false})
	k.set(t, configure("persistentvolumeclaim", 3, ""))
	world.AwaitClaim(t, env.Rome, data, "to be bound", world.Bound)
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), db))
	world.AwaitGone(t, env.Milan, db)
	fixture.Must(t, "deleting the claim", env.Rome.Client.Delete(t.Context(), data))
	world.AwaitGone(t, env.Rome, data)
}

// configure changes workers and policy of one kind.
func configure(kind string, workers int32, policy offloadingv1beta1.ReflectionType) func(*offloadingv1beta1.VkOptionsTemplateSpec) {
	return func(s *offloadingv1beta1.VkOptionsTemplateSpec) {
		s.ReflectorsConfig = maps.Clone(s.ReflectorsConfig)
		s.ReflectorsConfig[kind] = offloadingv1beta1.ReflectorConfig{NumWorkers: workers, Type: policy}
	}
}
