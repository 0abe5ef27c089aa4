package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func node(name, zone string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
	for _, address := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Address: address})
	}
	return n
}

// passed names the events that a predicate passes, of an object that becomes another one.
func passed(p predicate.Predicate, before, after client.Object) (all []string) {
	for name, is := range map[string]bool{
		"create": p.Create(event.CreateEvent{Object: after}), "update": p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}),
		"delete": p.Delete(event.DeleteEvent{Object: after}), "generic": p.Generic(event.GenericEvent{Object: after}),
	} {
		if is {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func TestPredicates(t *testing.T) {
	north := Where(func(n *corev1.Node) bool { return n.Labels["zone"] == "north" })
	moved := Changed(func(n *corev1.Node) any { return n.Status.Addresses })
	both := Changed(func(n *corev1.Node) any { return []any{n.DeletionTimestamp.IsZero(), n.Labels} })
	within := Changed(func(n *corev1.Node) any {
		if n.Labels["zone"] == "" {
			return nil
		}
		return n.Status.Addresses
	})
	all, others := []string{"create", "delete", "generic", "update"}, []string{"create", "delete", "generic"}
	empty := node("a", "north")
	empty.Status.Addresses = []corev1.NodeAddress{}
	for name, tc := range map[string]struct {
		predicate     predicate.Predicate
		before, after client.Object
		want          []string
	}{
		"where: it is so":                  {north, node("a", "south"), node("a", "north"), all},
		"where: it is so no more":          {north, node("a", "north"), node("a", "south"), nil},
		"where: of another kind":           {north, &corev1.Pod{}, &corev1.Pod{}, nil},
		"labelled":                         {Labelled("zone", "north"), node("a", ""), node("a", "north"), all},
		"labelled with another value":      {Labelled("zone", "north"), node("a", "north"), node("a", "south"), nil},
		"changed: something else":          {moved, node("a", "north", "192.0.2.1"), node("a", "south", "192.0.2.1"), others},
		"changed: it differs":              {moved, node("a", "north", "192.0.2.1"), node("a", "north", "192.0.2.2"), all},
		"changed: in another order":        {moved, node("a", "north", "192.0.2.1", "192.0.2.2"), node("a", "north", "192.0.2.2", "192.0.2.1"), all},
		"changed: nothing and none":        {moved, node("a", "north"), empty, others},
		"changed: one of several":          {both, node("a", "north"), node("a", "south"), all},
		"changed: none of several":         {both, node("a", "north", "192.0.2.1"), node("a", "north"), others},
		"changed: of another kind":         {moved, &corev1.Pod{}, &corev1.Pod{}, nil},
		"changed: from another kind":       {moved, &corev1.Pod{}, node("a", "north"), others},
		"changed: as good as none":         {within, node("a", "", "192.0.2.1"), node("a", "", "192.0.2.2"), nil},
		"changed: it is there now":         {within, node("a", ""), node("a", "north"), all},
		"changed: it is as good as gone":   {within, node("a", "north"), node("a", ""), []string{"update"}},
		"changed: it is there as before":   {within, node("a", "north"), node("a", "south"), others},
		"later":                            {Later, node("a", ""), node("a", ""), []string{"delete", "generic", "update"}},
		"later: what differs":              {predicate.And(Later, moved), node("a", ""), node("a", "", "192.0.2.1"), []string{"delete", "generic", "update"}},
		"later: what does not differ":      {predicate.And(Later, moved), node("a", ""), node("a", ""), []string{"delete", "generic"}},
		"changed: labels, of objects only": {Changed(func(o client.Object) any { return o.GetLabels() }), &corev1.Pod{}, node("a", "north"), all},
	} {
		if diff := cmp.Diff(tc.want, passed(tc.predicate, tc.before, tc.after)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// asked are the requests that a handler makes when an object comes.
func asked(ctx context.Context, h handler.EventHandler, o client.Object) (all []string) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Second, time.Second))
	defer queue.ShutDown()
	h.Create(ctx, event.CreateEvent{Object: o}, queue)
	for queue.Len() > 0 {
		request, _ := queue.Get()
		all = append(all, request.String())
	}
	slices.Sort(all)
	return all
}

func TestHandlers(t *testing.T) {
	pod := func(namespace, name, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"of": node}}, Spec: corev1.PodSpec{NodeName: node}}
	}
	reader := fake.NewClientBuilder().WithObjects(pod("x", "a", "n"), pod("x", "b", "m"), pod("y", "a", "n"), pod("y", "c", "")).Build()
	pods := &corev1.PodList{}
	meta := &metav1.PartialObjectMetadataList{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	host := One(func(p *corev1.Pod) client.ObjectKey { return client.ObjectKey{Name: p.Spec.NodeName} })
	running := Each(reader, pods, func(n *corev1.Node) []client.ListOption {
		return []client.ListOption{If(func(p *corev1.Pod) bool { return p.Spec.NodeName == n.Name })}
	})
	inside := Each(reader, pods, func(n *corev1.Namespace) []client.ListOption {
		if n.Name == "z" {
			return nil
		}
		return []client.ListOption{client.InNamespace(n.Name), client.MatchingLabels{"of": "n"}}
	})
	two := All(reader, pods, If(func(p *corev1.Pod) bool { return p.Name == "a" }), If(func(p *corev1.Pod) bool { return p.Namespace == "y" }))
	namespace := func(name string) client.Object { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for name, tc := range map[string]struct {
		handler handler.EventHandler
		of      client.Object
		want    []string
	}{
		"the node of a pod":                {host, pod("x", "a", "n"), []string{"/n"}},
		"a pod without a node":             {host, pod("x", "a", ""), nil},
		"the node of what is no pod":       {host, node("n", ""), nil},
		"the pods of a node":               {running, node("n", ""), []string{"x/a", "y/a"}},
		"those of a node without pods":     {running, node("o", ""), nil},
		"those of what is no node":         {running, pod("x", "a", "n"), nil},
		"some of a namespace":              {inside, namespace("x"), []string{"x/a"}},
		"none are asked for":               {inside, namespace("z"), nil},
		"all":                              {All(reader, pods), node("n", ""), []string{"x/a", "x/b", "y/a", "y/c"}},
		"all that two conditions are of":   {two, node("n", ""), []string{"y/a"}},
		"conditions of another kind":       {All(reader, pods, If(func(*corev1.Node) bool { return true })), node("n", ""), nil},
		"all, of whom metadata are listed": {All(reader, meta, client.InNamespace("y")), node("n", ""), []string{"y/a", "y/c"}},
	} {
		if diff := cmp.Diff(tc.want, asked(t.Context(), tc.handler, tc.of)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(pods.Items) > 0 || len(meta.Items) > 0 {
		t.Error("the list that says what to list was filled, which others use at the same time")
	}
}

// broken is a reader that lists nothing.
type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("out of order")
}

func TestAListThatFailsIsLogged(t *testing.T) {
	var said strings.Builder
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, line string) { said.WriteString(line) }, funcr.Options{}))
	if found := Requests(ctx, broken{}, &corev1.PodList{}); found != nil {
		t.Errorf("there are requests: %v", found)
	}
	if !strings.Contains(said.String(), "out of order") || !strings.Contains(said.String(), "PodList") {
		t.Errorf("the log says %q", said.String())
	}
}
