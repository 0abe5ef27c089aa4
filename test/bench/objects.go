package main

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

const (
	objectTimeout = 2 * time.Minute
	// revisionLabel tells the versions of an object apart in both clusters.
	revisionLabel = "bench.liqo.io/revision"
	// updateEvery is the pace of updates of a lone object.
	updateEvery = 50 * time.Millisecond
	// perSlice is how many endpoints Kubernetes puts into one EndpointSlice.
	perSlice = 100
)

// Objects is what reflecting some objects of a kind took, in one round.
type Objects struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// System is liqo, or floor for the harness writing each object at home and then to the provider itself, which is the least
	// that reflection can do.
	System string `json:"system"`
	// Per operation: from the request until the provider shows the result.
	Operations map[string]Operation `json:"operations"`
	Load       Load                 `json:"load"`
}

// Operation is one of create, update and delete.
type Operation struct {
	Latency Quantiles `json:"latency"`
	// Rate is objects per second, from the first request to the last result.
	Rate float64 `json:"perSecond"`
	// HomeWrites and AwayWrites are made by Liqo, per object.
	HomeWrites float64 `json:"homeWritesPerObject"`
	AwayWrites float64 `json:"awayWritesPerObject"`
	// Requests of everybody for one object.
	Requests []Request `json:"requests"`
}

// reflected are the kinds that are measured as soon as the product reflects them.
var reflected = []struct {
	name, resource string
	make           func(meta metav1.ObjectMeta, i int) client.Object
}{
	{"configmap", "configmaps", func(meta metav1.ObjectMeta, _ int) client.Object {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"content": string(make1k())}}
	}},
	{"secret", "secrets", func(meta metav1.ObjectMeta, _ int) client.Object {
		return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"content": make1k()}}
	}},
	{"service", "services", func(meta metav1.ObjectMeta, _ int) client.Object {
		return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": meta.Name}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	}},
}

func make1k() []byte {
	content := make([]byte, 1000)
	for i := range content {
		content[i] = 'a' + byte(i%26)
	}
	return content
}

// deleted is the revision of an object that is gone: it comes after all others.
const deleted = math.MaxInt

// arrivals notes when revisions of objects show up at the provider. One that was overtaken shows up with its successor.
type arrivals struct {
	stop chan struct{}

	mu   sync.Mutex
	seen map[string][]arrival
}

type arrival struct {
	revision int
	at       time.Time
}

func (b *bench) watchArrivals(gvr schema.GroupVersionResource, namespace string) *arrivals {
	a := &arrivals{stop: make(chan struct{}), seen: map[string][]arrival{}}
	client, err := metadata.NewForConfig(b.env.Milan.Config)
	fixture.Must(b.w, "making a client of metadata", err)
	informer := metadatainformer.NewFilteredMetadataInformer(client, gvr, namespace, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = revisionLabel }).Informer()
	note := func(o any) {
		object := o.(metav1.Object)
		if revision, err := strconv.Atoi(object.GetLabels()[revisionLabel]); err == nil {
			a.note(object.GetName(), revision)
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, o any) { note(o) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			a.note(o.(metav1.Object).GetName(), deleted)
		},
	})
	fixture.Must(b.w, "watching objects", err)
	go informer.Run(a.stop)
	if !cache.WaitForCacheSync(b.w.ctx.Done(), informer.HasSynced) {
		b.w.Fatalf("told to stop")
	}
	return a
}

func (a *arrivals) note(name string, revision int) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[name] = append(a.seen[name], arrival{revision, now})
}

// at is when a revision, or a later one, showed up.
func (a *arrivals) at(name string, revision int) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, came := range a.seen[name] {
		if came.revision >= revision {
			return came.at, true
		}
	}
	return time.Time{}, false
}

