package reflection

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

const (
	maxData        = 1 << 20
	maxAnnotations = 256 << 10
)

// annotated fills an object's annotations up to a size, with a key that providers let Services have.
func annotated(size int) func(reflection.Object) {
	const key = "fill"
	return func(o reflection.Object) {
		o.SetAnnotations(map[string]string{key: strings.Repeat("a", size-len(key))})
	}
}

func annotationsAtTheLimit(w *world, s specimen) {
	over := s.make("d2-over")
	over.SetNamespace(w.namespace)
	annotated(maxAnnotations + 1)(over)
	if err := env.Rome.Client.Create(w.Context(), over); err == nil {
		w.Error("the API server took more annotations than the limit")
	}
	object := s.make("d2")
	annotated(maxAnnotations - 2<<10)(object)
	w.put(object)
	before := w.converged("d2")
	w.editLocal("d2", annotated(maxAnnotations))
	w.told(offloadingv1beta1.ReasonTooLarge, "its annotations are", fmt.Sprint(maxAnnotations))
	if after := w.remote(w.Context(), "d2"); after == nil || after.GetResourceVersion() != before.GetResourceVersion() {
		w.Error("the remote copy did not stay as it was")
	}
	w.editLocal("d2", annotated(maxAnnotations-3<<10))
	w.converged("d2")
}

// D1: what is as large as an object may be crosses; of what is larger on the wire than an API server takes, the user is told.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	t.Run("1 MiB of data", func(t *testing.T) {
		t.Parallel()
		for kind, object := range map[string]reflection.Object{
			"configmap": &corev1.ConfigMap{ObjectMeta: meta("full"), Data: map[string]string{"a": strings.Repeat("a", maxData)}},
			"secret":    &corev1.Secret{ObjectMeta: meta("full"), Data: map[string][]byte{"a": bytes.Repeat([]byte("a"), maxData)}},
		} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, kind)
				w.put(object)
				w.converged("full")
			})
		}
	})
	t.Run("a change of more than 3 MiB", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "configmap")
		// Each of these bytes takes six in JSON, so that what is sent is 3.6 MiB.
		fill := strings.Repeat("\x01", 600<<10)
		w.put(&corev1.ConfigMap{ObjectMeta: meta("d1"), Data: map[string]string{"key": fill}})
		before := w.converged("d1")
		w.editLocal("d1", of(func(c *corev1.ConfigMap) { c.Data["key"] = fill + "2" }))
		w.told(offloadingv1beta1.ReasonTooLarge, "limit is 3145728")
		if after := w.remote(t.Context(), "d1"); after == nil || after.GetResourceVersion() != before.GetResourceVersion() {
			t.Error("the remote copy did not stay as it was")
		}
		w.editLocal("d1", of(func(c *corev1.ConfigMap) { c.Data["key"] = "small" }))
		w.converged("d1")
	})
}

// D12: content arrives byte by byte.
func TestContent(t *testing.T) {
	t.Parallel()
	binary := []byte{0xff, 0xfe, 0xc3, 0x28}
	for i := range 256 {
		binary = append(binary, byte(i))
	}
	many, manyBytes := map[string]string{}, map[string][]byte{}
	for i := range 10_000 {
		key := fmt.Sprintf("key-%d", i)
		many[key], manyBytes[key] = key, binary[:i%64]
	}
	type content struct {
		text   map[string]string
		binary map[string][]byte
	}
	contents := map[string]content{
		"nothing":                  {},
		"empty keys":               {text: map[string]string{"text": ""}, binary: map[string][]byte{"binary": {}}},
		"binary data":              {text: map[string]string{"text": "\x00ü\u2028<&>\n"}, binary: map[string][]byte{"binary": binary}},
		"many keys":                {text: many, binary: map[string][]byte{"binary": binary}},
		"many keys of binary data": {binary: manyBytes},
	}
	kinds := map[string]struct {
		make func(content) reflection.Object
		read func(reflection.Object) content
	}{
		"configmap": {
			func(c content) reflection.Object {
				return &corev1.ConfigMap{ObjectMeta: meta("d12"), Data: maps.Clone(c.text), BinaryData: maps.Clone(c.binary)}
			},
			func(o reflection.Object) content {
				return content{text: o.(*corev1.ConfigMap).Data, binary: o.(*corev1.ConfigMap).BinaryData}
			},
		},
		"secret": {
			func(c content) reflection.Object {
				return &corev1.Secret{ObjectMeta: meta("d12"), Data: maps.Clone(c.binary), StringData: maps.Clone(c.text)}
			},
			func(o reflection.Object) content { return content{binary: o.(*corev1.Secret).Data} },
		},
	}
	for kind, k := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, c := range contents {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, kind)
					same := func() {
						t.Helper()
						local := w.kind.NewObject()
						fixture.Must(t, "reading it at home", env.Rome.Client.Get(t.Context(), key(w.namespace, "d12"), local))
						if diff := cmp.Diff(k.read(local), k.read(w.converged("d12")), cmp.AllowUnexported(content{}), cmpopts.EquateEmpty()); diff != "" {
							t.Errorf("at home (-), at the provider (+):\n%.2000s", diff)
						}
					}
					w.put(k.make(c))
					same()
					w.editLocal("d12", specimens[kind].fill)
					same()
				})
			}
		})
	}
}
