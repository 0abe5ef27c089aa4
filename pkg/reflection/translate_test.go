package reflection

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
	"sigs.k8s.io/randfill"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// clustersOwn are the fields, by JSON path, that a cluster gives every object by itself.
var clustersOwn = []string{
	"metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.deletionTimestamp",
	"metadata.deletionGracePeriodSeconds", "metadata.finalizers", "metadata.ownerReferences", "metadata.managedFields",
	"metadata.generateName", "metadata.selfLink", "status",
}

// providersOwn are the fields of each kind that are left to the provider.
var providersOwn = map[string][]string{
	"configmap": nil,
	"secret":    {"stringData"},
	"service": {
		"spec.clusterIPs", "spec.loadBalancerIP", "spec.healthCheckNodePort", "spec.ipFamilies", "spec.externalIPs", "spec.ports.*.nodePort",
		"spec.loadBalancerClass", "spec.clusterIP",
	},
	"endpointslice": {
		"spec.template.endpoints.*.targetRef.uid", "spec.template.endpoints.*.targetRef.resourceVersion",
		"spec.template.endpoints.*.deprecatedTopology", "spec.template.endpoints.*.hints.forNodes",
	},
	"ingress":               {"spec.ingressClassName"},
	"networkpolicy":         nil,
	"persistentvolumeclaim": {"spec.volumeName", "spec.selector", "spec.dataSource", "spec.dataSourceRef", "spec.volumeAttributesClassName"},
}

// words are texts that rules look at.
var words = []string{
	"", "a", "true", corev1.ClusterIPNone, "10.0.0.1", "fd00::1", RootCAConfigMap, "kube-root-ca.crt.rome", offloadingv1beta1.SecretLedger,
	"kubernetes", "default", "rome", "milan", string(corev1.SecretTypeServiceAccountToken), strings.Repeat("x", 300), "\xff\x00",
}

// keys are keys of labels and annotations that rules look at.
var keys = []string{
	"a", "example.org/b", offloadingv1beta1.SkipReflectionAnnotation, offloadingv1beta1.AllowReflectionAnnotation,
	offloadingv1beta1.ForceRemoteNodePortAnnotation, offloadingv1beta1.OriginLabel, offloadingv1beta1.DestinationLabel,
	offloadingv1beta1.ReflectedKeysAnnotation, corev1beta1.OriginUIDAnnotation, ingressClassAnnotation, "kubernetes.io/service-name",
	offloadingv1beta1.APIServerSupportAnnotation, offloadingv1beta1.RemoteAccessModesAnnotation,
}

// fill makes an object of any bytes, with all fields that its type has.
func fill(data []byte, into any) {
	randfill.NewFromGoFuzz(data).NilChance(0.5).NumElements(0, 2).Funcs(
		func(s *string, c randfill.Continue) {
			if *s = c.String(20); c.Bool() {
				*s = words[c.Uint64()%uint64(len(words))]
			}
		},
		func(m *map[string]string, c randfill.Continue) {
			*m = map[string]string{}
			for range c.Uint64() % 4 {
				var value string
				c.Fill(&value)
				(*m)[keys[c.Uint64()%uint64(len(keys))]] = value
			}
		},
		func(t *corev1.ServiceType, c randfill.Continue) {
			*t = []corev1.ServiceType{"", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"}[c.Uint64()%5]
		},
		func(a *discoveryv1.AddressType, c randfill.Continue) {
			*a = []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN}[c.Uint64()%3]
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(int64(c.Uint64()%(1<<40)), resource.BinarySI)
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(int64(c.Uint64()%(1<<32)), 0) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { *f = *metav1.NewFieldsV1("{}") },
		func(i *intstr.IntOrString, c randfill.Continue) {
			if *i = intstr.FromInt32(int32(c.Uint64() % (1 << 16))); c.Bool() {
				*i = intstr.FromString(c.String(15))
			}
		},
	).Fill(into)
}

// found lists the values at a path; * stands for each element of a list. Empty values do not count.
func found(value any, path []string) []any {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		if len(path) == 0 {
			break
		}
		var all []any
		for _, element := range value {
			all = append(all, found(element, path[1:])...)
		}
		return all
	case map[string]any:
		if len(path) > 0 {
			return found(value[path[0]], path[1:])
		}
		var all []any
		for _, inner := range value {
			all = append(all, found(inner, nil)...)
		}
		return all
	}
	if len(path) > 0 || reflect.ValueOf(value).IsZero() {
		return nil
	}
	return []any{value}
}

