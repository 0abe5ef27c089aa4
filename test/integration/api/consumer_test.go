package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

var yes = true

const shadowPods = "offloading.liqo.io/v1beta1"

// tokenSecret is a Secret with a pod's tokens, as a virtual kubelet makes it.
func (p *peering) tokenSecret(name string) *corev1.Secret {
	s := p.secret(name, corev1.SecretTypeOpaque, p.reflected())
	s.Labels[offloadingv1beta1.ServiceAccountNameLabel] = "seller"
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: shadowPods, Kind: "ShadowPod", Name: "a", UID: "b"}}
	return s
}

// owned is an attempt to make a Secret with tokens whose owner is not as it has to be.
func owned(change func(*corev1.Secret)) attempt {
	return attempt{ownerNotAllowed, func(t *testing.T, p *peering) error {
		s := p.tokenSecret(fixture.Unique("owned"))
		change(s)
		return p.slice.Create(t.Context(), s)
	}}
}

// deleting is an attempt to delete a ShadowPod, and one to delete a ShadowEndpointSlice, in a certain way.
func deleting(reason string, options ...client.DeleteOption) attempt {
	return attempt{reason, func(t *testing.T, p *peering) error {
		slice := &offloadingv1beta1.ShadowEndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("gone"), Namespace: p.twin, Labels: p.reflected()},
			Spec: offloadingv1beta1.ShadowEndpointSliceSpec{Template: offloadingv1beta1.EndpointSliceTemplate{AddressType: discoveryv1.AddressTypeIPv4}}}
		fixture.Must(t, "creating a ShadowEndpointSlice", p.slice.Create(t.Context(), slice))
		attempt{reason: reason}.check(t, p.slice.Delete(t.Context(), slice, options...))
		s := p.shadowPod(fixture.Unique("gone"), p.reflected())
		fixture.Must(t, "creating a ShadowPod", p.slice.Create(t.Context(), s))
		return p.slice.Delete(t.Context(), s, options...)
	}}
}

