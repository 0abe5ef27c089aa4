package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// Reasons of the policies about what a consumer chooses.
const (
	volumeNot            = "VolumeNotAllowed"
	storageClassNot      = "StorageClassNotAllowed"
	serviceAnnotationNot = "ServiceAnnotationNotAllowed"
)

// payroll is a volume of the provider that is there to be claimed by somebody else.
func payroll(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"owner": name}},
		Spec: corev1.PersistentVolumeSpec{Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: name + "-class",
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.5", Path: "/exports/payroll"}}}}
}

func (p *peering) claim(name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.twin, Labels: p.reflected()},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: ptr.To(class),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}}}
}

// S7: a consumer may choose the volume of its claim neither when it makes it nor a moment later, nor have the empty class, by which it
// would get one that nobody gave a class.
func TestClaimChoosesItsVolumeNeverAndNotLater(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	// The class is this test's own: nobody else's claim takes its volume.
	name, waits := fixture.Unique("payroll"), fixture.Unique("waits")
	p.provide(t, payroll(name))
	direct := p.claim("direct", waits)
	direct.Spec.VolumeName = name
	attempt{reason: volumeNot}.check(t, p.slice.Create(t.Context(), direct))
	attempt{reason: storageClassNot}.check(t, p.slice.Create(t.Context(), p.claim("empty", "")))
	none := p.claim("none", "")
	none.Spec.StorageClassName = nil
	none.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-class": ""}
	attempt{reason: "NotAllowed"}.check(t, p.slice.Create(t.Context(), none))

	// A claim that no volume fits, so that it waits; then it is told which one to take.
	later := p.claim("later", waits)
	fixture.Must(t, "creating a claim", p.slice.Create(t.Context(), later))
	attempt{reason: volumeNot}.check(t, p.slice.Patch(t.Context(), later.DeepCopy(), merge(fmt.Sprintf(`{"spec":{"volumeName":%q}}`, name))))
	attempt{}.check(t, p.slice.Patch(t.Context(), later.DeepCopy(), merge(`{"metadata":{"labels":{"a":"b"}}}`)))

	// What Kubernetes says of it afterwards does not hinder the consumer.
	bound := payroll(name + "-2")
	bound.Spec.StorageClassName = waits
	p.provide(t, bound)
	fixture.Await(t, fixture.Patience, "the claim to be bound by Kubernetes", func(ctx context.Context) (bool, string) {
		err := p.slice.Get(ctx, keyOf(later), later)
		return err == nil && later.Status.Phase == corev1.ClaimBound && later.Spec.VolumeName == bound.Name, fmt.Sprint(later.Status, err)
	})
	attempt{}.check(t, p.slice.Patch(t.Context(), later.DeepCopy(), merge(`{"metadata":{"labels":{"a":"c"}}}`)))
}

// S8: what annotations a consumer's Service has is the provider's list, where little is allowed and where much is.
func TestServiceAnnotations(t *testing.T) {
	t.Parallel()
	for profile, prepare := range map[string]func(*testing.T, *peering){"compatible": func(*testing.T, *peering) {}, "hardened": restrict} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			p := newPeering(t)
			prepare(t, p)
			for key, value := range map[string]string{
				"external-dns.alpha.kubernetes.io/hostname":                      "bank.example.org",
				"getambassador.io/config":                                        "apiVersion: ambassador/v2\nkind: Mapping\nhost: bank.example.org\nprefix: /\nservice: evil",
				"service.beta.kubernetes.io/aws-load-balancer-security-groups":   "sg-admin",
				"service.beta.kubernetes.io/azure-load-balancer-internal-subnet": "core",
				"metallb.io/loadBalancerIPs":                                     "192.0.2.1",
				"networking.gke.io/internal-load-balancer-allow-global-access":   "true",
				"io.cilium/lb-ipam-ips":                                          "192.0.2.1",
				"kube-vip.io/loadbalancerIPs":                                    "192.0.2.1",
			} {
				s := p.service(fixture.Unique("s8"), p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: ptr.To("milan.it/lb")})
				s.Annotations = map[string]string{key: value}
				attempt{reason: serviceAnnotationNot}.check(t, p.slice.Create(t.Context(), s))
				s.Annotations = map[string]string{"note": "harmless", "prometheus.io/scrape": "true"}
				s.ResourceVersion = ""
				fixture.Must(t, "creating an honest Service", p.slice.Create(t.Context(), s))
				changed := s.DeepCopy()
				changed.Annotations[key] = value
				attempt{reason: serviceAnnotationNot}.check(t, p.slice.Update(t.Context(), changed))
				attempt{reason: serviceAnnotationNot}.check(t, p.slice.Patch(t.Context(), s.DeepCopy(), merge(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))))
				// What the provider's own controllers put there stays, and hinders nobody.
				fixture.Must(t, "annotating it as the provider", env.Milan.Client.Patch(t.Context(), s.DeepCopy(), merge(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))))
				attempt{}.check(t, p.slice.Patch(t.Context(), s.DeepCopy(), merge(`{"spec":{"selector":{"a":"c"}}}`)))
			}
			direct := p.service("s8-direct", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: ptr.To("milan.it/lb"), LoadBalancerIP: "192.0.2.1"})
			attempt{reason: loadBalancerIPNot}.check(t, p.slice.Create(t.Context(), direct))
		})
	}
}

