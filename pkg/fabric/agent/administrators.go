package agent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/networking/inputs"
)

// maxWaiting is how many conditions wait to be written; others are written later.
const maxWaiting = 64

// resources are those of the kinds by which administrators ask.
var resources = map[string]string{"FirewallConfiguration": "firewallconfigurations", "RouteConfiguration": "routeconfigurations"}

// Administrators follows what administrators ask a host for, and tells them what became of it.
type Administrators struct {
	cluster *Cluster
	host    inputs.Host
	// name is the host's in conditions.
	name      string
	changed   signal.Signal
	firewalls []*Objects[networkingv1beta1.FirewallConfiguration]
	routes    []*Objects[networkingv1beta1.RouteConfiguration]
	followers []Follower
	// told is what was last to be written of each object, and when; writes are what waits for that.
	told   map[types.UID]toldCondition
	writes chan write
}

type toldCondition struct {
	condition networkingv1beta1.HostCondition
	when      time.Time
}

// write is what the status of an object is to say of a host.
type write struct {
	kind       string
	meta       metav1.ObjectMeta
	conditions []networkingv1beta1.HostCondition
}

// NewAdministrators prepares to follow. Without the namespace of Liqo, what is in it is not followed.
func NewAdministrators(c *Cluster, host inputs.Host, name string, changed signal.Signal) *Administrators {
	a := &Administrators{cluster: c, host: host, name: name, changed: changed, told: map[types.UID]toldCondition{}, writes: make(chan write, maxWaiting)}
	version := networkingv1beta1.GroupVersion
	for _, namespace := range slices.Compact([]string{host.Namespace, host.Own}) {
		if namespace == "" {
			continue
		}
		firewalls := Follow[networkingv1beta1.FirewallConfiguration](c, version.WithResource("firewallconfigurations"), namespace, "", changed.Raise)
		routes := Follow[networkingv1beta1.RouteConfiguration](c, version.WithResource("routeconfigurations"), namespace, "", changed.Raise)
		a.firewalls, a.routes = append(a.firewalls, firewalls), append(a.routes, routes)
		a.followers = append(a.followers, firewalls, routes)
	}
	return a
}

// Run follows until the context ends. Nobody has to wait for it: until all is known, what the kernel has of administrators stays.
func (a *Administrators) Run(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error {
		if Sync(ctx, group, a.followers...) == nil {
			a.changed.Raise()
		}
		return nil
	})
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case w := <-a.writes:
				if err := a.write(ctx, w); err != nil && ctx.Err() == nil {
					klog.FromContext(ctx).Error(err, "Telling an administrator", "kind", w.kind, "namespace", w.meta.Namespace, "name", w.meta.Name)
				}
			}
		}
	})
}

// Wanted is what administrators ask for.
func (a *Administrators) Wanted() (dataplane.State, []inputs.Request) {
	if !Synced(a.followers...) {
		return dataplane.State{Kept: []string{dataplane.AllParts}}, nil
	}
	return inputs.Administrators(a.host, a.objects())
}

func (a *Administrators) objects() (all inputs.AdministratorObjects) {
	for i := range a.firewalls {
		all.Firewalls = append(all.Firewalls, a.firewalls[i].All()...)
		all.Routes = append(all.Routes, a.routes[i].All()...)
	}
	return all
}

// Tell has written what became of what was asked for, where that is news.
func (a *Administrators) Tell(requests []inputs.Request, placement Placement, now time.Time) {
	if !Synced(a.followers...) {
		return
	}
	asked := map[types.UID]bool{}
	for _, r := range requests {
		asked[r.Meta.UID] = true
		if condition, ok := conditionOf(r, placement, a.name, now); ok {
			a.tell(r, &condition, now)
		}
	}
	mentioned := map[types.UID]bool{}
	for _, r := range a.mentioned() {
		mentioned[r.Meta.UID] = true
		if !asked[r.Meta.UID] && r.Meta.DeletionTimestamp.IsZero() {
			a.tell(r, nil, now)
		}
	}
	maps.DeleteFunc(a.told, func(uid types.UID, _ toldCondition) bool { return !asked[uid] && !mentioned[uid] })
}