// sliceAttempts are what a virtual kubelet's identity tries in a twin namespace.
var sliceAttempts = map[string]attempt{
	"honest: reflect a ConfigMap": {"", func(t *testing.T, p *peering) error {
		c := p.configMap("honest", p.reflected())
		fixture.Must(t, "creating it", p.slice.Create(t.Context(), c))
		fixture.Must(t, "probing it", p.slice.Patch(t.Context(), c, merge(`{"data":{"a":"c"}}`), client.DryRunAll))
		fixture.Must(t, "patching it", p.slice.Patch(t.Context(), c, merge(`{"data":{"a":"c"}}`)))
		return p.slice.Delete(t.Context(), c)
	}},
	"honest: reflect an Opaque Secret": {"", func(t *testing.T, p *peering) error {
		s := p.secret("honest", corev1.SecretTypeOpaque, p.reflected())
		fixture.Must(t, "creating it", p.slice.Create(t.Context(), s))
		fixture.Must(t, "patching it", p.slice.Patch(t.Context(), s, merge(`{"data":{"a":"YQ=="}}`)))
		return p.slice.Delete(t.Context(), s)
	}},
	"honest: reflect a Secret of a type of its own": {"", func(t *testing.T, p *peering) error {
		return p.slice.Create(t.Context(), p.secret("honest-type", "turin.it/password", p.reflected()))
	}},
	"honest: make and delete a ShadowPod": {"", func(t *testing.T, p *peering) error {
		s := p.shadowPod("honest", p.reflected())
		fixture.Must(t, "creating it", p.slice.Create(t.Context(), s))
		return p.slice.Delete(t.Context(), s)
	}},
	"honest: delete in the background": deleting("", client.PropagationPolicy(metav1.DeletePropagationBackground)),
	"honest: delete in the foreground": deleting("", client.PropagationPolicy(metav1.DeletePropagationForeground)),
	"V9: leave the pod behind":         deleting(orphansNotAllowed, client.PropagationPolicy(metav1.DeletePropagationOrphan)),
	"V9: leave the pod behind the old way": deleting(orphansNotAllowed,
		&client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: &yes}}), //nolint:staticcheck // API servers take it still
	"V9: leave the pod behind by a parameter": {orphansNotAllowed, func(t *testing.T, p *peering) error {
		s := p.shadowPod("orphan-parameter", p.reflected())
		fixture.Must(t, "creating a ShadowPod", p.slice.Create(t.Context(), s))
		return p.slice.Kube.CoreV1().RESTClient().Delete().AbsPath("/apis", shadowPods, "namespaces", s.Namespace, "shadowpods", s.Name).
			Param("propagationPolicy", "Orphan").Do(t.Context()).Error()
	}},
	"V9: leave all pods behind": {rbac, func(t *testing.T, p *peering) error {
		return p.slice.DeleteAllOf(t.Context(), &offloadingv1beta1.ShadowPod{}, client.InNamespace(p.twin), client.PropagationPolicy(metav1.DeletePropagationOrphan))
	}},
	"honest: see pods": {"", func(t *testing.T, p *peering) error {
		return p.slice.List(t.Context(), &corev1.PodList{}, client.InNamespace(p.twin))
	}},
	"V5: list Secrets": {rbac, func(t *testing.T, p *peering) error {
		return p.slice.List(t.Context(), &corev1.SecretList{}, client.InNamespace(p.twin))
	}},
	"V5: watch Secrets": {rbac, func(t *testing.T, p *peering) error {
		w, err := p.slice.Watch(t.Context(), &corev1.SecretList{}, client.InNamespace(p.twin))
		if err == nil {
			w.Stop()
		}
		return err
	}},
	"V5: get a Secret that it made": {rbac, func(t *testing.T, p *peering) error {
		s := p.secret("v5-get", corev1.SecretTypeOpaque, p.reflected())
		fixture.Must(t, "creating a Secret", p.slice.Create(t.Context(), s))
		return p.slice.Get(t.Context(), keyOf(s), s)
	}},
	"V5: patch a foreign Secret": {notYourObject, func(t *testing.T, p *peering) error {
		s := p.secret("v5-patch", corev1.SecretTypeOpaque, nil)
		p.provide(t, s)
		return p.slice.Patch(t.Context(), s, merge(`{"data":{"a":"YQ=="}}`))
	}},
	"V5: read a foreign Secret by taking it over": {notYourObject, func(t *testing.T, p *peering) error {
		s := p.secret("v5-take", corev1.SecretTypeOpaque, nil)
		p.provide(t, s)
		return p.slice.Patch(t.Context(), s, merge(`{"metadata":{"labels":{"offloading.liqo.io/origin":"`+p.consumer+`"}}}`))
	}},
	"V5: read a foreign Secret by a patch that changes nothing": {notYourObject, func(t *testing.T, p *peering) error {
		s := p.secret("v5-nothing", corev1.SecretTypeOpaque, nil)
		p.provide(t, s)
		return p.slice.Patch(t.Context(), s, merge(`{}`))
	}},
	"V5: read a foreign Secret by a dry run": {notYourObject, func(t *testing.T, p *peering) error {
		s := p.secret("v5-dry", corev1.SecretTypeOpaque, nil)
		p.provide(t, s)
		return p.slice.Patch(t.Context(), s, merge(`{}`), client.DryRunAll)
	}},
	"V5: read a foreign Secret by deleting it": {notYourObject, func(t *testing.T, p *peering) error {
		s := p.secret("v5-delete", corev1.SecretTypeOpaque, nil)
		p.provide(t, s)
		return p.slice.Delete(t.Context(), s)
	}},
	"V5: delete all Secrets": {rbac, func(t *testing.T, p *peering) error {
		return p.slice.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(p.twin))
	}},
	"V5: mint a token through a Secret": {secretTypeNot, func(t *testing.T, p *peering) error {
		s := p.secret("v5-token", corev1.SecretTypeServiceAccountToken, p.reflected())
		s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
		return p.slice.Create(t.Context(), s)
	}},
	"V5: make a bootstrap token": {secretTypeNot, func(t *testing.T, p *peering) error {
		return p.slice.Create(t.Context(), p.secret("v5-bootstrap", "bootstrap.kubernetes.io/token", p.reflected()))
	}},
	"V5: write the ledger": {notYourObject, func(t *testing.T, p *peering) error {
		return p.slice.Create(t.Context(), p.configMap(offloadingv1beta1.SecretLedger, p.reflected()))
	}},
	"V5: write the ledger under a generated name": {"", func(t *testing.T, p *peering) error {
		c := p.configMap("", p.reflected())
		c.GenerateName = offloadingv1beta1.SecretLedger + "-"
		return p.slice.Create(t.Context(), c) // another name: not the ledger
	}},
	"a ConfigMap without marks": {notYourObject, func(t *testing.T, p *peering) error {
		return p.slice.Create(t.Context(), p.configMap("no-marks", nil))
	}},
	"a ConfigMap in somebody else's name": {notYourObject, func(t *testing.T, p *peering) error {
		return p.slice.Create(t.Context(), p.configMap("naples", map[string]string{offloadingv1beta1.OriginLabel: "naples"}))
	}},
	"change the provider's ConfigMap": {notYourObject, func(t *testing.T, p *peering) error {
		c := p.configMap("providers", nil)
		p.provide(t, c)
		return p.slice.Patch(t.Context(), c, merge(`{"data":{"a":"c"}}`))
	}},
	"drop its own mark": {notYourObject, func(t *testing.T, p *peering) error {
		c := p.configMap("drop", p.reflected())
		fixture.Must(t, "creating a ConfigMap", p.slice.Create(t.Context(), c))
		return p.slice.Patch(t.Context(), c, merge(`{"metadata":{"labels":null}}`))
	}},
	"a ShadowPod without marks": {notYourObject, func(t *testing.T, p *peering) error {
		return p.slice.Create(t.Context(), p.shadowPod("no-marks", nil))
	}},
	"delete the provider's ShadowPod": {notYourObject, func(t *testing.T, p *peering) error {
		s := p.shadowPod("providers", nil)
		p.provide(t, s)
		return p.slice.Delete(t.Context(), s)
	}},
	"say that a ShadowPod runs": {rbac, func(t *testing.T, p *peering) error {
		s := p.shadowPod("status", p.reflected())
		fixture.Must(t, "creating a ShadowPod", p.slice.Create(t.Context(), s))
		s.Status.Phase = corev1.PodSucceeded
		return p.slice.Status().Update(t.Context(), s)
	}},
	"a ShadowPod with a finalizer": {finalizerNotAllowed, func(t *testing.T, p *peering) error {
		s := p.shadowPod("finalizer", p.reflected())
		s.Finalizers = []string{"turin.it/never"}
		return p.slice.Create(t.Context(), s)
	}},
	"honest: tokens that go with their ShadowPod": {"", func(t *testing.T, p *peering) error {
		first, next := p.shadowPod("tokens-first", p.reflected()), p.shadowPod("tokens-next", p.reflected())
		fixture.Must(t, "creating a ShadowPod", p.slice.Create(t.Context(), first))
		fixture.Must(t, "creating a ShadowPod", p.slice.Create(t.Context(), next))
		s := p.tokenSecret("tokens")
		s.OwnerReferences[0].Name, s.OwnerReferences[0].UID = first.Name, first.UID
		fixture.Must(t, "creating it", p.slice.Create(t.Context(), s))
		return p.slice.Patch(t.Context(), s, merge(fmt.Sprintf(
			`{"data":{"a":"YQ=="},"metadata":{"ownerReferences":[{"apiVersion":"offloading.liqo.io/v1beta1","kind":"ShadowPod","name":%q,"uid":%q}]}}`, next.Name, next.UID)))
	}},
	"W7: read tokens back": {rbac, func(t *testing.T, p *peering) error {
		s := p.tokenSecret("tokens-back")
		fixture.Must(t, "creating it", p.slice.Create(t.Context(), s))
		return p.slice.Get(t.Context(), keyOf(s), s)
	}},
	"tokens that a ShadowPod controls": owned(func(s *corev1.Secret) { s.OwnerReferences[0].Controller = &yes }),
	"tokens that keep their ShadowPod": owned(func(s *corev1.Secret) { s.OwnerReferences[0].BlockOwnerDeletion = &yes }),
	"tokens of two ShadowPods": owned(func(s *corev1.Secret) {
		s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: shadowPods, Kind: "ShadowPod", Name: "b", UID: "c"})
	}),
	"tokens that go with a pod":                    owned(func(s *corev1.Secret) { s.OwnerReferences[0].APIVersion, s.OwnerReferences[0].Kind = "v1", "Pod" }),
	"tokens that go with another kind of ours":     owned(func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "Quota" }),
	"tokens that go with a ShadowPod of others":    owned(func(s *corev1.Secret) { s.OwnerReferences[0].APIVersion = "turin.it/v1" }),
	"a Secret without tokens that has a ShadowPod": owned(func(s *corev1.Secret) { delete(s.Labels, offloadingv1beta1.ServiceAccountNameLabel) }),
	"a ConfigMap that goes with a ShadowPod": {ownerNotAllowed, func(t *testing.T, p *peering) error {
		c := p.configMap("owner", p.tokenSecret("").Labels)
		c.OwnerReferences = p.tokenSecret("").OwnerReferences
		return p.slice.Create(t.Context(), c)
	}},
	"a Secret with an owner": {ownerNotAllowed, func(t *testing.T, p *peering) error {
		s := p.secret("owner", corev1.SecretTypeOpaque, p.reflected())
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "b"}}
		return p.slice.Create(t.Context(), s)
	}},
	"change a pod": {rbac, func(t *testing.T, p *peering) error {
		return p.slice.Patch(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "any", Namespace: p.twin}}, merge(`{}`))
	}},
	"read another consumer's twin": {rbac, func(t *testing.T, p *peering) error {
		return p.slice.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("probe"))
	}},
	"write into another consumer's twin": {rbac, func(t *testing.T, p *peering) error {
		c := p.configMap("escape", p.reflected())
		c.Namespace = "probe"
		return p.slice.Create(t.Context(), c)
	}},
	"write into kube-system": {rbac, func(t *testing.T, p *peering) error {
		c := p.configMap("escape", p.reflected())
		c.Namespace = "kube-system"
		return p.slice.Create(t.Context(), c)
	}},
	"read pods of all namespaces": {rbac, func(t *testing.T, p *peering) error {
		return p.slice.List(t.Context(), &corev1.PodList{})
	}},
	"use the control plane's rights": {rbac, func(t *testing.T, p *peering) error {
		return p.slice.Create(t.Context(), p.resourceSlice("escape", p.honest()))
	}},
}

