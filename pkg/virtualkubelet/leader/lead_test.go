package leader

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"

	"liqo.io/liqo/test/fakeapi"
)

// stage is where replicas work: it knows which do.
type stage struct {
	mu      sync.Mutex
	running []string
	most    int
}

func (s *stage) now() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.running)
}

// ends takes one off the stage.
func (s *stage) ends(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(n string) bool { return n == name })
}

// shift is one replica of a node, with its own connection to the shared API server.
type shift struct {
	stop func()
	// done is closed when the replica has ended with err.
	done chan struct{}
	err  error
	// cut makes its calls fail.
	cut func()
	// writes of the Lease that it made.
	writes func() int
}

// begin runs a replica whose work takes a while to end.
func (s *stage) begin(ctx context.Context, tracker clienttesting.ObjectTracker, name string, winds time.Duration) *shift {
	c := &fake.Clientset{}
	fakeapi.React(&c.Fake, "*", "*", clienttesting.ObjectReaction(tracker))
	var mu sync.Mutex
	dead, writes := false, 0
	fakeapi.React(&c.Fake, "*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if dead {
			return true, nil, errors.New("the connection is gone")
		}
		if action.GetVerb() != "get" {
			writes++
		}
		return false, nil, nil
	})
	ctx, cancel := context.WithCancel(ctx)
	sh := &shift{stop: cancel, done: make(chan struct{}),
		cut:    func() { mu.Lock(); defer mu.Unlock(); dead = true },
		writes: func() int { mu.Lock(); defer mu.Unlock(); return writes },
	}
	terms := Terms{Duration: 2 * time.Minute, Renew: 100 * time.Second, Retry: time.Minute}
	owner := func(context.Context) (metav1.OwnerReference, error) {
		return metav1.OwnerReference{APIVersion: "offloading.liqo.io/v1beta1", Kind: "VirtualNode", Name: "milan", UID: "vn"}, nil
	}
	go func() {
		defer close(sh.done)
		sh.err = Candidate{
			Client: c, Node: "milan", Namespace: "liqo-tenant-milan", Terms: terms, Replica: name, Owner: owner, Fence: &Fence{},
		}.Lead(ctx, func(ctx context.Context) error { return s.work(ctx, name, winds) })
	}()
	return sh
}

// work is there until some time after it was told to end.
func (s *stage) work(ctx context.Context, name string, winds time.Duration) error {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, func() { time.AfterFunc(winds, cancel) })()
	s.mu.Lock()
	s.running = append(s.running, name)
	s.most = max(s.most, len(s.running))
	s.mu.Unlock()
	<-longer.Done()
	s.ends(name)
	return nil
}

// holder of the Lease, and its owners.
func holder(t *testing.T, tracker clienttesting.ObjectTracker) (string, []metav1.OwnerReference) {
	t.Helper()
	object, err := tracker.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "liqo-tenant-milan", leaseOf("milan"))
	if err != nil {
		t.Fatal(err)
	}
	lease := object.(*coordinationv1.Lease)
	return *lease.Spec.HolderIdentity, lease.OwnerReferences
}

// lookLatest is the longest time between two looks of a replica that stands by: client-go's elector waits for its retry period and up to
// JitterFactor (1.2) times that again (leaderelection's acquire calls wait.JitterUntilWithContext with both).
const lookLatest = time.Duration(float64(lookEvery) * (1 + leaderelection.JitterFactor))

