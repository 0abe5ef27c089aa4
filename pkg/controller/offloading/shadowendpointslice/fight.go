package shadowendpointslice

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/restraint"
	"liqo.io/liqo/pkg/kube/writers"
)

// fieldManager is whom API servers note for what is written here.
const fieldManager = client.FieldOwner("liqo-controller-manager")

// contest is what is remembered of the writes of one EndpointSlice. Losing it costs a request.
type contest struct {
	// asked identifies what the EndpointSlice is made of; inStep says that it was known to hold that.
	asked  string
	inStep bool
	// writes are the latest writes of what is asked for.
	writes restraint.Writes
	// reverted and contended are when either was last told.
	reverted, contended time.Time
}

// scope is what one pass knows.
type scope struct {
	shadow  *offloadingv1beta1.ShadowEndpointSlice
	wanted  *discoveryv1.EndpointSlice
	contest *contest
}

// contestOf is what is remembered of a ShadowEndpointSlice's EndpointSlice. What the consumer asks for anew, and what this
// cluster comes to know, is no contest. One name is reconciled by one worker at a time.
func (r *reconciler) contestOf(shadow *offloadingv1beta1.ShadowEndpointSlice, know Knowledge) *contest {
	known, _ := r.contests.LoadOrStore(client.ObjectKeyFromObject(shadow), &contest{})
	c, ok := known.(*contest)
	if !ok {
		c = &contest{}
	}
	asked := fmt.Sprintf("%s/%s/%s/%v/%t", shadow.UID, shadow.ResourceVersion, know.Mapping, know.Accepted, know.Down)
	for _, id := range slices.Sorted(maps.Keys(know.Direct)) {
		way := know.Direct[id]
		asked += fmt.Sprintf("/%s %s %v %v %t", id, way.Mapping, way.Pods, way.Accepted, way.Up)
	}
	sum := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(know.Hosted)) {
		own := know.Hosted[name]
		fmt.Fprintf(sum, "%s %s", name, &own)
	}
	asked += fmt.Sprintf("/%x", sum.Sum64())
	if c.asked != asked {
		c.asked, c.inStep, c.writes = asked, false, nil
	}
	return c
}

// mayWrite is asked before anything is written. If somebody keeps undoing it that is told, and the error says when to try again.
func (r *reconciler) mayWrite(s *scope, what string) error {
	now := r.Clock.Now()
	wait := s.contest.writes.Wait(now)
	if wait == 0 {
		return nil
	}
	message := fmt.Sprintf("somebody at the provider keeps undoing what the EndpointSlice is to hold (%s); it is set right again at most twice a minute", what)
	if restraint.MayTell(&s.contest.contended, now) {
		r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonContended, "PublishEndpoints", "%s", message)
	}
	return reconcile.Wait(offloadingv1beta1.ReasonContended, message, wait)
}

// putBack changes the EndpointSlice into what it must be. If that undoes what somebody made of it, it is told who did.
func (r *reconciler) putBack(ctx context.Context, s *scope, live, now *discoveryv1.EndpointSlice) error {
	path := drift(live, now)
	field := strings.Join(path, ".")
	if err := r.mayWrite(s, "field "+field+" is changed"); err != nil {
		return err
	}
	at := r.Clock.Now()
	tell := s.contest.inStep && restraint.Due(s.contest.reverted, at)
	by := "somebody"
	if tell {
		// It is asked before the write, because the answer is gone afterwards; that it cannot be had holds up nothing.
		if manager := r.meddler(ctx, live, path); manager != "" {
			by = fmt.Sprintf("field manager %q", manager)
		}
	}
	err := r.Patch(ctx, now, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}), fieldManager)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return refused(err, "changing", live)
	}
	s.wrote(now, at)
	if tell {
		s.contest.reverted = at
		r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonRemoteChangeReverted, "PublishEndpoints",
			"Field %s of EndpointSlice %s/%s was changed by %s; it was put back", field, live.Namespace, live.Name, by)
	}
	return nil
}

// wrote takes note of a write and of whether the provider's admission left it as it was asked for.
func (s *scope) wrote(answer *discoveryv1.EndpointSlice, at time.Time) {
	s.contest.writes.Add(at)
	s.contest.inStep = changed(answer, s.wanted, equality.Semantic.DeepEqual) == nil
}

// meddler is who changed a field of the EndpointSlice last, other than us; empty if that is not known. The cache does not keep it.
func (r *reconciler) meddler(ctx context.Context, seen *discoveryv1.EndpointSlice, path []string) string {
	var live discoveryv1.EndpointSlice
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), &live); err != nil || live.UID != seen.UID {
		return ""
	}
	return writers.Last(live.ManagedFields, path, string(fieldManager))
}

// drift is the path of the first field that differs from what it must be.
func drift(live, now *discoveryv1.EndpointSlice) []string {
	switch {
	case !equality.Semantic.DeepEqual(live.Endpoints, now.Endpoints):
		return []string{"endpoints"}
	case !equality.Semantic.DeepEqual(live.Ports, now.Ports):
		return []string{"ports"}
	}
	for _, of := range []struct {
		field      string
		have, want map[string]string
	}{{"labels", live.Labels, now.Labels}, {"annotations", live.Annotations, now.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(of.want)) {
			if value, there := of.have[key]; !there || value != of.want[key] {
				return []string{"metadata", of.field, key}
			}
		}
	}
	return []string{"metadata"}
}