// mentioned are the objects whose status says something of the host.
func (a *Administrators) mentioned() (all []inputs.Request) {
	objects := a.objects()
	for i := range objects.Firewalls {
		o := &objects.Firewalls[i]
		all = append(all, inputs.Request{Kind: "FirewallConfiguration", Meta: o.ObjectMeta, Conditions: o.Status.Conditions})
	}
	for i := range objects.Routes {
		o := &objects.Routes[i]
		all = append(all, inputs.Request{Kind: "RouteConfiguration", Meta: o.ObjectMeta, Conditions: o.Status.Conditions})
	}
	return slices.DeleteFunc(all, func(r inputs.Request) bool { return len(ofHost(r.Conditions, a.name)) == 0 })
}

func ofHost(all []networkingv1beta1.HostCondition, name string) (own []networkingv1beta1.HostCondition) {
	for i := range all {
		if all[i].Host == name {
			own = append(own, all[i])
		}
	}
	return own
}

// conditionOf is what a host says of an object; false if it does not know yet.
func conditionOf(r inputs.Request, placement Placement, name string, now time.Time) (networkingv1beta1.HostCondition, bool) {
	c := networkingv1beta1.HostCondition{
		Host: name, Type: networkingv1beta1.HostError, Status: metav1.ConditionTrue, ObservedGeneration: r.Meta.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case r.Refused != nil:
		c.Reason, c.Message = networkingv1beta1.ReasonNotSupported, "Nothing was changed: "+r.Refused.Error()+"."
	case placement.Err != nil:
		c.Reason, c.Message = networkingv1beta1.ReasonNotProgrammed, "The kernel refuses what Liqo needs itself, which comes first: "+placement.Err.Error()
	case !placement.Placed:
		return c, false
	case placement.Refused[r.Part] != nil:
		c.Reason, c.Message = networkingv1beta1.ReasonKernelRefuses, "The kernel refuses it, and is asked again: "+placement.Refused[r.Part].Error()
	default:
		c.Type, c.Reason, c.Message = networkingv1beta1.HostApplied, networkingv1beta1.ReasonApplied, "The host has what is wanted."
	}
	c.Message = conditions.Bound(c.Message)
	for _, old := range ofHost(r.Conditions, name) {
		if old.Type == c.Type {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return c, true
}

// tell has a condition of the host written, or that it has none, where that is not there.
func (a *Administrators) tell(r inputs.Request, condition *networkingv1beta1.HostCondition, now time.Time) {
	wanted, fields := networkingv1beta1.HostCondition{}, []networkingv1beta1.HostCondition{}
	if condition != nil {
		wanted = *condition
		fields = append(fields, wanted)
	}
	there := ofHost(r.Conditions, a.name)
	if len(there) == 1 && sameCondition(there[0], wanted) {
		return
	}
	// What was written a moment ago may not be seen yet.
	if last, ok := a.told[r.Meta.UID]; ok && sameCondition(last.condition, wanted) && now.Sub(last.when) < writing {
		return
	}
	select {
	case a.writes <- write{r.Kind, r.Meta, fields}:
		a.told[r.Meta.UID] = toldCondition{wanted, now}
	default:
	}
}

// write applies the host's conditions under a name of the host's own: what another host applies does not take them away.
func (a *Administrators) write(ctx context.Context, w write) error {
	ctx, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	sum := sha256.Sum256([]byte(a.name))
	owner := fmt.Sprintf("liqo-host-%x", sum[:8])
	return a.cluster.Apply(ctx, owner, Object{
		Resource: networkingv1beta1.GroupVersion.WithResource(resources[w.kind]), Kind: w.kind, Namespace: w.meta.Namespace, Name: w.meta.Name, Part: "status",
	}, map[string]any{"uid": w.meta.UID}, map[string]any{"status": map[string]any{"conditions": w.conditions}})
}

func sameCondition(a, b networkingv1beta1.HostCondition) bool {
	a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
	return a == b
}
