package mirror

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/jsonpatch"
	"liqo.io/liqo/pkg/reflection"
)

// entry is what a ledger shows of one object.
type entry struct {
	originUID, hash string
}

// String is the entry as it stands in the ledger.
func (e entry) String() string { return e.originUID + " " + e.hash }

// ledger is the provider's word on what became of objects that can only be written.
type ledger struct {
	// published tells whether the provider keeps a ledger at all.
	published bool
	version   string
	entries   map[string]string
	// partial tells that it could not list everything.
	partial bool
}

// objectName is what a name in a ledger must look like: the provider may have written anything.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

func ledgerOf(view *watched, name string) ledger {
	object, ok := view.Of(name).(*corev1.ConfigMap)
	if !ok {
		return ledger{}
	}
	_, partial := object.Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation]
	return ledger{published: true, version: object.ResourceVersion, entries: object.Data, partial: partial}
}

func (l ledger) names() []string {
	var names []string
	for name := range l.entries {
		if objectName.MatchString(name) && l.lists(name) {
			names = append(names, name)
		}
	}
	return names
}

// origin is the UID of the local object that an entry says to stand for; empty if there is none.
func (l ledger) origin(name string) types.UID {
	uid, _, _ := strings.Cut(strings.TrimSpace(l.entries[name]), " ")
	return types.UID(uid)
}

// lists tells whether the ledger shows a reflected object of that name. Pods' tokens stand there, too, but are not ours to
// keep in step.
func (l ledger) lists(name string) bool {
	value, there := l.entries[name]
	return there && !reflection.IsTokenEntry(value)
}

// shows tells whether the ledger says what the last write made, or that nothing is there after a removal.
func (l ledger) shows(name string, e *entry) bool {
	if e == nil {
		return l.published && !l.partial && !l.lists(name)
	}
	return strings.TrimSpace(l.entries[name]) == e.String()
}

// ledgerEvent returns the handler of a ledger's events: it queues the objects whose entries changed, and those that wait for
// the ledger. A ledger that vanishes says nothing about any object.
func (p *pair) ledgerEvent() func(before, object reflection.Object, deleted bool) {
	var before map[string]string
	return func(_, object reflection.Object, deleted bool) {
		now, ok := object.(*corev1.ConfigMap)
		if !ok || deleted {
			return
		}
		for name, value := range now.Data {
			if objectName.MatchString(name) && before[name] != value && !reflection.IsTokenEntry(value) {
				p.enqueue(name)
			}
		}
		for name, value := range before {
			if _, there := now.Data[name]; !there && !reflection.IsTokenEntry(value) {
				p.enqueue(name)
			}
		}
		before = now.Data
		p.mu.Lock()
		waiting := maps.Clone(p.states)
		p.mu.Unlock()
		for name, s := range waiting {
			if s.waits() {
				p.enqueue(name)
			}
		}
	}
}

// sending is what was written last of an object that can only be written.
type sending struct {
	// entry is what the ledger will show of it, which was at version then; nil for a removal, and once it is confirmed.
	entry   *entry
	version string
	// lookAt is when to look at the object itself if the ledger still shows nothing, lookPause how long that waits.
	lookAt    time.Time
	lookPause time.Duration
}

// sent takes note of a write that the ledger will show; nil stands for a removal.
func (s *state) sent(e *entry, l ledger, now time.Time) {
	s.entry, s.version = e, l.version
	s.lookAt, s.lookPause = now.Add(ledgerLate), ledgerLate
	s.await(now)
}

// looked takes note that the object is there as it was written, and returns when to look again.
func (s *state) looked(now time.Time) time.Duration {
	s.lookPause = min(2*s.lookPause, ledgerLatest)
	s.lookAt = now.Add(s.lookPause)
	return s.lookPause
}

// pending tells whether the last write was of this entry and the ledger may still lag behind it. It lags as long as it was
// not rewritten since, and for a while afterwards; wait is the rest of that while.
func (s *state) pending(e *entry, name string, l ledger, now time.Time) (pending bool, wait time.Duration) {
	switch {
	case s.at.IsZero(), (s.entry == nil) != (e == nil), e != nil && *s.entry != *e:
		return false, 0
	case !l.published || l.version == s.version, l.partial && !l.lists(name):
		return true, 0
	default:
		wait = s.at.Add(ledgerGrace).Sub(now)
		return wait > 0, max(wait, 0)
	}
}

// await takes note of when the write was made that the ledger is to confirm; zero stands for none.
func (s *state) await(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
}

// waits tells whether a write is not confirmed by the ledger yet.
func (s *shared) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.at.IsZero()
}

// confirmed drops the memory of the last write, because the ledger shows it.
func (s *state) confirmed() {
	s.entry = nil
	s.await(time.Time{})
}

// exists tells whether the remote object seems to exist: by the last write, if the ledger was not rewritten since, else by
// the ledger.
func (s *state) exists(name string, l ledger) bool {
	if !s.at.IsZero() && s.version == l.version {
		return s.entry != nil
	}
	return l.lists(name) || !s.at.IsZero() && s.entry != nil
}

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
		t.state.imprint = nil
		return
	}
	i.uid, i.version = answer.GetUID(), answer.GetResourceVersion()
	if answer.GetAnnotations()[offloadingv1beta1.ReflectedKeysAnnotation] != i.record {
		i.record, i.labels, i.annotations = "", nil, nil
	}
	t.state.imprint = &i
}

// confirmImprint takes note that the ledger shows what is wanted, of which the hash tells the keys, too.
func (t *task) confirmImprint() {
	before := ptr.Deref(t.state.imprint, imprint{})
	if before.record == t.wanted.GetAnnotations()[offloadingv1beta1.ReflectedKeysAnnotation] && before.originUID == reflection.OriginUID(t.wanted) {
		return
	}
	t.state.imprint = ptr.To(imprintOf(t.wanted))
}

// renewal are the steps that take away the labels and annotations that went at home, and renew the record of those that are ours.
// There are none if no key came or went, or if it is not known which keys are ours: then the answer to the write will tell.
func (t *task) renewal() jsonpatch.Patch {
	before, now := ptr.Deref(t.state.imprint, imprint{}), imprintOf(t.wanted)
	if before.record == "" || now.record == "" || before.originUID != now.originUID ||
		before.record == now.record && slices.Equal(before.labels, now.labels) && slices.Equal(before.annotations, now.annotations) {
		return nil
	}
	record := []string{"metadata", "annotations", offloadingv1beta1.ReflectedKeysAnnotation}
	list := jsonpatch.Patch{jsonpatch.Test(before.record, record...), jsonpatch.Add(now.record, record...)}
	list = append(list, withoutKeys("labels", before.labels, now.labels)...)
	return append(list, withoutKeys("annotations", before.annotations, now.annotations)...)
}

// withoutKeys are steps that remove keys. One that somebody removed already cannot be removed, so it is set first.
func withoutKeys(field string, before, now []string) (list jsonpatch.Patch) {
	for _, key := range before {
		if _, stays := slices.BinarySearch(now, key); !stays {
			list = append(list, jsonpatch.Add("", "metadata", field, key), jsonpatch.Remove("metadata", field, key))
		}
	}
	return list
}

// deleteSeen removes the object that the last write's answer showed, if it is still exactly that; done tells whether it is gone.
func (t *task) deleteSeen(ctx context.Context, c client.WithWatch) (done bool, err error) {
	seen := t.state.imprint
	t.state.imprint = nil
	if seen == nil || seen.uid == "" {
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
