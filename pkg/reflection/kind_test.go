package reflection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// input is an object on its way from rome to milan.
func input(o Object, adjust ...func(*Input)) Input {
	o.SetNamespace("demo")
	if o.GetName() == "" {
		o.SetName("a")
	}
	o.SetUID("1234")
	in := Input{Local: o, Home: "rome", Remote: "milan", RemoteNamespace: "demo-rome"}
	for _, f := range adjust {
		f(&in)
	}
	return in
}

// remote is the metadata that a reflected object must have, without its record of keys.
func remote(name string, labels, annotations map[string]string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Namespace: "demo-rome", Name: name,
		Labels:      map[string]string{offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.DestinationLabel: "milan"},
		Annotations: map[string]string{corev1beta1.OriginUIDAnnotation: "1234"},
	}
	maps.Copy(meta.Labels, labels)
	maps.Copy(meta.Annotations, annotations)
	return meta
}

var withoutRecord = cmpopts.IgnoreMapEntries(func(key, _ string) bool { return key == offloadingv1beta1.ReflectedKeysAnnotation })

// There is one for each revision of a release: an Event about each would drown the others.
func TestHelmReleasesStayWithoutEvent(t *testing.T) {
	kind, _ := Lookup("secret")
	got := kind.Translate(input(&corev1.Secret{Type: "helm.sh/release.v1"}))
	if got.Skip == nil || !got.Skip.Routine {
		t.Errorf("skip %+v", got.Skip)
	}
}

