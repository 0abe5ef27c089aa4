package mirror

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const (
	secretPatch  = "patch Secret/" + there + "/a"
	secretDelete = "delete Secret/" + there + "/a"
	secretProbe  = "probe Secret/" + there + "/a"
)

// labelled is a Secret with labels and annotations.
func labelled() *corev1.Secret {
	object := secret("a", "1")
	object.Labels = map[string]string{"ours/stays": "1", "ours/goes": "1"}
	object.Annotations = map[string]string{"ours/stays": "1", "ours/goes": "1"}
	return object
}

// keys are the labels and annotations of the copy, but for those that all copies have.
func (w *world) keys(object *corev1.Secret) (labels, annotations map[string]string) {
	found := w.remote.find(at(object))
	labels, annotations = maps.Clone(found.GetLabels()), maps.Clone(found.GetAnnotations())
	for _, key := range []string{offloadingv1beta1.OriginLabel, offloadingv1beta1.DestinationLabel} {
		delete(labels, key)
	}
	for _, key := range []string{corev1beta1.OriginUIDAnnotation, offloadingv1beta1.ReflectedKeysAnnotation} {
		delete(annotations, key)
	}
	return labels, annotations
}

// Labels and annotations of a Secret come and go with one write, although it cannot be read.
func TestKeysOfSecretsTakeOneWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		// there is what happens at the provider before.
		there func(*corev1.Secret)
		here  func(*corev1.Secret)
		// labels and annotations that the copy has in the end, without theirs.
		labels, annotations map[string]string
		writes              []string
	}{
		"an annotation comes": {
			here:        func(s *corev1.Secret) { s.Annotations["ours/new"] = "1" },
			labels:      map[string]string{"ours/stays": "1", "ours/goes": "1"},
			annotations: map[string]string{"ours/stays": "1", "ours/goes": "1", "ours/new": "1"},
		},
		"a label comes, with other content": {
			here:        func(s *corev1.Secret) { s.Labels["ours/new"], s.Data["key"] = "1", []byte("2") },
			labels:      map[string]string{"ours/stays": "1", "ours/goes": "1", "ours/new": "1"},
			annotations: map[string]string{"ours/stays": "1", "ours/goes": "1"},
		},
		"one of each goes": {
			here:        func(s *corev1.Secret) { delete(s.Labels, "ours/goes"); delete(s.Annotations, "ours/goes") },
			labels:      map[string]string{"ours/stays": "1"},
			annotations: map[string]string{"ours/stays": "1"},
		},
		"all go": {
			here:        func(s *corev1.Secret) { s.Labels, s.Annotations = nil, nil },
			labels:      map[string]string{},
			annotations: map[string]string{},
		},
		"one goes, one comes, one changes": {
			here: func(s *corev1.Secret) {
				delete(s.Labels, "ours/goes")
				s.Labels["ours/new"], s.Annotations["ours/stays"] = "1", "2"
			},
			labels:      map[string]string{"ours/stays": "1", "ours/new": "1"},
			annotations: map[string]string{"ours/stays": "2", "ours/goes": "1"},
		},
		"what goes was removed there already": {
			there:       func(s *corev1.Secret) { delete(s.Labels, "ours/goes") },
			here:        func(s *corev1.Secret) { delete(s.Labels, "ours/goes") },
			labels:      map[string]string{"ours/stays": "1"},
			annotations: map[string]string{"ours/stays": "1", "ours/goes": "1"},
		},
		"what comes is there already": {
			there:       func(s *corev1.Secret) { s.Labels["ours/new"] = "theirs" },
			here:        func(s *corev1.Secret) { s.Labels["ours/new"] = "1" },
			labels:      map[string]string{"ours/stays": "1", "ours/goes": "1", "ours/new": "1"},
			annotations: map[string]string{"ours/stays": "1", "ours/goes": "1"},
		},
		"somebody changed the record": {
			there: func(s *corev1.Secret) { s.Annotations[offloadingv1beta1.ReflectedKeysAnnotation] = "none" },
			here:  func(s *corev1.Secret) { s.Labels["ours/new"] = "1" },
			// One that does not apply, one that shows the record, and one that sets it right.
			writes:      []string{secretPatch, secretPatch, secretPatch},
			labels:      map[string]string{"ours/stays": "1", "ours/goes": "1", "ours/new": "1"},
			annotations: map[string]string{"ours/stays": "1", "ours/goes": "1"},
		},
	} {
		for when, before := range map[string]func(w *world){
			"after our own write": func(*world) {},
			"after a restart": func(w *world) {
				w.stop()
				w.start()
				w.wrote("a restart with everything in place")
			},
		} {
			t.Run(name+", "+when, func(t *testing.T) {
				inBubble(t, func(w *world) {
					w.local.put(labelled())
					w.start()
					w.publish()
					w.remote.took(false)
					before(w)
					edit(w.remote, at(labelled()), func(s *corev1.Secret) {
						s.Labels["theirs"], s.Annotations["theirs"] = "1", "1"
						if tc.there != nil {
							tc.there(s)
						}
					})
					edit(w.local, labelled(), tc.here)
					want := tc.writes
					if want == nil {
						want = []string{secretPatch}
					}
					w.wrote("the change", want...)
					w.publish()
					w.pass(5 * time.Minute)
					w.wrote("at rest")
					tc.labels["theirs"], tc.annotations["theirs"] = "1", "1"
					labels, annotations := w.keys(labelled())
					w.equal("labels", tc.labels, labels)
					w.equal("annotations", tc.annotations, annotations)
					w.equal("problems", []string(nil), reasons(w.engine))
					w.stop()
					w.start()
					w.wrote("a restart")
				})
			})
		}
	}
}