// operate makes n requests and waits until the provider shows their results.
func (b *bench) operate(a *arrivals, n int, result func(i int) (string, int), pace time.Duration, request func(i int)) Operation {
	from, start := b.mark(), time.Now()
	begun := make([]time.Time, n)
	if pace > 0 {
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		for i := range n {
			<-ticker.C
			begun[i] = time.Now()
			request(i)
		}
	} else {
		b.parallel(n, func(i int) {
			begun[i] = time.Now()
			request(i)
		})
	}
	var last time.Time
	latency := make([]float64, n)
	deadline := time.Now().Add(objectTimeout)
	for i := range n {
		name, revision := result(i)
		at, seen := a.at(name, revision)
		for ; !seen; at, seen = a.at(name, revision) {
			if time.Now().After(deadline) {
				b.w.Fatalf("waited %s for revision %d of %s at the provider", objectTimeout, revision, name)
			}
			b.w.pause(5 * time.Millisecond)
		}
		latency[i] = at.Sub(begun[i]).Seconds()
		if at.After(last) {
			last = at
		}
	}
	op := Operation{Latency: quantiles(latency), Rate: round(float64(n) / last.Sub(start).Seconds())}
	b.still(2, 10)
	requests := b.since(from)
	write := func(cluster string) float64 {
		return round(float64(requests.sum(func(k kind) bool { return k.write() && k.ofLiqo() && k.Cluster == cluster })) / float64(n))
	}
	op.HomeWrites, op.AwayWrites, op.Requests = write("rome"), write("milan"), requests.rows(n, counts)
	return op
}

// objects measures the kinds with each count.
func (b *bench) objects(counts []int) {
	plain := fixture.Unique("direct")
	b.createNamespace(b.env.Rome, plain)
	b.createNamespace(b.env.Milan, plain)
	for _, k := range reflected {
		known, supported := reflection.Lookup(k.name)
		if !supported {
			b.report.skip("reflection of "+k.resource, "this version of Liqo does not reflect them yet")
			continue
		}
		for _, count := range counts {
			for range b.options.rounds {
				for _, side := range []struct {
					system, namespace string
					written           []*fixture.Cluster
				}{{floorName, plain, []*fixture.Cluster{b.env.Rome, b.env.Milan}}, {liqo, b.systems[2].namespace, []*fixture.Cluster{b.env.Rome}}} {
					result := Objects{Kind: k.name, Count: count, System: side.system, Operations: map[string]Operation{}}
					if side.system == liqo && count >= 1000 {
						b.profile(fmt.Sprintf("objects-%s-%d", k.name, count), "profile?seconds=8")
					}
					b.measure(&result, func() { b.crud(result.Operations, known.GVR, side.written, side.namespace, count, k.make) })
					c := result.Operations["create"]
					b.w.Logf("%s: %d %s created, %.0f/s, p50 %.1f ms, %.2f writes at the provider each", side.system, count, k.resource, c.Rate, c.Latency.P50, c.AwayWrites)
				}
			}
		}
	}
}

// measure has the operations that were finished in the report, also if one after them fails.
func (b *bench) measure(result *Objects, operate func()) {
	before := b.readLoad()
	defer func() {
		if len(result.Operations) > 0 {
			result.Load = b.readLoad().since(before)
			b.report.Objects = append(b.report.Objects, *result)
			b.save()
		}
	}()
	operate()
}

// crud creates, updates and deletes objects, in one cluster after the other. A lone one is updated many times at a slow pace
// instead of once.
func (b *bench) crud(out map[string]Operation, gvr schema.GroupVersionResource, written []*fixture.Cluster, namespace string, count int, build func(metav1.ObjectMeta, int) client.Object) {
	a := b.watchArrivals(gvr, namespace)
	defer close(a.stop)
	prefix := fixture.Unique("object")
	name := func(i int) string { return fmt.Sprintf("%s-%d", prefix, i) }
	object := func(i int) client.Object {
		return build(metav1.ObjectMeta{Namespace: namespace, Name: name(i), Labels: map[string]string{revisionLabel: "0"}}, i)
	}
	each := func(doing string, request func(client.Client) error) {
		for _, c := range written {
			fixture.Must(b.w, doing, request(c.Client))
		}
	}
	patch := func(i, revision int) {
		change := fmt.Sprintf(`{"metadata":{"labels":{%q:%q},"annotations":{"bench.liqo.io/content":%q}}}`, revisionLabel, strconv.Itoa(revision), strconv.Itoa(revision))
		each("changing an object", func(c client.Client) error {
			return c.Patch(b.w.ctx, object(i), client.RawPatch(types.MergePatchType, []byte(change)))
		})
	}
	out["create"] = b.operate(a, count, func(i int) (string, int) { return name(i), 0 }, 0, func(i int) {
		each("creating an object", func(c client.Client) error { return c.Create(b.w.ctx, object(i)) })
	})
	if count == 1 {
		out["update"] = b.operate(a, b.options.updates, func(i int) (string, int) { return name(0), i + 1 }, updateEvery, func(i int) { patch(0, i+1) })
	} else {
		out["update"] = b.operate(a, count, func(i int) (string, int) { return name(i), 1 }, 0, func(i int) { patch(i, 1) })
	}
	out["delete"] = b.operate(a, count, func(i int) (string, int) { return name(i), deleted }, 0, func(i int) {
		each("deleting an object", func(c client.Client) error { return c.Delete(b.w.ctx, object(i)) })
	})
}

