package mirror

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// imprint is what is known of a remote object that can only be written: what the answer to the last write showed, or the ledger
// confirmed. It is never relied on alone: each request that uses it tests it, and does nothing if the object is another by now.
type imprint struct {
	// uid and version are those of the last answer; empty if only the ledger told of the object.
	uid     types.UID
	version string
	// originUID is that of the local object.
	originUID string
	// record is the record of the keys that are ours; empty if it is not known.
	record string
	// labels and annotations are the keys that the record stands for, without those that all our objects have.
	labels, annotations []string
}

// imprintOf is the imprint of a wanted object, without an answer.
func imprintOf(wanted reflection.Object) imprint {
	i := imprint{originUID: reflection.OriginUID(wanted), record: wanted.GetAnnotations()[offloadingv1beta1.ReflectedKeysAnnotation]}
	if i.record == "" {
		return i
	}
	for key := range wanted.GetLabels() {
		if key != offloadingv1beta1.OriginLabel && key != offloadingv1beta1.DestinationLabel {
			i.labels = append(i.labels, key)
		}
	}
	for key := range wanted.GetAnnotations() {
		if key != corev1beta1.OriginUIDAnnotation && key != offloadingv1beta1.ReflectedKeysAnnotation {
			i.annotations = append(i.annotations, key)
		}
	}
	slices.Sort(i.labels)
	slices.Sort(i.annotations)
	return i
}

// impress takes note of the answer to a write.
func (t *task) impress(answer reflection.Object) {
	i := imprintOf(t.wanted)
	if !reflection.IsOurs(answer, t.options().Home, t.options().Remote) || reflection.OriginUID(answer) != i.originUID {
		t.state.impress(imprint{})
		return
	}
	i.uid, i.version = answer.GetUID(), answer.GetResourceVersion()
	if answer.GetAnnotations()[offloadingv1beta1.ReflectedKeysAnnotation] != i.record {
		i.record, i.labels, i.annotations = "", nil, nil
	}
	t.state.impress(i)
}

// confirmImprint takes note that the ledger shows what is wanted, of which the hash tells the keys, too.
func (t *task) confirmImprint() {
	before := t.state.imprinted()
	if before.record == t.wanted.GetAnnotations()[offloadingv1beta1.ReflectedKeysAnnotation] && before.originUID == reflection.OriginUID(t.wanted) {
		return
	}
	t.state.impress(imprintOf(t.wanted))
}

// renewal are the steps that take away the labels and annotations that went at home, and renew the record of those that are ours.
// There are none if no key came or went, or if it is not known which keys are ours: then the answer to the write will tell.
func (t *task) renewal() []any {
	before, now := t.state.imprinted(), imprintOf(t.wanted)
	if before.record == "" || now.record == "" || before.originUID != now.originUID ||
		before.record == now.record && slices.Equal(before.labels, now.labels) && slices.Equal(before.annotations, now.annotations) {
		return nil
	}
	record := pointer("metadata", "annotations", offloadingv1beta1.ReflectedKeysAnnotation)
	list := []any{operation{"test", record, before.record}, operation{"add", record, now.record}}
	list = append(list, withoutKeys("labels", before.labels, now.labels)...)
	return append(list, withoutKeys("annotations", before.annotations, now.annotations)...)
}

// withoutKeys are steps that remove keys. One that somebody removed already cannot be removed, so it is set first.
func withoutKeys(field string, before, now []string) (list []any) {
	for _, key := range before {
		if _, stays := slices.BinarySearch(now, key); !stays {
			path := pointer("metadata", field, key)
			list = append(list, operation{"add", path, ""}, removal{"remove", path})
		}
	}
	return list
}

// deleteSeen removes the object that the last write's answer showed, if it is still exactly that; done tells whether it is gone.
func (t *task) deleteSeen(ctx context.Context, c client.WithWatch) (done bool, err error) {
	seen := t.state.imprinted()
	t.state.impress(imprint{})
	if seen.uid == "" {
		return false, nil
	}
	live := t.runner.twin.NewObject()
	live.SetUID(seen.uid)
	live.SetResourceVersion(seen.version)
	if err := t.delete(ctx, c, live); !apierrors.IsConflict(err) {
		return err == nil, err
	}
	return false, nil
}

func (s *state) impress(i imprint) {
	if s.imprint = &i; i.originUID == "" {
		s.imprint = nil
	}
}

func (s *state) imprinted() imprint {
	if s.imprint == nil {
		return imprint{}
	}
	return *s.imprint
}
