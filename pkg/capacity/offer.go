package capacity

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

// DefaultPercentage of what is free is offered where nobody says otherwise.
const DefaultPercentage = 90

// Percentages are what was said of how much of what is free is offered to a slice; nil says nothing.
type Percentages struct {
	// Class of the slice, Tenant that it is of, Chart that the provider is installed by.
	Class, Tenant, Chart *int32
}

// Closest is the percentage that holds.
func (p Percentages) Closest() int64 {
	return int64(*cmp.Or(p.Class, p.Tenant, p.Chart, new(int32(DefaultPercentage))))
}

func (p Percentages) validate() error {
	for _, one := range []struct {
		of      string
		percent *int32
	}{{"slice class", p.Class}, {"Tenant", p.Tenant}, {"chart", p.Chart}} {
		if one.percent != nil && (*one.percent < 0 || *one.percent > 100) {
			return fmt.Errorf("the sharing percentage %d of the %s is not from 0 to 100", *one.percent, one.of)
		}
	}
	return nil
}

// Wish is what a slice asks for.
type Wish struct {
	// Requested quantities; of resources that are not named a share is offered.
	Requested corev1.ResourceList
	// Percentages say how large the share is.
	Percentages Percentages
	// Nodes are the labels of those that the slice uses; all nodes are, if there are none.
	Nodes labels.Set
}

// wished is a Wish, with its nodes in words.
type wished struct {
	Wish
	nodes string
}

// Offer is what a slice may use.
type Offer struct {
	// Resources are offered: at least what runs.
	Resources corev1.ResourceList
	// Over is by how much what runs is more than would be offered, of each resource of which it is; empty if of none.
	Over corev1.ResourceList
	// Running is what its pods take, on whatever nodes: also on those that take no more pods.
	Running corev1.ResourceList
	// Nodes that its pods run on.
	Nodes authv1beta1.ProviderNodes
}

// DeepCopy returns an Offer that may be changed.
func (o Offer) DeepCopy() Offer {
	return Offer{Resources: o.Resources.DeepCopy(), Over: o.Over.DeepCopy(), Running: o.Running.DeepCopy(), Nodes: *o.Nodes.DeepCopy()}
}

// Ask tells what a slice asks for. What it asked for before still holds if that is refused.
func (p *Pool) Ask(of Owner, wish Wish) error {
	err := wish.Percentages.validate()
	if of == (Owner{}) {
		err = errNobody
	}
	if err == nil {
		_, err = measure(wish.Requested, false)
	}
	if err != nil {
		return fmt.Errorf("slice %s of cluster %q: %w; what it asked for before still holds", of.Slice, of.Consumer, err)
	}
	wish.Requested, wish.Nodes = wish.Requested.DeepCopy(), maps.Clone(wish.Nodes)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wishes[of] = wished{wish, wish.Nodes.String()}
	return nil
}

// Withdraw tells that a slice asks for nothing any more.
func (p *Pool) Withdraw(of Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wishes, of)
}

// Free is what a consumer could use: what nodes have, less what others' pods take.
func (p *Pool) Free(consumer string) corev1.ResourceList {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := map[*tally]int64{}
	for of, o := range p.owners {
		if of.Consumer != consumer {
			continue
		}
		for t, value := range o.counted {
			own[t] += value
		}
	}
	free := corev1.ResourceList{}
	for name, t := range p.tallies {
		if t.total > 0 {
			free[name] = amountOf(name, max(0, t.total-t.used+own[t]))
		}
	}
	return free
}

// Used is what the pods of a slice take.
func (p *Pool) Used(of Owner) corev1.ResourceList {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := corev1.ResourceList{}
	if o := p.owners[of]; o != nil {
		for t, value := range o.counted {
			used[t.name] = amountOf(t.name, value)
		}
	}
	return used
}

// Room is what all slices that ask can have together of the nodes with some labels: what is free, and what their pods take.
func (p *Pool) Room(nodes labels.Set) corev1.ResourceList {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.everywhere()
	if len(nodes) > 0 {
		at = regionOf(p.hosts, nodes)
	}
	room := corev1.ResourceList{}
	for name, e := range at.extents {
		if e.total > 0 {
			room[name] = amountOf(name, max(0, p.shared(e)))
		}
	}
	return room
}

// shared is what is free of a resource, and what pods of those take that are offered something.
func (p *Pool) shared(e *extent) int64 {
	all := e.free()
	for of, value := range e.own {
		if _, asks := p.wishes[of]; asks {
			all += value
		}
	}
	return all
}