func TestTranslate(t *testing.T) {
	meta := func(labels, annotations map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Labels: labels, Annotations: annotations}
	}
	skipped := meta(nil, map[string]string{offloadingv1beta1.SkipReflectionAnnotation: "", "x": "y"})
	allowed := meta(nil, map[string]string{offloadingv1beta1.AllowReflectionAnnotation: ""})
	allowList := func(in *Input) { in.Policy = offloadingv1beta1.AllowList }
	referenced := func(in *Input) { in.Policy = offloadingv1beta1.Referenced }
	used := func(in *Input) { in.Referenced = true }
	disabled := offloadingv1beta1.ReasonReflectionDisabled
	// accounts is an allowed Secret with the token of a ServiceAccount; robots is what becomes of one.
	accounts := func(account, more string) metav1.ObjectMeta {
		m := meta(nil, map[string]string{offloadingv1beta1.AllowReflectionAnnotation: "", corev1.ServiceAccountNameKey: account})
		if more != "" {
			m.Annotations[more] = ""
		}
		return m
	}
	robots := &corev1.Secret{Type: corev1.SecretTypeOpaque,
		ObjectMeta: remote("a", map[string]string{corev1.ServiceAccountNameKey: "robot"}, map[string]string{corev1.ServiceAccountNameKey: "robot"})}
	long := strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		kind   string
		in     Input
		want   Object
		reason string
		keep   bool
	}{
		"a ConfigMap crosses with all its content": {
			kind: "configmap",
			in:   input(&corev1.ConfigMap{Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0, 255}}, Immutable: ptr.To(true)}),
			want: &corev1.ConfigMap{
				ObjectMeta: remote("a", nil, nil),
				Data:       map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0, 255}}, Immutable: ptr.To(true),
			},
		},
		"labels and annotations that mean something at home stay there": {
			kind: "configmap",
			in: input(&corev1.ConfigMap{ObjectMeta: meta(
				map[string]string{"app": "x", "secret": "y", offloadingv1beta1.OriginLabel: "forged", corev1beta1.ReplicationLabel: "true", offloadingv1beta1.NodeNameLabel: "n"},
				map[string]string{
					"note": "x", "private": "y", corev1.LastAppliedConfigAnnotation: "{}", corev1beta1.OriginUIDAnnotation: "forged",
					"control-plane.alpha.kubernetes.io/leader": "me", offloadingv1beta1.ReflectedKeysAnnotation: "forged",
				},
			)}, func(in *Input) {
				in.NotReflected = NotReflected{Labels: []string{"secret", offloadingv1beta1.OriginLabel}, Annotations: []string{"private"}}
			}),
			want: &corev1.ConfigMap{ObjectMeta: remote("a", map[string]string{"app": "x"}, map[string]string{"note": "x"})},
		},
		"the root CA crosses under another name, whatever the policy": {
			kind: "configmap",
			in:   input(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: RootCAConfigMap}}, allowList),
			want: &corev1.ConfigMap{ObjectMeta: remote("kube-root-ca.crt.rome", nil, nil)},
		},
		"a ConfigMap that has the root CA's other name": {kind: "configmap", in: input(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt.rome"}}), reason: offloadingv1beta1.ReasonNotReflectable, keep: true},
		"a ConfigMap that has the ledger's name":        {kind: "configmap", in: input(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: offloadingv1beta1.SecretLedger}}), reason: offloadingv1beta1.ReasonNotReflectable, keep: true},
		"what came from the provider does not go back":  {kind: "configmap", in: input(&corev1.ConfigMap{ObjectMeta: meta(map[string]string{offloadingv1beta1.OriginLabel: "milan"}, nil)}), reason: offloadingv1beta1.ReasonNotReflectable},
		"a Secret that came from the provider":          {kind: "secret", in: input(&corev1.Secret{ObjectMeta: meta(map[string]string{offloadingv1beta1.OriginLabel: "milan"}, nil)}), reason: offloadingv1beta1.ReasonNotReflectable},
		"a ConfigMap annotated skip":                    {kind: "configmap", in: input(&corev1.ConfigMap{ObjectMeta: skipped}), reason: disabled},
		"a Secret annotated skip":                       {kind: "secret", in: input(&corev1.Secret{ObjectMeta: skipped}), reason: disabled},
		"a namespace annotated skip": {kind: "secret", in: input(&corev1.Secret{}, func(in *Input) {
			in.NamespaceAnnotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
		}), reason: disabled},
		"policy AllowList without annotation":          {kind: "secret", in: input(&corev1.Secret{}, allowList), reason: disabled},
		"policy AllowList with annotation":             {kind: "secret", in: input(&corev1.Secret{ObjectMeta: allowed}, allowList), want: &corev1.Secret{ObjectMeta: remote("a", nil, nil), Type: corev1.SecretTypeOpaque}},
		"policy Referenced, used by nobody":            {kind: "secret", in: input(&corev1.Secret{}, referenced), reason: disabled},
		"policy Referenced, used by a pod":             {kind: "secret", in: input(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, referenced, used), want: &corev1.Secret{ObjectMeta: remote("a", nil, nil), Type: corev1.SecretTypeOpaque}},
		"policy Referenced with annotation":            {kind: "secret", in: input(&corev1.Secret{ObjectMeta: allowed}, referenced), want: &corev1.Secret{ObjectMeta: remote("a", nil, nil), Type: corev1.SecretTypeOpaque}},
		"policy Referenced, used but skipped":          {kind: "secret", in: input(&corev1.Secret{ObjectMeta: skipped}, referenced, used), reason: disabled},
		"a token of a ServiceAccount":                  {kind: "secret", in: input(&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken}), reason: offloadingv1beta1.ReasonNotReflectable},
		"a token of a ServiceAccount, of an AllowList": {kind: "secret", in: input(&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken}, allowList), reason: offloadingv1beta1.ReasonNotReflectable},
		"a token of a ServiceAccount that a pod uses":  {kind: "secret", in: input(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Type: corev1.SecretTypeServiceAccountToken}, referenced, used), reason: offloadingv1beta1.ReasonNotReflectable},
		"a token of a ServiceAccount in a namespace that is annotated": {kind: "secret", in: input(&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken}, func(in *Input) {
			in.NamespaceAnnotations = map[string]string{offloadingv1beta1.AllowReflectionAnnotation: ""}
		}), reason: offloadingv1beta1.ReasonNotReflectable},
		"a token of a ServiceAccount with annotation": {kind: "secret", in: input(&corev1.Secret{ObjectMeta: accounts("robot", ""), Type: corev1.SecretTypeServiceAccountToken}), want: robots},
		"an allowed token, of an AllowList":           {kind: "secret", in: input(&corev1.Secret{ObjectMeta: accounts("robot", ""), Type: corev1.SecretTypeServiceAccountToken}, allowList), want: robots},
		"an allowed token that nobody uses":           {kind: "secret", in: input(&corev1.Secret{ObjectMeta: accounts("robot", ""), Type: corev1.SecretTypeServiceAccountToken}, referenced), want: robots},
		"a token that is allowed and skipped":         {kind: "secret", in: input(&corev1.Secret{ObjectMeta: accounts("robot", offloadingv1beta1.SkipReflectionAnnotation), Type: corev1.SecretTypeServiceAccountToken}), reason: disabled},
		"an allowed token that came from the provider": {kind: "secret", in: input(&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken,
			ObjectMeta: meta(map[string]string{offloadingv1beta1.OriginLabel: "milan"}, map[string]string{offloadingv1beta1.AllowReflectionAnnotation: ""})}), reason: offloadingv1beta1.ReasonNotReflectable},
		"an allowed token of a name too long for a label": {kind: "secret", in: input(&corev1.Secret{ObjectMeta: accounts(long, ""), Type: corev1.SecretTypeServiceAccountToken}),
			want: &corev1.Secret{ObjectMeta: remote("a", nil, map[string]string{corev1.ServiceAccountNameKey: long}), Type: corev1.SecretTypeOpaque}},
		"a bootstrap token, even if it is allowed": {kind: "secret", in: input(&corev1.Secret{ObjectMeta: allowed, Type: secretTypeBootstrapToken}, allowList), reason: offloadingv1beta1.ReasonNotReflectable},
		"a Helm release":                              {kind: "secret", in: input(&corev1.Secret{Type: "helm.sh/release.v1"}), reason: disabled},
		"a Helm release that a pod uses":              {kind: "secret", in: input(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Type: "helm.sh/release.v1"}, referenced, used), reason: disabled},
		"a Helm release with annotation":              {kind: "secret", in: input(&corev1.Secret{ObjectMeta: allowed, Type: "helm.sh/release.v1"}), want: &corev1.Secret{ObjectMeta: remote("a", nil, nil), Type: "helm.sh/release.v1"}},
		"data of more than a mebibyte in a ConfigMap": {kind: "configmap", in: input(&corev1.ConfigMap{BinaryData: map[string][]byte{"a": make([]byte, 1<<20+1)}}), reason: offloadingv1beta1.ReasonTooLarge, keep: true},
		"data of more than a mebibyte in a Secret":    {kind: "secret", in: input(&corev1.Secret{Data: map[string][]byte{"a": make([]byte, 1<<20+1)}}), reason: offloadingv1beta1.ReasonTooLarge, keep: true},
		"a Secret with data and immutability": {
			kind: "secret", in: input(&corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.key": {1}}, Immutable: ptr.To(true)}),
			want: &corev1.Secret{ObjectMeta: remote("a", nil, nil), Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.key": {1}}, Immutable: ptr.To(true)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := Lookup(tc.kind)
			before := tc.in.Local.DeepCopyObject()
			got := kind.Translate(tc.in)
			if diff := cmp.Diff(before, tc.in.Local); diff != "" {
				t.Errorf("the local object was changed: %s", diff)
			}
			if tc.reason != "" {
				if got.Apply != nil || got.Skip == nil || got.Skip.Reason != tc.reason || got.Skip.Keep != tc.keep || got.Skip.Message == "" {
					t.Errorf("got %+v, skip %+v", got.Apply, got.Skip)
				}
				return
			}
			if got.Skip != nil {
				t.Fatalf("skipped: %+v", got.Skip)
			}
			if diff := cmp.Diff(tc.want, got.Apply, withoutRecord); diff != "" {
				t.Error(diff)
			}
			if !IsOurs(got.Apply, "rome", "milan") || IsOurs(got.Apply, "milan", "rome") || !kind.Contains(got.Apply, got.Apply) {
				t.Error("the remote object is not marked as ours, or does not contain itself")
			}
		})
	}
}