func TestHostileSlice(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	for name, a := range sliceAttempts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.check(t, a.try(t, p))
		})
	}
}

// V12: even where the binding of a twin is wrong, a namespace that is not the consumer's is refused.
func TestNamespaceMustBeTheConsumers(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	name := fixture.Unique("mislabelled")
	objects := fixture.TwinNamespace(name, p.consumer)
	objects[0].SetLabels(map[string]string{"liqo.io/remote-cluster-id": "naples"})
	for _, object := range objects {
		p.provide(t, object)
	}
	fixture.Await(t, fixture.Patience, "the rights in namespace "+name, func(ctx context.Context) (bool, string) {
		err := p.mayRead(ctx, name)
		return err == nil, fmt.Sprint(err)
	})
	c := p.configMap("any", p.reflected())
	c.Namespace = name
	attempt{reason: notYourNamespace}.check(t, p.slice.Create(t.Context(), c))
}

// C13: by an eviction the consumer gives its pods that are being deleted less time, and touches no others.
func TestEvictions(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("idle")}}
	p.provide(t, node)
	seconds := func(n int64) *int64 { return &n }
	// All of them are longer than the test: where a pod was deleted longer ago than its new grace period, the API server gives it 1 s instead.
	const long, short, longer = 3600, 1800, 7200
	provide := func(name string, labels map[string]string, deleted bool) {
		t.Helper()
		// A pod that is bound to a node stays until its kubelet says that it ended; here there is none.
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.twin, Labels: labels},
			Spec: corev1.PodSpec{NodeName: node.Name, TerminationGracePeriodSeconds: seconds(long), Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
		p.provide(t, pod)
		if deleted {
			fixture.Must(t, "deleting a pod", env.Milan.Client.Delete(t.Context(), pod))
		}
	}
	own := p.reflected()
	own[offloadingv1beta1.ManagedByLabel] = offloadingv1beta1.ManagedByShadowPod
	provide("going", own, true)
	provide("living", own, false)
	provide("providers", nil, true)
	evict := func(ctx context.Context, name string, grace *int64, dryRun ...string) error {
		return p.slice.Kube.PolicyV1().Evictions(p.twin).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.twin}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: grace, DryRun: dryRun}})
	}
	// Until the policies are effective everything is allowed, and until they know the pods nothing is found out about them.
	for name, tc := range map[string]struct {
		pod    string
		grace  *int64
		reason string
	}{
		"a pod that is not being deleted": {"living", seconds(short), "NotDeleted"},
		"the provider's pod":              {"providers", seconds(short), notYourObject},
		"by force":                        {"going", seconds(0), "GracePeriodNotAllowed"},
		"without a grace period":          {"going", nil, "GracePeriodNotAllowed"},
		"a longer grace period":           {"going", seconds(longer), "GracePeriodNotAllowed"},
	} {
		fixture.Await(t, fixture.Patience, "an eviction to be refused: "+name, func(ctx context.Context) (bool, string) {
			err := evict(ctx, tc.pod, tc.grace, metav1.DryRunAll)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), tc.reason), fmt.Sprint(err)
		})
	}
	fixture.Must(t, "shortening a grace period", evict(t.Context(), "going", seconds(short)))
	pod := &corev1.Pod{}
	fixture.Must(t, "reading the pod", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: p.twin, Name: "going"}, pod))
	if got := ptr.Deref(pod.DeletionGracePeriodSeconds, -1); got != short {
		t.Errorf("grace period %d s, want %d s", got, short)
	}
}