// Offers is what each slice that asks may use. A requested quantity is offered as it is; the slices of a consumer that take a share have one
// together, of what is free for it on the nodes that they use and not requested. Those of certain nodes come first. With exclusive all offers
// together are not more than what is free, and those of the same nodes, or some of them, not more than what is free there, unless what runs is:
// who would be offered more than others gives way first.
func (p *Pool) Offers(exclusive bool) map[Owner]Offer {
	p.mu.Lock()
	defer p.mu.Unlock()
	offers, regions := make(map[Owner]Offer, len(p.wishes)), map[string]*region{"": p.everywhere()}
	resources := map[corev1.ResourceName]bool{corev1.ResourcePods: true} // A grant that does not name pods would not bound them.
	for name, t := range p.tallies {
		resources[name] = resources[name] || t.total > 0
	}
	order := make([]Owner, 0, len(p.wishes))
	for of, wish := range p.wishes {
		order = append(order, of)
		at := regions[wish.nodes]
		if at == nil {
			at = regionOf(p.hosts, wish.Nodes)
			regions[wish.nodes] = at
		}
		offers[of] = Offer{Resources: corev1.ResourceList{}, Over: corev1.ResourceList{}, Running: corev1.ResourceList{}, Nodes: at.nodes()}
		for name := range wish.Requested {
			resources[name] = true
		}
		if o := p.owners[of]; o != nil {
			for t := range o.running {
				resources[t.name] = true
			}
		}
	}
	slices.SortFunc(order, func(a, b Owner) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), -cmp.Compare(p.wishes[a].nodes, p.wishes[b].nodes), cmp.Compare(a.Slice, b.Slice))
	})
	if exclusive {
		nest(regions)
	}
	for name := range resources {
		p.offer(name, order, regions, exclusive, offers)
	}
	return offers
}

// claim is what a slice may have of one resource, in pieces.
type claim struct {
	of            Owner
	nodes         string // the selector of its region
	want, running int64
	// named says that the slice asked for a quantity; percent holds if it did not.
	named   bool
	percent int64
	// extra is what it gets of what is left over.
	extra int64
}

// offer adds one resource to the offers of slices.
func (p *Pool) offer(name corev1.ResourceName, order []Owner, regions map[string]*region, exclusive bool, offers map[Owner]Offer) {
	size, countable := piece(name)
	t := p.tallies[name]
	if t == nil {
		t = &tally{name: name}
	}
	claims := make([]claim, len(order))
	for i, of := range order {
		claims[i] = p.claim(t, of, size)
	}
	consumers := slices.Collect(runsOf(claims, func(c claim) string { return c.of.Consumer }))
	for _, theirs := range consumers {
		divide(theirs, func(nodes string) int64 { return regions[nodes].extent(name).freeFor(theirs[0].of.Consumer) / size }, countable)
	}
	for i := range claims {
		if c := &claims[i]; c.running > c.want {
			offers[c.of].Over[name] = amountOf(name, (c.running-c.want)*size)
		}
	}
	if exclusive {
		lowerByNodes(name, consumers, regions, size)
		lower(consumers, p.shared(regions[""].extent(name))/size)
	}
	for i := range claims {
		c := &claims[i]
		if regions[c.nodes].extent(name).total == 0 && !c.named && c.running == 0 && name != corev1.ResourcePods {
			continue // What none of its nodes has is not offered as nothing.
		}
		if !c.named {
			c.want = readable(name, c.want)
		}
		offers[c.of].Resources[name] = amountOf(name, max(c.want, c.running)*size)
		if c.running > 0 {
			offers[c.of].Running[name] = amountOf(name, c.running*size)
		}
	}
}

// divide shares what is free for one consumer among its claims: first on certain nodes, and what is left of all for the others.
func divide(claims []claim, free func(nodes string) int64, countable bool) {
	taken := int64(0)
	for there := range runsOf(claims, func(c claim) string { return c.nodes }) {
		some := free(there[0].nodes)
		if there[0].nodes == "" {
			some -= taken
		}
		share(there, some, countable)
		for i := range there {
			taken += there[i].want
		}
	}
}