// leavesToProvider fails if an object says what is left to the provider, unless it was told to.
func leavesToProvider(t failer, kind string, object Object, told map[string]bool) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatalf("%v", err)
	}
	list, known := providersOwn[kind]
	if !known {
		t.Fatalf("nobody says what of kind %s is left to the provider", kind)
	}
	for _, path := range append(list, clustersOwn...) {
		if values := found(content, strings.Split(path, ".")); len(values) > 0 && !told[path] {
			t.Fatalf("kind %s: %s is left to the provider, but is %v", kind, path, values)
		}
	}
}

// toldFor are the fields that are left to the provider unless it is known what they must be.
func toldFor(in Input) map[string]bool {
	told := map[string]bool{}
	if service, is := in.Local.(*corev1.Service); is {
		told["spec.ports.*.nodePort"] = service.Annotations[offloadingv1beta1.ForceRemoteNodePortAnnotation] == "true"
		told["spec.loadBalancerClass"] = in.Provider.LoadBalancerClass != ""
		told["spec.clusterIP"] = isHeadless(service.Spec)
		told["spec.ipFamilies"] = slices.Equal(service.Spec.IPFamilies, []corev1.IPFamily{corev1.IPv6Protocol})
	}
	if _, is := in.Local.(*networkingv1.Ingress); is {
		told["spec.ingressClassName"] = in.Provider.IngressClass != ""
	}
	return told
}

// checkTranslation checks what holds of every translation of every kind: it changes nothing at home, says the same each time,
// marks what it makes, leaves to the provider what is the provider's, and is idempotent.
func checkTranslation(t failer, kind Kind, in Input) {
	before := in.Local.DeepCopyObject()
	result := kind.Translate(in)
	if diff := cmp.Diff(before, in.Local); diff != "" {
		t.Fatalf("the local object was changed: %s", diff)
	}
	again := kind.Translate(in)
	if diff := cmp.Diff(result, again); diff != "" {
		t.Fatalf("the second time it is another: %s", diff)
	}
	if (result.Apply == nil) == (result.Skip == nil) {
		t.Fatalf("neither or both: %+v", result)
	}
	if result.Skip != nil {
		if result.Skip.Reason == "" || result.Skip.Message == "" {
			t.Fatalf("nobody is told why: %+v", result.Skip)
		}
		return
	}
	wanted := result.Apply
	if !IsOurs(wanted, in.Home, in.Remote) || OriginUID(wanted) != string(in.Local.GetUID()) ||
		wanted.GetNamespace() != in.RemoteNamespace || wanted.GetName() != kind.Remote(in.Home, in.Local.GetName()) {
		t.Fatalf("metadata is %s/%s, labels %v, annotations %v", wanted.GetNamespace(), wanted.GetName(), wanted.GetLabels(), wanted.GetAnnotations())
	}
	leavesToProvider(t, kind.Name, wanted, toldFor(in))
	if !kind.Contains(wanted, wanted) || kind.Immutable(wanted, wanted) != "" {
		t.Fatalf("it does not contain itself: %v", kind.Differences(wanted, wanted))
	}
	if kind.Twin != nil {
		return // What is made is of another kind; there is nothing to translate once more.
	}
	second := in
	second.Local = wanted.DeepCopyObject().(Object)
	reflect.ValueOf(second.Local).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(in.Local).Elem().FieldByName("ObjectMeta"))
	twice := kind.Translate(second)
	if twice.Apply == nil {
		t.Fatalf("translated once more, it stays: %+v", twice.Skip)
	}
	// What was left out the first time is not there to be left out again.
	if changes := kind.Differences(wanted, WithoutPart(twice.Apply, RefusedPartOf(wanted))); len(changes) > 0 {
		t.Fatalf("translated once more, it changes: %+v", changes)
	}
}

// translationOf makes an input of any bytes.
func translationOf(kind Kind, data []byte) Input {
	local := kind.NewObject()
	fill(data, local)
	in := input(local)
	var odd bool
	for _, b := range data {
		odd = odd != (b%2 == 1)
	}
	if odd {
		in.Provider = offeringProvider
	}
	if slice, is := local.(*discoveryv1.EndpointSlice); is {
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: "shop"}
		slice.Endpoints = append(slice.Endpoints, endpoint("worker", "10.0.0.1"))
		in.Provider, in.Parent = milan, &corev1.Service{}
	}
	return in
}

