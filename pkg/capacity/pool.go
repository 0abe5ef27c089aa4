package capacity

import (
	"cmp"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// maxPoolResources is how many resources there may be, over all nodes and pods.
const maxPoolResources = 1024

// Owner is the ResourceSlice that a pod counts for. The zero one is no consumer: pods of the provider's own.
type Owner struct {
	// Consumer is a cluster ID.
	Consumer string
	// Slice of the consumer.
	Slice string
}

// Pool is what the nodes of a provider have, and what is taken of it. It is told of nodes and pods as they change, in any order, and keeps
// sums: what a change costs does not depend on how many others there are. Input that cannot be believed is refused, and what was known
// before still counts. It is safe for use by several goroutines.
type Pool struct {
	tolerated Tolerated

	mu      sync.Mutex
	tallies map[corev1.ResourceName]*tally
	hosts   map[string]*host
	pods    map[types.NamespacedName]holding
	owners  map[Owner]*owner
	wishes  map[Owner]wished
}

// NewPool returns a pool without nodes, of those whose taints are tolerated.
func NewPool(tolerated Tolerated) *Pool {
	return &Pool{tolerated: tolerated, tallies: map[corev1.ResourceName]*tally{}, hosts: map[string]*host{}, pods: map[types.NamespacedName]holding{},
		owners: map[Owner]*owner{}, wishes: map[Owner]wished{}}
}

// tally is one resource over all nodes that take pods.
type tally struct {
	name corev1.ResourceName
	// total is allocatable, used is requested by pods.
	total, used int64
	// refs counts what knows of the tally; without any it goes.
	refs int
	most mostFree
}

// amount of a resource, in thousandths of a core, bytes or pieces.
type amount struct {
	of    *tally
	value int64
}

// owner is what the pods of a slice take.
type owner struct {
	of   Owner
	pods int
	// counted is on nodes that take pods, running on all.
	counted, running sums
}

// sums of resources.
type sums map[*tally]int64

// owned is what the pods of one slice take of one resource of one node.
type owned struct {
	by *owner
	amount
}

// host is a node, or the name of one that pods are bound to.
type host struct {
	name   string
	counts bool
	labels labels.Set
	// os and arch as the scheduler knows them.
	os, arch string
	pods     int
	stocks   []*stock
	owned    []owned
}

// holding is what one pod takes, and where.
type holding struct {
	// of are the watches that have the pod. It counts until none has: while its labels change, several tell of it, in any order.
	of      watches
	on      *host
	by      *owner
	owner   Owner
	amounts []amount
}

// Node tells of a node as it is now, whose labels nobody changes afterwards. One that takes no pods offers nothing.
func (p *Pool) Node(node *corev1.Node) error {
	if !p.tolerated.TakesPods(node) {
		p.ForgetNode(node.Name)
		return nil
	}
	has, err := measure(node.Status.Allocatable, false)
	if err == nil && len(has) == 0 {
		err = errNothingAllocatable
	}
	if err != nil {
		return fmt.Errorf("node %s: %w; what it had before still counts", node.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.room(has); err != nil {
		return fmt.Errorf("node %s: %w; what it had before still counts", node.Name, err)
	}
	h := p.host(node.Name)
	p.enter(h, false)
	p.equip(h, has)
	h.labels = node.Labels
	h.os = cmp.Or(node.Labels[corev1.LabelOSStable], node.Status.NodeInfo.OperatingSystem)
	h.arch = cmp.Or(node.Labels[corev1.LabelArchStable], node.Status.NodeInfo.Architecture)
	p.enter(h, true)
	return nil
}

// ForgetNode tells that a node is gone, or takes no pods any more. Those bound to it still run for their slices, and take nothing of what is free
// until it is back.
func (p *Pool) ForgetNode(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.hosts[name]; h != nil {
		p.enter(h, false)
		p.equip(h, nil)
		p.drop(h)
	}
}

// room refuses more kinds of resources than the pool keeps.
func (p *Pool) room(list []measured) error {
	more := 0
	for _, one := range list {
		if p.tallies[one.name] == nil {
			more++
		}
	}
	if len(p.tallies)+more > maxPoolResources {
		return fmt.Errorf("with it there would be more than %d kinds of resources in the cluster; remove extended resources that nobody uses", maxPoolResources)
	}
	return nil
}

// tally returns that of a resource, for one more that knows of it.
func (p *Pool) tally(name corev1.ResourceName) *tally {
	t := p.tallies[name]
	if t == nil {
		t = &tally{name: name}
		p.tallies[name] = t
	}
	t.refs++
	return t
}

func (p *Pool) leave(t *tally) {
	if t.refs--; t.refs == 0 {
		delete(p.tallies, t.name)
	}
}

func (p *Pool) host(name string) *host {
	h := p.hosts[name]
	if h == nil {
		h = &host{name: name}
		p.hosts[name] = h
	}
	return h
}

// drop forgets a node that is gone once no pod is bound to it.
func (p *Pool) drop(h *host) {
	if !h.counts && h.pods == 0 {
		p.equip(h, nil)
		delete(p.hosts, h.name)
	}
}

func (p *Pool) owner(of Owner) *owner {
	if of == (Owner{}) {
		return nil
	}
	o := p.owners[of]
	if o == nil {
		o = &owner{of: of, counted: sums{}, running: sums{}}
		p.owners[of] = o
	}
	return o
}

// equip sets what a node has, while it does not count. What nobody has and nobody takes is forgotten.
func (p *Pool) equip(h *host, has []measured) {
	for _, s := range h.stocks {
		s.has = 0
	}
	for _, one := range has {
		s := h.stock(one.name)
		if s == nil {
			s = &stock{of: p.tally(one.name), place: absent}
			h.stocks = append(h.stocks, s)
		}
		s.has = one.value
	}
	h.trim(p)
}

// enter has a node count, or not any more.
func (p *Pool) enter(h *host, counts bool) {
	if h.counts == counts {
		return
	}
	h.counts = counts
	sign := int64(1)
	if !counts {
		sign = -1
	}
	for _, s := range h.stocks {
		s.of.total += sign * s.has
		s.of.used += sign * s.used
		s.of.most.set(s, counts)
	}
	for _, one := range h.owned {
		one.by.counted.add(one.of, sign*one.value)
	}
}

// hold adds what a pod takes to all sums, or with -1 takes it out.
func (p *Pool) hold(pod holding, sign int64) {
	pod.on.pods += int(sign)
	if pod.by != nil {
		pod.by.pods += int(sign)
	}
	for _, one := range pod.amounts {
		s := pod.on.stock(one.of.name)
		if s == nil {
			s = &stock{of: p.tally(one.of.name), place: absent}
			pod.on.stocks = append(pod.on.stocks, s)
		}
		s.used += sign * one.value
		if pod.by != nil {
			pod.on.own(pod.by, one.of, sign*one.value)
			pod.by.running.add(one.of, sign*one.value)
		}
		if !pod.on.counts {
			continue
		}
		one.of.used += sign * one.value
		one.of.most.set(s, true)
		if pod.by != nil {
			pod.by.counted.add(one.of, sign*one.value)
		}
	}
}

// release takes out what a pod took, and forgets what nobody knows of any more.
func (p *Pool) release(pod holding) {
	p.hold(pod, -1)
	pod.on.trim(p)
	for _, one := range pod.amounts {
		p.leave(one.of)
	}
	if pod.by != nil && pod.by.pods == 0 {
		delete(p.owners, pod.owner)
	}
	p.drop(pod.on)
}

func (s sums) add(of *tally, value int64) {
	if sum := s[of] + value; sum != 0 {
		s[of] = sum
	} else {
		delete(s, of)
	}
}

func (h *host) stock(name corev1.ResourceName) *stock {
	for _, s := range h.stocks {
		if s.of.name == name {
			return s
		}
	}
	return nil
}

// own notes what the pods of a slice take of the node.
func (h *host) own(by *owner, of *tally, value int64) {
	for i := range h.owned {
		if one := &h.owned[i]; one.by == by && one.of == of {
			if one.value += value; one.value == 0 {
				h.owned[i] = h.owned[len(h.owned)-1]
				h.owned = h.owned[:len(h.owned)-1]
			}
			return
		}
	}
	if value != 0 {
		h.owned = append(h.owned, owned{by, amount{of, value}})
	}
}

// trim forgets resources that the node does not have and no pod takes there.
func (h *host) trim(p *Pool) {
	kept := h.stocks[:0]
	for _, s := range h.stocks {
		if s.has != 0 || s.used != 0 {
			kept = append(kept, s)
			continue
		}
		s.of.most.set(s, false)
		p.leave(s.of)
	}
	clear(h.stocks[len(kept):])
	h.stocks = kept
}