// D2: what we add to the annotations does not push a legal object over the limit unseen.
func TestAnnotationsAtTheLimit(t *testing.T) {
	translate := func(size int) Result {
		return translateConfigMap(input(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": strings.Repeat("x", size)}}}))
	}
	const uid = len(corev1beta1.OriginUIDAnnotation) + len("1234")
	for size := maxAnnotations - 2<<10; size <= maxAnnotations+1; size++ {
		got := translate(size)
		if fits := size+1+uid <= maxAnnotations; fits != (got.Apply != nil) {
			t.Fatalf("with %d bytes: %+v", size, got.Skip)
		}
		if got.Apply == nil {
			continue
		}
		total := 0
		for key, value := range got.Apply.GetAnnotations() {
			total += len(key) + len(value)
		}
		if total > maxAnnotations || total-size-1 > 1<<10 {
			t.Fatalf("with %d bytes the remote object has %d", size, total)
		}
	}
}

func TestRecordOfKeysIsBounded(t *testing.T) {
	for count, want := range map[int]bool{10: true, 150: true, 500: false} {
		labels := map[string]string{}
		for i := range count {
			labels[fmt.Sprint("label-", i)] = ""
		}
		annotations := translateConfigMap(input(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: labels}})).Apply.GetAnnotations()
		record, there := annotations[offloadingv1beta1.ReflectedKeysAnnotation]
		if own := len(record) + len(offloadingv1beta1.ReflectedKeysAnnotation) + len(corev1beta1.OriginUIDAnnotation) + 36; there != want || own > 1<<10 {
			t.Errorf("%d labels: record %v, %d bytes of our own", count, there, own)
		}
	}
}