// walked are the kinds that a consumer writes, and what of each it may set in no way.
var walked = map[string]struct {
	base   func(p *peering, name string) client.Object
	fields map[string]any
}{
	"claim": {func(p *peering, name string) client.Object { return p.claim(name, "waits") }, map[string]any{
		"spec.volumeName": "payroll", "spec.selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		"spec.dataSource": map[string]any{"kind": "PersistentVolumeClaim", "name": "theirs"}, "spec.storageClassName": "",
		"spec.volumeAttributesClassName":                                     "gold",
		"metadata.annotations.pv\\.kubernetes\\.io/bound":                    "yes",
		"metadata.annotations.k8s\\.io/CloneRequest":                         "payroll/books",
		"metadata.annotations.nfs\\.io/storage-path":                         "..",
		"metadata.annotations.volume\\.beta\\.kubernetes\\.io/storage-class": "",
	}},
	"Service": {func(p *peering, name string) client.Object {
		return p.service(name, p.reflected(), corev1.ServiceSpec{})
	}, map[string]any{
		"spec.externalIPs": []any{"192.0.2.1"},
		"metadata.annotations.external-dns\\.alpha\\.kubernetes\\.io/hostname": "bank.example.org",
		"metadata.annotations.metallb\\.io/loadBalancerIPs":                    "192.0.2.1",
	}},
	"Secret": {func(p *peering, name string) client.Object {
		return p.secret(name, corev1.SecretTypeOpaque, p.reflected())
	}, map[string]any{"type": "kubernetes.io/service-account-token"}},
	"ConfigMap": {func(p *peering, name string) client.Object { return p.configMap(name, p.reflected()) }, nil},
	"Ingress":   {func(p *peering, name string) client.Object { return p.ingress(name, p.reflected(), "a.example.org") }, nil},
	"ShadowPod": {func(p *peering, name string) client.Object { return p.shadowPod(name, p.reflected()) }, nil},
}

// everywhere are fields that a consumer may set of no kind.
var everywhere = map[string]any{
	"metadata.finalizers":      []any{"rome.it/never"},
	"metadata.ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}},
	"metadata.labels." + strings.ReplaceAll(offloadingv1beta1.OriginLabel, ".", "\\."): "somebody-else",
}

// path takes a path apart; a dot within a key is escaped.
func path(text string) []string {
	keys := strings.Split(strings.ReplaceAll(text, "\\.", "\x00"), ".")
	for i := range keys {
		keys[i] = strings.ReplaceAll(keys[i], "\x00", ".")
	}
	return keys
}

// Whatever a consumer may not set of an object it may set in no operation: not when the object is made, not by any kind of change, not by
// a subresource.
func TestNoOperationSetsWhatIsRefused(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	for kind, walk := range walked {
		fields := map[string]any{}
		for _, more := range []map[string]any{everywhere, walk.fields} {
			for field, value := range more {
				fields[field] = value
			}
		}
		for field, value := range fields {
			t.Run(kind+" "+field, func(t *testing.T) {
				t.Parallel()
				p.walk(t, walk.base, path(field), value)
			})
		}
	}
}

func (p *peering) walk(t *testing.T, base func(*peering, string) client.Object, field []string, value any) {
	bare := func(name string) *unstructured.Unstructured {
		object := base(p, name)
		kinds, _, err := fixture.Scheme.ObjectKinds(object)
		fixture.Must(t, "looking up the kind", err)
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		fixture.Must(t, "converting the object", err)
		u := &unstructured.Unstructured{Object: fields}
		u.SetGroupVersionKind(kinds[0])
		unstructured.RemoveNestedField(u.Object, "status")
		return u
	}
	with := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		fixture.Must(t, "setting the field", unstructured.SetNestedField(u.Object, runtime.DeepCopyJSONValue(value), field...))
		return u
	}
	partial := &unstructured.Unstructured{Object: map[string]any{}}
	patch, err := yaml.Marshal(with(partial).Object)
	fixture.Must(t, "making a patch", err)
	patch, err = yaml.YAMLToJSON(patch)
	fixture.Must(t, "making a patch", err)
	live := func() *unstructured.Unstructured {
		made := bare(fixture.Unique("walk"))
		fixture.Must(t, "creating an honest one", p.slice.Create(t.Context(), made))
		return made
	}
	apply := func(u *unstructured.Unstructured) error {
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		return p.slice.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("walk"), client.ForceOwnership)
	}
	for way, try := range map[string]func() error{
		"create": func() error { return p.slice.Create(t.Context(), with(bare(fixture.Unique("walk")))) },
		"create unnamed": func() error {
			u := with(bare(""))
			u.SetGenerateName("walk-")
			return p.slice.Create(t.Context(), u)
		},
		"apply anew":  func() error { return apply(with(bare(fixture.Unique("walk")))) },
		"apply":       func() error { u := live(); return apply(with(bare(u.GetName()))) },
		"update":      func() error { return p.slice.Update(t.Context(), with(live())) },
		"merge patch": func() error { return p.slice.Patch(t.Context(), live(), client.RawPatch(types.MergePatchType, patch)) },
		"status": func() error {
			return p.slice.Status().Patch(t.Context(), live(), client.RawPatch(types.MergePatchType, patch))
		},
		"dry run": func() error { return p.slice.Create(t.Context(), with(bare(fixture.Unique("walk"))), client.DryRunAll) },
	} {
		// No object of these kinds without status has that subresource: then there is nothing to write.
		if err := try(); err == nil || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !(way == "status" && apierrors.IsNotFound(err)) {
			t.Errorf("%s: answered with %v, want a refusal", way, err)
		}
	}
}