// awaitStreamPolicy waits until streams are checked; a chart without that policy relies on RBAC, which cannot tell pods apart.
func awaitStreamPolicy(t *testing.T) {
	t.Helper()
	_, err := env.Milan.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(t.Context(), "liqo-consumer-streams", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		t.Skip("the chart has no policy liqo-consumer-streams: V14 is not enforced")
	}
	fixture.Must(t, "reading the policy's binding", err)
	p := newPeering(t)
	p.provide(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: p.twin},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}})
	p.awaitRefusedStream(t, "probe")
}

// awaitRefusedStream waits until the policy knows a pod: the API server learns of policies, and of pods as their parameters, in the background.
func (p *peering) awaitRefusedStream(t *testing.T, pod string) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "policy liqo-consumer-streams to refuse "+pod, func(ctx context.Context) (bool, string) {
		err := p.slice.Kube.CoreV1().RESTClient().Post().Namespace(p.twin).Resource("pods").Name(pod).SubResource("attach").Do(ctx).Error()
		return err != nil && strings.Contains(err.Error(), notYourObject), fmt.Sprint(err)
	})
}

// V14: the consumer may open streams into the pods that its ShadowPods became, and into no others of the twin.
func TestStreamsIntoForeignPods(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	awaitStreamPolicy(t)
	for pod, labels := range map[string]map[string]string{
		"own": p.reflected(), "providers": nil, "naples": {offloadingv1beta1.OriginLabel: "naples"},
	} {
		if labels != nil {
			labels[offloadingv1beta1.ManagedByLabel] = offloadingv1beta1.ManagedByShadowPod
		}
		p.provide(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: p.twin, Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}})
	}
	p.awaitRefusedStream(t, "providers")
	p.awaitRefusedStream(t, "naples")
	for _, pod := range []string{"own", "providers", "naples"} {
		t.Run("log "+pod, func(t *testing.T) {
			t.Parallel()
			// Nobody asked for any of them yet; test/integration/offloading has the controller that lets own ones be read then.
			attempt{reason: rbac}.check(t, p.slice.Kube.CoreV1().Pods(p.twin).GetLogs(pod, &corev1.PodLogOptions{Container: "a"}).Do(t.Context()).Error())
		})
	}
	for _, stream := range []string{"exec", "attach", "portforward"} {
		for _, verb := range []string{"POST", "GET"} {
			for _, pod := range []string{"own", "providers", "naples"} {
				t.Run(stream+" "+verb+" "+pod, func(t *testing.T) {
					t.Parallel()
					err := p.slice.Kube.CoreV1().RESTClient().Verb(verb).Namespace(p.twin).Resource("pods").Name(pod).
						SubResource(stream).Param("container", "a").Param("command", "id").Param("stdout", "true").
						Do(t.Context()).Error()
					if pod != "own" {
						attempt{reason: notYourObject}.check(t, err)
						return
					}
					// The pod runs nowhere, so the stream itself cannot open; it must not be admission that says so.
					if err == nil || apierrors.IsForbidden(err) {
						t.Errorf("error = %v, want only that the pod cannot be reached", err)
					}
				})
			}
		}
	}
}