// Endpoints is how long a Service with endpoints takes to be whole at the provider.
type Endpoints struct {
	Endpoints int     `json:"endpoints"`
	Seconds   float64 `json:"seconds"`
	// Writes of Liqo in both clusters.
	HomeWrites int `json:"homeWrites"`
	AwayWrites int `json:"awayWrites"`
	// Requests of everybody for the Service and all its endpoints.
	Requests []Request `json:"requests"`
}

// endpoints reflects a Service whose EndpointSlices are made by hand, so that their own controller is not measured.
func (b *bench) endpoints(counts []int) {
	_, services := reflection.Lookup("service")
	_, slices := reflection.Lookup("endpointslice")
	if !services || !slices {
		b.report.skip("endpoints", "this version of Liqo does not reflect EndpointSlices yet")
		return
	}
	for _, count := range counts {
		for range b.options.rounds {
			result := b.service(count)
			b.w.Logf("a Service with %d endpoints is whole at the provider after %.3f s; %d + %d writes", count, result.Seconds, result.HomeWrites, result.AwayWrites)
		}
	}
}

func (b *bench) service(count int) Endpoints {
	namespace, name := b.systems[2].namespace, fixture.Unique("service")
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{revisionLabel: "0"}}
	a := b.watchArrivals(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), namespace)
	defer close(a.stop)
	from, start := b.mark(), time.Now()
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}}
	fixture.Must(b.w, "creating a Service", b.env.Rome.Client.Create(b.w.ctx, service))
	n := (count + perSlice - 1) / perSlice
	made := make([]client.Object, n)
	b.parallel(n, func(i int) {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: *meta.DeepCopy(), AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](80)}}}
		slice.Name = fmt.Sprintf("%s-%d", name, i)
		slice.Labels[discoveryv1.LabelServiceName] = name
		for e := range min(perSlice, count-i*perSlice) {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.10.%d.%d", i, e+1)},
				NodeName: ptr.To("rome-sim-1"), Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
		}
		made[i] = slice
		fixture.Must(b.w, "creating an EndpointSlice", b.env.Rome.Client.Create(b.w.ctx, slice))
	})
	arrived := func() (last time.Time, whole bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		whole = true
		for _, slice := range made {
			came := a.seen[slice.GetName()]
			if len(came) == 0 {
				whole = false
			} else if at := came[0].at; at.After(last) {
				last = at
			}
		}
		return last, whole
	}
	deadline := time.Now().Add(objectTimeout)
	last, whole := arrived()
	for ; !whole; last, whole = arrived() {
		if time.Now().After(deadline) {
			b.w.Fatalf("waited %s for %d EndpointSlices at the provider: they are not all there", objectTimeout, n)
		}
		b.w.pause(5 * time.Millisecond)
	}
	b.settle(10)
	requests := b.since(from)
	writes := func(cluster string) int {
		return requests.sum(func(k kind) bool { return k.write() && k.ofLiqo() && k.Cluster == cluster })
	}
	result := Endpoints{Endpoints: count, Seconds: round(last.Sub(start).Seconds()), HomeWrites: writes("rome"), AwayWrites: writes("milan"), Requests: requests.rows(1, counts)}
	b.report.Endpoints = append(b.report.Endpoints, result)
	b.save()
	fixture.Must(b.w, "deleting the Service", b.env.Rome.Client.Delete(b.w.ctx, service))
	for _, slice := range made {
		fixture.Must(b.w, "deleting an EndpointSlice", client.IgnoreNotFound(b.env.Rome.Client.Delete(b.w.ctx, slice)))
	}
	b.settle(10) // The end of this Service is no part of the next one.
	return result
}