// lowerByNodes brings the claims of the same nodes, or of some of them, down to what there is on them.
func lowerByNodes(name corev1.ResourceName, consumers [][]claim, regions map[string]*region, size int64) {
	// Few nodes come before more, so that what is free beside them is not lost, and always in the same order.
	order := slices.SortedFunc(maps.Keys(regions), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(regions[a].hosts), len(regions[b].hosts)), cmp.Compare(a, b))
	})
	for _, nodes := range order {
		at := regions[nodes]
		if nodes == "" {
			continue
		}
		var there [][]claim
		for _, theirs := range consumers {
			for some := range runsOf(theirs, func(c claim) string { return c.nodes }) {
				if at.inside[some[0].nodes] {
					there = append(there, some)
				}
			}
		}
		free := at.extent(name).free()
		for _, some := range there {
			for i := range some {
				free += at.extent(name).own[some[i].of]
			}
		}
		lower(there, free/size)
	}
}

// readable is an amount of bytes without those that people would stumble over: from a gibibyte on it has whole mebibytes.
func readable(name corev1.ResourceName, value int64) int64 {
	if (name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage) && value >= 1<<30 {
		return value &^ (1<<20 - 1)
	}
	return value
}

// claim is what a slice asks for of a resource, and has.
func (p *Pool) claim(t *tally, of Owner, size int64) claim {
	wish := p.wishes[of]
	c := claim{of: of, nodes: wish.nodes, percent: wish.Percentages.Closest()}
	if quantity, named := wish.Requested[t.name]; named {
		c.named = true
		asked, _ := measure(corev1.ResourceList{t.name: quantity}, false) // Ask saw to it that this is possible.
		for _, one := range asked {
			c.want = one.value / size
		}
	}
	if o := p.owners[of]; o != nil {
		c.running = (o.running[t] + size - 1) / size
	}
	return c
}

// share divides among the slices of one consumer that take a share what is free for it and not requested. Their parts are rounded down, and
// what is lost by that goes to the first ones: all together are the share of the whole, and at least one piece of what is countable.
func share(claims []claim, free int64, countable bool) {
	var sharing, percents, left int64
	for i := range claims {
		switch c := &claims[i]; {
		case c.named:
			free -= c.want
		case c.percent > 0:
			sharing, percents = sharing+1, percents+c.percent
		}
	}
	if free <= 0 || sharing == 0 {
		return
	}
	if left = part(free, percents, 100*sharing); countable {
		left = max(left, 1)
	}
	for i := range claims {
		if c := &claims[i]; !c.named {
			c.want = part(free, c.percent, 100*sharing)
			left -= c.want
		}
	}
	for i := range claims {
		if c := &claims[i]; !c.named && c.percent > 0 && left > 0 {
			c.want, left = c.want+1, left-1
		}
	}
}

// runsOf yields claims with the same key that follow one another.
func runsOf(claims []claim, key func(claim) string) iter.Seq[[]claim] {
	return func(yield func([]claim) bool) {
		for start, end := 0, 0; start < len(claims); start = end {
			for end < len(claims) && key(claims[end]) == key(claims[start]) {
				end++
			}
			if !yield(claims[start:end]) {
				return
			}
		}
	}
}

// lower brings the claims of all consumers down to what there is: consumers to one level, then the slices of each. Who has more slices does
// not get more.
func lower(consumers [][]claim, free int64) {
	sums := make([]claim, len(consumers))
	for i, theirs := range consumers {
		for _, c := range theirs {
			sums[i].want += max(c.want, c.running)
			sums[i].running += c.running
		}
	}
	level(sums, free)
	for i, theirs := range consumers {
		level(theirs, max(sums[i].want, sums[i].running))
	}
}

// level lowers the largest claims to one level until all together are not more than there is. What runs stays. What is left by rounding goes
// to those that were lowered, to those that run something first.
func level(claims []claim, free int64) {
	var most int64
	for i := range claims {
		most = max(most, claims[i].want)
	}
	rest := func(level int64) int64 {
		left := free
		for i := range claims {
			left -= max(claims[i].running, min(claims[i].want, level))
		}
		return left
	}
	lowered := int64(sort.Search(int(most), func(at int) bool { return rest(int64(at)+1) < 0 }))
	left := rest(lowered)
	for _, runs := range []bool{true, false} {
		for i := range claims {
			if c := &claims[i]; c.want > lowered && c.running <= lowered && (c.running > 0) == runs && left > 0 {
				c.extra, left = 1, left-1
			}
		}
	}
	for i := range claims {
		claims[i].want = min(claims[i].want, lowered+claims[i].extra)
	}
}
