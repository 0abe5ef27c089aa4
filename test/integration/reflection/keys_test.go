package reflection

import (
	"testing"

	"liqo.io/liqo/pkg/reflection"
)

// Labels and annotations that come and go take one write each, also of what Liqo may not read at the provider, and also after a
// restart; those that the provider added stay.
func TestKeysTakeOneWrite(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"secret", "configmap"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kind)
			w.put(specimens[kind].make("keys"))
			w.converged("keys")
			w.editRemote("keys", func(o reflection.Object) { o.GetLabels()["theirs"] = "stays" })
			start := env.Milan.Recorder.Now(t)
			keys := func(name string) {
				w.editLocal("keys", func(o reflection.Object) {
					o.SetLabels(map[string]string{name: "1"})
					o.SetAnnotations(map[string]string{name: "1"})
				})
				labels := w.converged("keys").GetLabels()
				if labels["theirs"] != "stays" || labels[name] != "1" {
					t.Errorf("labels with %s: %v", name, labels)
				}
			}
			keys("ours/one")
			keys("ours/two")
			w.restart()
			w.put(specimens[kind].make("after"))
			w.converged("after")
			keys("ours/three")
			w.wrote(start, "keys", "patch", "patch", "patch")
			labels := w.remote(t.Context(), "keys").GetLabels()
			if labels["ours/one"]+labels["ours/two"] != "" {
				t.Errorf("labels that went stayed: %v", labels)
			}
			start = env.Milan.Recorder.Now(t)
			w.deleteFrom(env.Rome, w.namespace, "keys")
			w.gone("keys")
			w.put(specimens[kind].make("last"))
			w.converged("last")
			w.wrote(start, "keys", "delete")
		})
	}
}
