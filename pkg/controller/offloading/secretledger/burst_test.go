package secretledger

import (
	"fmt"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// countingView counts how often everything is gathered.
type countingView struct {
	records []*record
	lists   int
}

func (v *countingView) Synced() bool { return true }

func (v *countingView) Get(string) (*record, bool) { return nil, false }

func (v *countingView) List() []*record {
	v.lists++
	return v.records
}

// burst is a reconciler of a namespace with so many Secrets, whose ledger was just written.
func burst(t testing.TB, secrets int) (*Reconciler, *countingView, *testclock.FakePassiveClock, ctrl.Request) {
	t.Helper()
	clock := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	store := &countingView{}
	for i := range secrets {
		held, is := summarize(secret(fmt.Sprintf("s-%d", i), "1"))
		if !is {
			t.Fatal("a Secret is not taken for one")
		}
		store.records = append(store.records, held)
	}
	c := fake.NewClientBuilder().WithObjects(twinNamespace()).Build()
	r := newReconciler(c, Options{Client: c, Events: &eventLog{}, Clock: clock})
	r.twins.watches[twinName] = &twin{consumer: "rome", secrets: store}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Name: twinName}}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	return r, store, clock, request
}

// While a ledger must not be written, each Secret that comes costs the same however many there are.
func TestLedgersAreNotGatheredBeforeTheyMayBeWritten(t *testing.T) {
	r, store, clock, request := burst(t, 10)
	store.lists = 0
	for range 5 {
		clock.SetTime(clock.Now().Add(coalesce / 10))
		result, err := r.Reconcile(t.Context(), request)
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > coalesce {
			t.Errorf("asked too early: %+v, %v", result, err)
		}
	}
	if store.lists != 0 {
		t.Errorf("it was gathered %d times", store.lists)
	}
	clock.SetTime(clock.Now().Add(coalesce))
	result, err := r.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter != 0 || store.lists != 1 {
		t.Errorf("asked in time: %+v, %v, gathered %d times", result, err, store.lists)
	}
}

func BenchmarkSecretInABurst(b *testing.B) {
	r, _, _, request := burst(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Reconcile(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}