func TestDifferences(t *testing.T) {
	configMap := func(f ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
		c := translateConfigMap(input(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}, Data: map[string]string{"a": "1"},
		})).Apply.(*corev1.ConfigMap).DeepCopy()
		for _, f := range f {
			f(c)
		}
		return c
	}
	secret := func(f ...func(*corev1.Secret)) *corev1.Secret {
		s := translateSecret(input(&corev1.Secret{Data: map[string][]byte{"a": []byte("1")}})).Apply.(*corev1.Secret).DeepCopy()
		for _, f := range f {
			f(s)
		}
		return s
	}
	for name, tc := range map[string]struct {
		kind         string
		live, wanted Object
		want         []Change
		immutable    string
	}{
		"nothing":                                   {kind: "configmap", live: configMap(), wanted: configMap()},
		"what others added stays":                   {kind: "configmap", live: configMap(func(c *corev1.ConfigMap) { c.Labels["z"] = ""; c.Annotations["z"] = "" }), wanted: configMap()},
		"no data and empty data are the same":       {kind: "configmap", live: configMap(func(c *corev1.ConfigMap) { c.Data = nil }), wanted: configMap(func(c *corev1.ConfigMap) { c.Data = map[string]string{} })},
		"unset and false immutability are the same": {kind: "secret", live: secret(), wanted: secret(func(s *corev1.Secret) { s.Immutable = ptr.To(false) })},
		"no type and Opaque are the same":           {kind: "secret", live: secret(), wanted: secret(func(s *corev1.Secret) { s.Type = "" })},
		"data":                                      {kind: "configmap", live: configMap(), wanted: configMap(func(c *corev1.ConfigMap) { c.Data = nil }), want: []Change{{Path: []string{"data"}}}},
		"binary data":                               {kind: "configmap", live: configMap(), wanted: configMap(func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"b": {1}} }), want: []Change{{Path: []string{"binaryData"}, Value: map[string][]byte{"b": {1}}}}},
		"a Secret's data":                           {kind: "secret", live: secret(), wanted: secret(func(s *corev1.Secret) { s.Data["a"] = []byte("2") }), want: []Change{{Path: []string{"data"}, Value: map[string][]byte{"a": []byte("2")}}}},
		"a label that was changed":                  {kind: "configmap", live: configMap(func(c *corev1.ConfigMap) { c.Labels["app"] = "y" }), wanted: configMap(), want: []Change{{Path: []string{"metadata", "labels", "app"}, Value: "x"}}},
		"a label that was removed at the provider":  {kind: "configmap", live: configMap(func(c *corev1.ConfigMap) { delete(c.Labels, "app") }), wanted: configMap(), want: []Change{{Path: []string{"metadata", "labels", "app"}, Value: "x"}}},
		"all labels removed at the provider": {
			kind: "configmap", live: configMap(func(c *corev1.ConfigMap) { c.Labels = nil }), wanted: configMap(),
			want: []Change{{Path: []string{"metadata", "labels"}, Value: configMap().Labels}},
		},
		"becoming immutable":         {kind: "configmap", live: configMap(), wanted: configMap(func(c *corev1.ConfigMap) { c.Immutable = ptr.To(true) }), want: []Change{{Path: []string{"immutable"}, Value: true}}},
		"an immutable ConfigMap":     {kind: "configmap", live: configMap(func(c *corev1.ConfigMap) { c.Immutable = ptr.To(true) }), wanted: configMap(), want: []Change{{Path: []string{"immutable"}, Value: false}}, immutable: "immutable"},
		"labels of an immutable one": {kind: "configmap", live: configMap(func(c *corev1.ConfigMap) { c.Immutable = ptr.To(true); c.Labels["app"] = "" }), wanted: configMap(func(c *corev1.ConfigMap) { c.Immutable = ptr.To(true) }), want: []Change{{Path: []string{"metadata", "labels", "app"}, Value: "x"}}},
		"an immutable Secret":        {kind: "secret", live: secret(func(s *corev1.Secret) { s.Immutable = ptr.To(true) }), wanted: secret(), want: []Change{{Path: []string{"immutable"}, Value: false}}, immutable: "immutable"},
		"a Secret's type":            {kind: "secret", live: secret(), wanted: secret(func(s *corev1.Secret) { s.Type = corev1.SecretTypeTLS }), immutable: "type"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := Lookup(tc.kind)
			if diff := cmp.Diff(tc.want, kind.Differences(tc.live, tc.wanted), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if got := kind.Immutable(tc.live, tc.wanted); got != tc.immutable {
				t.Errorf("immutable = %q, want %q", got, tc.immutable)
			}
		})
	}
}

