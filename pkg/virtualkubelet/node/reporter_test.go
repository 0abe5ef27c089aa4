package node

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"liqo.io/liqo/test/fakeapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench struct {
	t      *testing.T
	client *fake.Clientset
	clock  *clocktesting.FakeClock
	r      *Reporter
	stop   func()
	// renewed counts what the reporter told of renewals.
	renewed atomic.Int32
	// noDryRuns has the API server refuse dry runs.
	noDryRuns bool
}

func newBench(t *testing.T, objects ...runtime.Object) *bench {
	t.Helper()
	b := &bench{t: t, client: fake.NewClientset(objects...), clock: clocktesting.NewFakeClock(noon)}
	return b.start()
}

func (b *bench) start() *bench {
	t := b.t
	t.Helper()
	var err error
	b.r, err = New(Options{Client: b.client, Node: "milan", Address: "10.0.0.9", Port: 10250, Cluster: "milan", Clock: b.clock,
		Renewed: func() { b.renewed.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.r.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

// tell tells what this cluster says of the node.
func (b *bench) tell() {
	b.r.Facts.Change(func(f *Facts) { f.Said, f.Told = Said{Capacity: facts().Capacity}, true })
}

// connect tells that the provider answers.
func (b *bench) connect() {
	b.r.Facts.Change(func(f *Facts) {
		f.Heard, f.Connected, f.Reason, f.Message, f.Version, f.Platform = true, true, "Connected", "", "v1.36.3", "linux/amd64"
	})
}

func (b *bench) eventually(what string, ok func() bool) {
	b.t.Helper()
	if err := wait.PollUntilContextTimeout(context.Background(), 2*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) { return ok(), nil }); err != nil {
		b.t.Fatalf("waited in vain: %s; actions: %v", what, b.client.Actions())
	}
}

func (b *bench) ready() corev1.ConditionStatus {
	node, err := b.client.CoreV1().Nodes().Get(context.Background(), "milan", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

func (b *bench) writes(verb, resource string) int {
	n := 0
	for _, a := range b.client.Actions() {
		if a.Matches(verb, resource) {
			n++
		}
	}
	return n
}

func node() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", UID: "n"}} }

func TestTheNodeFollowsTheProvider(t *testing.T) {
	b := newBench(t, node())
	b.tell()
	b.connect()
	b.eventually("the node is ready", func() bool { return b.ready() == corev1.ConditionTrue })
	b.eventually("there is a lease", func() bool { return b.writes("create", "leases") == 1 })
	b.r.Facts.Change(func(f *Facts) { f.Connected, f.Reason, f.Message = false, "Unreachable", "no answer" })
	b.eventually("the node is not ready", func() bool { return b.ready() == corev1.ConditionFalse })
	renewals := b.writes("update", "leases")
	for range 5 {
		b.clock.Step(defaultInterval)
		b.eventually("the loop went round", func() bool { return b.r.Alive(b.clock.Now().Add(-time.Second)) })
	}
	if n := b.writes("update", "leases"); n != renewals {
		t.Errorf("the lease was renewed %d times while the provider was silent", n-renewals)
	}
	if told := int(b.renewed.Load()); told != 1+renewals {
		t.Errorf("%d renewals were told, and there were %d: a sign of life after this cluster lost the node", told, 1+renewals)
	}
	b.connect()
	b.eventually("the node is ready again", func() bool { return b.ready() == corev1.ConditionTrue })
}

func TestAtRestThereIsOneWritePerInterval(t *testing.T) {
	b := newBench(t, node())
	b.tell()
	b.connect()
	b.eventually("the node is ready", func() bool { return b.ready() == corev1.ConditionTrue })
	patches, gets := b.writes("patch", "nodes"), b.writes("get", "leases")
	for i := 1; i <= 5; i++ {
		b.clock.Step(defaultInterval)
		b.eventually("the lease is renewed", func() bool { return b.writes("update", "leases") == i })
	}
	if n := b.writes("patch", "nodes"); n != patches {
		t.Errorf("%d status writes at rest", n-patches)
	}
	if n := b.writes("get", "leases"); n != gets {
		t.Errorf("%d reads at rest", n-gets)
	}
}

// answersPatches has the API server answer patches of the node: it does not keep what a dry run says, and before Kubernetes 1.36 it
// drops what nodes declare.
func (b *bench) answersPatches(old bool) {
	fakeapi.React(&b.client.Fake, "patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a := action.(clienttesting.PatchActionImpl)
		patch := map[string]map[string]any{}
		if err := json.Unmarshal(a.Patch, &patch); err != nil {
			return true, nil, err
		}
		if dry := len(a.PatchOptions.DryRun) > 0; dry && b.noDryRuns {
			return true, nil, apierrors.NewBadRequest("no dry runs")
		} else if dry {
			answer := node()
			if !old {
				answer.Status.DeclaredFeatures = declared("v1.36.3")
			}
			return true, answer, nil
		}
		if old {
			delete(patch["status"], "declaredFeatures")
			delete(patch["status"], "$setElementOrder/declaredFeatures")
		}
		var err error
		if a.Patch, err = json.Marshal(patch); err != nil {
			return true, nil, err
		}
		return clienttesting.ObjectReaction(b.client.Tracker())(a)
	})
}

// patches counts the writes of the node's status, and the dry runs.
func (b *bench) patches() (writes, tries int) {
	for _, a := range b.client.Actions() {
		patch, is := a.(clienttesting.PatchActionImpl)
		switch {
		case !is || a.GetResource().Resource != "nodes":
		case len(patch.PatchOptions.DryRun) > 0:
			tries++
		default:
			writes++
		}
	}
	return writes, tries
}

// An API server that does not know what nodes declare drops it: it is not told again, over a restart neither.
func TestWhatTheAPIServerDropsIsNotReportedAgain(t *testing.T) {
	b := &bench{t: t, client: fake.NewClientset(node()), clock: clocktesting.NewFakeClock(noon)}
	b.answersPatches(true)
	b.start()
	settled := func(renewed int) (writes, tries int) {
		b.tell()
		b.connect()
		b.eventually("the node is ready", func() bool { return b.ready() == corev1.ConditionTrue })
		for i := renewed + 1; i <= renewed+5; i++ {
			b.clock.Step(defaultInterval)
			b.eventually("the lease is renewed", func() bool { return b.writes("update", "leases") >= i })
		}
		return b.patches()
	}
	if writes, tries := settled(0); writes != 1 || tries != 0 {
		t.Errorf("%d writes and %d dry runs", writes, tries)
	}
	b.stop()
	b.client.ClearActions()
	b.start()
	if writes, tries := settled(0); writes != 0 || tries != 1 {
		t.Errorf("%d writes and %d dry runs after a restart", writes, tries)
	}
}

// An API server that knows it now, or that knows no dry runs, is told.
func TestWhatTheAPIServerKeepsIsReported(t *testing.T) {
	for name, noDryRuns := range map[string]bool{"after a dry run": false, "without dry runs": true} {
		t.Run(name, func(t *testing.T) {
			known, _ := Status(&corev1.NodeStatus{}, facts(func(f *Facts) { f.NoFeatures = true }), noon)
			b := &bench{t: t, clock: clocktesting.NewFakeClock(noon), noDryRuns: noDryRuns}
			before := node()
			before.Status = *known
			b.client = fake.NewClientset(before)
			b.answersPatches(false)
			b.start()
			b.tell()
			b.connect()
			b.eventually("the node declares it", func() bool {
				got, err := b.client.CoreV1().Nodes().Get(context.Background(), "milan", metav1.GetOptions{})
				return err == nil && len(got.Status.DeclaredFeatures) == 3
			})
		})
	}
}

func TestTheNodeIsWaitedFor(t *testing.T) {
	b := newBench(t)
	b.tell()
	b.connect()
	b.eventually("the loop went round", func() bool { return b.r.Alive(noon.Add(-time.Second)) })
	if n := b.writes("create", "nodes"); n != 0 {
		t.Error("the node was made by its own kubelet")
	}
	if err := b.client.Tracker().Add(node()); err != nil {
		t.Fatal(err)
	}
	b.eventually("the node is ready", func() bool { return b.ready() == corev1.ConditionTrue })
}

func TestAFailedRenewalIsTriedAgain(t *testing.T) {
	b := &bench{t: t, client: fake.NewClientset(node()), clock: clocktesting.NewFakeClock(noon)}
	failed := make(chan struct{})
	first := true
	fakeapi.React(&b.client.Fake, "create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if first {
			first = false
			close(failed)
			return true, nil, errors.New("connection refused")
		}
		return false, nil, nil
	})
	b.start()
	b.tell()
	b.connect()
	<-failed
	b.eventually("the loop waits to try again", func() bool { return b.clock.HasWaiters() })
	b.eventually("the node is ready", func() bool { b.clock.Step(retryAfter); return b.ready() == corev1.ConditionTrue })
}

func TestMissingOptions(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no error")
	}
}