// Keys that come one after the other take one write each, whether the ledger followed in between or not.
func TestKeysOfSecretsOneAfterTheOther(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(labelled())
		w.start()
		w.publish()
		w.remote.took(false)
		for _, key := range []string{"ours/b", "ours/c", "ours/d"} {
			edit(w.local, labelled(), func(s *corev1.Secret) {
				s.Labels = map[string]string{key: "1"}
				s.Annotations = map[string]string{key: "1"}
			})
			w.wrote(key, secretPatch)
			labels, annotations := w.keys(labelled())
			w.equal("labels", map[string]string{key: "1"}, labels)
			w.equal("annotations", map[string]string{key: "1"}, annotations)
		}
		w.publish()
		w.pass(5 * time.Minute)
		w.wrote("at rest")
	})
}

// What was written is removed without a look at it, if it is still exactly that.
func TestRemovalsOfSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(w *world)
		writes []string
		stays  bool
	}{
		"it is as it was written": {func(*world) {}, []string{secretDelete}, false},
		"it was written twice": {func(w *world) {
			set(w, labelled(), "2")
			w.publish()
			w.remote.took(false)
		}, []string{secretDelete}, false},
		"somebody there labelled it": {func(w *world) {
			edit(w.remote, at(labelled()), func(s *corev1.Secret) { s.Labels["theirs"] = "1" })
		}, []string{secretDelete, secretProbe, secretDelete}, false},
		"somebody there took it over": {func(w *world) {
			edit(w.remote, at(labelled()), func(s *corev1.Secret) { s.Labels = nil })
		}, []string{secretDelete, secretProbe}, true},
		"somebody there made another": {func(w *world) {
			w.remote.drop(at(labelled()))
			w.remote.put(at(labelled()))
		}, []string{secretDelete, secretProbe}, true},
		"it is gone": {func(w *world) { w.remote.drop(at(labelled())) }, []string{secretDelete}, false},
		"after a restart": {func(w *world) {
			w.stop()
			w.start()
		}, []string{secretProbe, secretDelete}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(labelled())
				w.start()
				w.publish()
				w.remote.took(false)
				tc.before(w)
				w.local.drop(labelled())
				w.wrote("removed at home", tc.writes...)
				w.equal("it is still there", tc.stays, w.remote.find(at(labelled())) != nil)
				w.publish()
				w.pass(5 * time.Minute)
				w.wrote("at rest")
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}