func TestLabelsThatVanishAtHomeGo(t *testing.T) {
	translate := func(labels map[string]string) *corev1.ConfigMap {
		return translateConfigMap(input(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: labels}})).Apply.(*corev1.ConfigMap)
	}
	live := translate(map[string]string{"goes": "1", "stays": "1"})
	live.Labels["theirs"] = "1"
	wanted := translate(map[string]string{"stays": "1"})
	want := []Change{
		{Path: []string{"metadata", "labels", "goes"}},
		{Path: []string{"metadata", "annotations", offloadingv1beta1.ReflectedKeysAnnotation}, Value: wanted.Annotations[offloadingv1beta1.ReflectedKeysAnnotation]},
	}
	if diff := cmp.Diff(want, configMapKind().Differences(live, wanted)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeReadIsWrittenWhole(t *testing.T) {
	few := []string{"metadata.labels.offloading.liqo.io/destination", "metadata.labels.offloading.liqo.io/origin", "metadata.annotations.liqo.io/origin-uid"}
	many := map[string]string{}
	for i := range maxKeys {
		many[fmt.Sprint("key-", i)] = ""
	}
	for name, tc := range map[string]struct {
		kind   string
		labels map[string]string
		want   []string
	}{
		"a ConfigMap":             {"configmap", nil, append(slices.Clip(few), "data", "binaryData", "immutable")},
		"a Secret":                {"secret", nil, append(slices.Clip(few), "data", "immutable", "type")},
		"a Secret without record": {"secret", many, []string{"metadata.labels", "metadata.annotations", "data", "immutable", "type"}},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := Lookup(tc.kind)
			o := kind.NewObject()
			o.SetLabels(tc.labels)
			var paths []string
			for _, c := range kind.Differences(nil, kind.Translate(input(o)).Apply) {
				paths = append(paths, strings.Join(c.Path, "."))
			}
			if diff := cmp.Diff(tc.want, paths); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRootCANames(t *testing.T) {
	for origin, want := range map[string]string{
		"rome": "kube-root-ca.crt.rome", "milano-2": "kube-root-ca.crt.milan", "abcd-efg": "kube-root-ca.crt.abcd-a", "Z": "kube-root-ca.crt.Z", "": "kube-root-ca.crt.a",
	} {
		if got := RenamedConfigMap(origin, RootCAConfigMap); got != want {
			t.Errorf("origin %q: %q, want %q", origin, got, want)
		}
		kind := configMapKind()
		for _, name := range []string{RootCAConfigMap, "other"} {
			if got := kind.Local(origin, kind.Remote(origin, name)); got != name {
				t.Errorf("%q comes back as %q", name, got)
			}
		}
	}
}

func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, kind := range Kinds() {
		off := kind.Name == "networkpolicy"
		if names[kind.Name] || (kind.DefaultWorkers <= 0) != off || kind.DefaultPolicy == "" || kind.GVR.Empty() || kind.GVK.Empty() {
			t.Errorf("kind %+v is incomplete", kind)
		}
		names[kind.Name] = true
		if kind.WriteOnly() != (kind.Hash != nil) {
			t.Errorf("kind %s has either a ledger or a hash, but not both", kind.Name)
		}
		if kind.NewObject() == nil || kind.NewList() == nil {
			t.Errorf("kind %s makes nothing", kind.Name)
		}
	}
	if _, ok := Lookup("nothing"); ok {
		t.Error("found a kind that is not there")
	}
	var plain Kind
	if plain.Remote("h", "a") != "a" || plain.Local("h", "a") != "a" || plain.Immutable(nil, nil) != "" {
		t.Error("a kind without names of its own changes them")
	}
}

func TestSecretHash(t *testing.T) {
	base := func() *corev1.Secret {
		return translateSecret(input(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}, Data: map[string][]byte{"a": []byte("1"), "b": []byte("2")},
		})).Apply.(*corev1.Secret).DeepCopy()
	}
	want := SecretHash(base())
	for name, tc := range map[string]struct {
		change func(*corev1.Secret)
		same   bool
	}{
		"server side metadata":     {func(s *corev1.Secret) { s.UID, s.ResourceVersion, s.Generation = "x", "1", 2 }, true},
		"others' labels":           {func(s *corev1.Secret) { s.Labels["theirs"] = "1"; s.Annotations["theirs"] = "1" }, true},
		"defaulted type":           {func(s *corev1.Secret) { s.Type = "" }, true},
		"explicit mutability":      {func(s *corev1.Secret) { s.Immutable = ptr.To(false) }, true},
		"type":                     {func(s *corev1.Secret) { s.Type = corev1.SecretTypeTLS }, false},
		"immutability":             {func(s *corev1.Secret) { s.Immutable = ptr.To(true) }, false},
		"a value":                  {func(s *corev1.Secret) { s.Data["a"] = []byte("2") }, false},
		"a key more":               {func(s *corev1.Secret) { s.Data["c"] = nil }, false},
		"values that change sides": {func(s *corev1.Secret) { s.Data = map[string][]byte{"a": []byte("1\x00b2")} }, false},
		"a label of ours":          {func(s *corev1.Secret) { s.Labels["app"] = "y" }, false},
		"a label of ours less":     {func(s *corev1.Secret) { delete(s.Labels, "app") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := base()
			tc.change(s)
			if got := SecretHash(s); (got == want) != tc.same {
				t.Errorf("same hash: %v", got == want)
			}
		})
	}
}