// TestTranslations checks any objects of every kind.
func TestTranslations(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			crossed := 0
			rapid.Check(t, func(t *rapid.T) {
				in := translationOf(kind, rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "bytes"))
				checkTranslation(t, kind, in)
				if kind.Translate(in).Apply != nil {
					crossed++
				}
			})
			if crossed == 0 {
				t.Error("no object crossed: nothing was checked")
			}
		})
	}
}

// D3: the longest names cross as they are or under another valid one, from which the local name is found again; a local object
// with a name that another one gets at the provider is not mistaken for it.
func TestD3Names(t *testing.T) {
	names := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?){0,4}`),
		rapid.SampledFrom([]string{strings.Repeat("n", 253), RootCAConfigMap, RootCAConfigMap + ".rome", RootCAConfigMap + ".x"}),
	).Filter(func(name string) bool { return len(name) <= validation.DNS1123SubdomainMaxLength })
	homes := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,49}[a-z0-9])?`)
	for _, kind := range Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				name, home := names.Draw(t, "name"), homes.Draw(t, "home")
				there := kind.Remote(home, name)
				if problems := validation.IsDNS1123Subdomain(there); len(problems) > 0 {
					t.Fatalf("%q cannot be a name at the provider: %v", there, problems)
				}
				back := kind.Local(home, there)
				if back == name {
					return
				}
				local := kind.NewObject()
				local.SetName(name)
				in := input(local, func(in *Input) { in.Home = home })
				if kind.Remote(home, back) != there || kind.Translate(in).Apply != nil {
					t.Fatalf("%q and %q are both %q at the provider", name, back, there)
				}
			})
		})
	}
}

func fuzzTranslation(f *testing.F, name string) {
	kind, known := Lookup(name)
	if !known {
		f.Fatalf("no kind %q", name)
	}
	f.Add([]byte{})
	f.Add([]byte("any bytes make an object"))
	f.Fuzz(func(t *testing.T, data []byte) { checkTranslation(t, kind, translationOf(kind, data)) })
}

func FuzzTranslateConfigMap(f *testing.F) { fuzzTranslation(f, "configmap") }

func FuzzTranslateSecret(f *testing.F) { fuzzTranslation(f, "secret") }

func FuzzTranslateService(f *testing.F) { fuzzTranslation(f, "service") }

func FuzzTranslateEndpointSlice(f *testing.F) { fuzzTranslation(f, "endpointslice") }

func FuzzTranslateIngress(f *testing.F) { fuzzTranslation(f, "ingress") }

// podOf makes a pod of any bytes, without what is refused, which would be all that is found.
func podOf(data []byte) *corev1.Pod {
	pod := &corev1.Pod{}
	fill(data, pod)
	walkPod(field.NewPath("spec"), reflect.ValueOf(&pod.Spec), func(_ *field.Path, _ reflect.Type, f podField, value reflect.Value) bool {
		if f.treatment == Denied {
			value.SetZero()
		}
		return true
	})
	// API servers refuse two containers of one name.
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].Name = fmt.Sprint("init", i)
	}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Name = fmt.Sprint("main", i)
	}
	pod.Name, pod.Namespace, pod.UID = "a", "demo", "1234"
	return pod
}

// checkShadowOf checks what holds of every ShadowPod, and tells whether there is one.
func checkShadowOf(t failer, local *corev1.Pod) bool {
	in := PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "demo-rome", Claims: map[string]string{}}
	for _, claim := range ClaimsOf(local) {
		in.Claims[claim.Name] = claim.Name
	}
	before := local.DeepCopy()
	shadow, refusal := ShadowPod(local, in)
	if diff := cmp.Diff(before, local); diff != "" {
		t.Fatalf("the local pod was changed: %s", diff)
	}
	if refusal != nil {
		if shadow != nil || refusal.Message == "" || refusal.Reason == "" {
			t.Fatalf("refused without a word: %+v", refusal)
		}
		return false
	}
	if !IsOurs(shadow, "rome", "milan") || shadow.Namespace != "demo-rome" || shadow.Name != "a" {
		t.Fatalf("metadata is %+v", shadow.ObjectMeta)
	}
	walkPod(field.NewPath("spec"), reflect.ValueOf(&shadow.Spec.Pod), func(path *field.Path, _ reflect.Type, f podField, _ reflect.Value) bool {
		if f.treatment == Local || f.treatment == Denied {
			t.Fatalf("%s is left to the provider", path)
		}
		return true
	})
	for i := range shadow.Spec.Pod.Volumes {
		if volume := &shadow.Spec.Pod.Volumes[i]; volume.Ephemeral != nil {
			t.Fatalf("volume %s waits for a claim that nobody makes at the provider", volume.Name)
		}
	}
	again, _ := ShadowPod(local, in)
	if diff := cmp.Diff(shadow, again); diff != "" {
		t.Fatalf("the second time it is another: %s", diff)
	}
	if changes := slices.Concat(ShadowPodChanges(shadow, again), ShadowPodTolerations(shadow, again)); len(changes) > 0 {
		t.Fatalf("the second time it changes: %+v", changes)
	}
	second := local.DeepCopy()
	second.Spec = *shadow.Spec.Pod.DeepCopy()
	second.Spec.ReadinessGates = local.Spec.ReadinessGates // which an annotation tells of
	twice, refusal := ShadowPod(second, in)
	if refusal != nil {
		t.Fatalf("translated once more, it is refused: %+v", refusal)
	}
	if diff := cmp.Diff(shadow, twice); diff != "" {
		t.Fatalf("translated once more, it is another: %s", diff)
	}
	return true
}