// Of two virtual kubelets of one node one works at a time. The one that is told to end gives its place up when it has ended, and the
// other one takes it at once.
func TestOneReplicaWorksAtATime(t *testing.T) {
	for name, tc := range map[string]struct {
		// leave makes the first replica go.
		leave func(*shift)
		winds time.Duration
		// within is how long the node may be without a virtual kubelet. A Lease that was given back is seen with the next look. One that
		// runs out is timed from the look that saw its last renewal, and the look after that time takes it.
		within time.Duration
		err    error
	}{
		"it is told to end":                       {func(s *shift) { s.stop() }, time.Second, time.Second + lookLatest, nil},
		"its work ends slowly":                    {func(s *shift) { s.stop() }, 6 * time.Second, 6*time.Second + lookLatest, nil},
		"its work does not end":                   {func(s *shift) { s.stop() }, time.Hour, 2*time.Minute + Winding + 2*lookLatest, errNotWound},
		"it loses its connection":                 {func(s *shift) { s.cut() }, time.Second, 2*time.Minute + 2*lookLatest, errDeposed},
		"it loses its connection and ends slowly": {func(s *shift) { s.cut() }, 7 * time.Second, 2*time.Minute + 2*lookLatest, errDeposed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker, s := fake.NewClientset().Tracker(), &stage{}
				first := s.begin(t.Context(), tracker, "vk-1", tc.winds)
				time.Sleep(time.Second)
				second := s.begin(t.Context(), tracker, "vk-2", 0)
				time.Sleep(time.Hour)
				if now := s.now(); len(now) != 1 || now[0] != "vk-1" {
					t.Fatalf("these work: %v", now)
				}
				if n := first.writes(); n > 62 || second.writes() > 0 {
					t.Errorf("the active replica wrote the Lease %d times in an hour, the other one %d times", n, second.writes())
				}
				if name, owners := holder(t, tracker); name != "vk-1" || len(owners) != 1 || owners[0].UID != "vn" {
					t.Errorf("the Lease is held by %s and owned by %v", name, owners)
				}
				began := time.Now()
				tc.leave(first)
				<-first.done
				if !errors.Is(first.err, tc.err) || tc.err == nil && first.err != nil {
					t.Errorf("the first replica ended with %v, want %v", first.err, tc.err)
				}
				// A process that has ended works no more, whatever its work thinks.
				s.ends("vk-1")
				const step = 100 * time.Millisecond
				for len(s.now()) == 0 && time.Since(began) < time.Hour {
					time.Sleep(step)
				}
				if now, took := s.now(), time.Since(began); len(now) != 1 || now[0] != "vk-2" || took > tc.within+step {
					t.Errorf("after %s these work: %v", took, now)
				}
				if s.most != 1 {
					t.Errorf("%d replicas worked at a time", s.most)
				}
				second.stop()
				<-second.done
				if name, _ := holder(t, tracker); name != "" || second.err != nil {
					t.Errorf("the Lease is left to %q, error %v", name, second.err)
				}
				first.stop()
				time.Sleep(2 * time.Hour) // what was slow ends, too
			})
		})
	}
}

// A container that starts again after a crash is the active replica at once.
func TestTheSameReplicaGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, s := fake.NewClientset().Tracker(), &stage{}
		crashed := s.begin(t.Context(), tracker, "vk-1", 0)
		time.Sleep(time.Second)
		crashed.cut()
		s.ends("vk-1")
		again := s.begin(t.Context(), tracker, "vk-1", 0)
		time.Sleep(time.Second)
		if now := s.now(); len(now) != 1 {
			t.Errorf("these work: %v", now)
		}
		again.stop()
		crashed.stop()
		<-again.done
		<-crashed.done
	})
}

// Who stands by when the end comes writes nothing.
func TestAReplicaThatNeverLed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, s := fake.NewClientset().Tracker(), &stage{}
		first := s.begin(t.Context(), tracker, "vk-1", 0)
		time.Sleep(time.Second)
		second := s.begin(t.Context(), tracker, "vk-2", 0)
		time.Sleep(time.Minute)
		second.stop()
		<-second.done
		if name, _ := holder(t, tracker); name != "vk-1" || second.writes() != 0 || second.err != nil {
			t.Errorf("the Lease is %q's after %d writes, error %v", name, second.writes(), second.err)
		}
		first.stop()
		<-first.done
	})
}