// TestPatchedMeansContained checks for random pairs that the changes listed, once made, leave nothing to change.
func TestPatchedMeansContained(t *testing.T) {
	text := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c/d", "e~f"}), rapid.SampledFrom([]string{"", "1", "2"}), 0, 4)
	bytes := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), rapid.SliceOfN(rapid.Byte(), 0, 3), 0, 2)
	rapid.Check(t, func(t *rapid.T) {
		object := func(label string) *corev1.ConfigMap {
			return translateConfigMap(input(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Labels: text.Draw(t, label+" labels"), Annotations: text.Draw(t, label+" annotations")},
				Data:       text.Draw(t, label+" data"), BinaryData: bytes.Draw(t, label+" binary"),
			})).Apply.(*corev1.ConfigMap).DeepCopy()
		}
		live, wanted := object("live"), object("wanted")
		for _, c := range configMapKind().Differences(live, wanted) {
			applyTo(live, c)
		}
		if rest := configMapKind().Differences(live, wanted); len(rest) > 0 {
			t.Fatalf("still to change: %v", rest)
		}
		if diff := cmp.Diff(wanted, live, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func applyTo(c *corev1.ConfigMap, change Change) {
	switch path := strings.Join(change.Path[:min(2, len(change.Path))], "."); path {
	case "data":
		c.Data, _ = change.Value.(map[string]string)
	case "binaryData":
		c.BinaryData, _ = change.Value.(map[string][]byte)
	default:
		target := map[string]map[string]string{"metadata.labels": c.Labels, "metadata.annotations": c.Annotations}[path]
		if change.Value == nil {
			delete(target, change.Path[2])
		} else {
			target[change.Path[2]] = change.Value.(string)
		}
	}
}

func FuzzRecordOfAPeer(f *testing.F) {
	f.Add("abcdefgh", "label")
	f.Fuzz(func(_ *testing.T, record, label string) {
		live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{label: "x"}, Annotations: map[string]string{offloadingv1beta1.ReflectedKeysAnnotation: record},
		}}
		SecretHash(live)
		configMapKind().Differences(&corev1.ConfigMap{ObjectMeta: live.ObjectMeta}, translateConfigMap(input(&corev1.ConfigMap{})).Apply)
	})
}