func TestShadowPods(t *testing.T) {
	crossed := 0
	rapid.Check(t, func(t *rapid.T) {
		if checkShadowOf(t, podOf(rapid.SliceOfN(rapid.Byte(), 0, 4000).Draw(t, "bytes"))) {
			crossed++
		}
	})
	if crossed == 0 {
		t.Error("no pod crossed: nothing was checked")
	}
}

func FuzzTranslatePod(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("any bytes make a pod"))
	f.Fuzz(func(t *testing.T, data []byte) { checkShadowOf(t, podOf(data)) })
}

// checkRemoteClaim checks what holds of every claim at a provider, and tells whether there is one.
func checkRemoteClaim(t failer, data []byte) bool {
	local := &corev1.PersistentVolumeClaim{}
	fill(data, local)
	if len(data)%2 == 0 {
		local.Spec.Selector, local.Spec.DataSource, local.Spec.DataSourceRef, local.Spec.VolumeAttributesClassName = nil, nil, nil, nil
	}
	in := ClaimInput{
		Local: local, Home: "rome", Remote: "milan", Namespace: "demo-rome", Name: "data", Volume: "pvc-1", Reclaim: "Delete",
		Offered: []authv1beta1.StorageType{{StorageClassName: "slow", Default: true}, {StorageClassName: "a"}},
	}
	local.UID = "1234"
	before := local.DeepCopy()
	result := RemoteClaim(in)
	if diff := cmp.Diff(before, local); diff != "" {
		t.Fatalf("the local claim was changed: %s", diff)
	}
	if (result.Apply == nil) == (result.Skip == nil) {
		t.Fatalf("neither or both: %+v", result)
	}
	if result.Apply == nil {
		return false
	}
	wanted := result.Apply.(*corev1.PersistentVolumeClaim)
	if !IsOurs(wanted, "rome", "milan") || wanted.Name != "data" || wanted.Namespace != "demo-rome" {
		t.Fatalf("metadata is %+v", wanted.ObjectMeta)
	}
	leavesToProvider(t, "persistentvolumeclaim", wanted, nil)
	if changes := RemoteClaimChanges(wanted, RemoteClaim(in).Apply.(*corev1.PersistentVolumeClaim)); len(changes) > 0 {
		t.Fatalf("the second time it is another: %+v", changes)
	}
	in.Live = wanted
	once := RemoteClaim(in).Apply
	if once == nil {
		t.Fatalf("what is there is refused")
	}
	if changes := RemoteClaimChanges(wanted, once.(*corev1.PersistentVolumeClaim)); len(changes) > 0 {
		t.Fatalf("what is there changes: %+v", changes)
	}
	return true
}

func TestRemoteClaims(t *testing.T) {
	crossed := 0
	rapid.Check(t, func(t *rapid.T) {
		if checkRemoteClaim(t, rapid.SliceOfN(rapid.Byte(), 0, 1000).Draw(t, "bytes")) {
			crossed++
		}
	})
	if crossed == 0 {
		t.Error("no claim crossed: nothing was checked")
	}
}

func FuzzTranslatePersistentVolumeClaim(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("any bytes make a claim"))
	f.Fuzz(func(t *testing.T, data []byte) { checkRemoteClaim(t, data) })
}
