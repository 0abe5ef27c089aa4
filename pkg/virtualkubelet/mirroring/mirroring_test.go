package mirroring

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
	"liqo.io/liqo/test/fakeapi"
)

// stage is where engines run: it knows which do.
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

// actor is an engine that does nothing but be there.
type actor struct {
	stage    *stage
	name     string
	mapping  map[string]string
	provider reflection.Provider
}

func (a *actor) Run(ctx context.Context) error {
	a.stage.mu.Lock()
	a.stage.running = append(a.stage.running, a.name)
	a.stage.most = max(a.stage.most, len(a.stage.running))
	a.stage.mu.Unlock()
	<-ctx.Done()
	a.stage.ends(a.name)
	return nil
}
func (a *actor) SetMapping(m map[string]string)                     { a.mapping = m }
func (a *actor) SetNotReflected(_ reflection.NotReflected)          {}
func (a *actor) SetProvider(provider reflection.Provider)           { a.provider = provider }
func (a *actor) Reflected(_, _, _ string) (reflection.Object, bool) { return nil, false }
func (a *actor) RefreshNamespaces()                                 {}
func (a *actor) Crossed(string) bool                                { return false }
func (a *actor) Reconsider(_, _ string, _ ...string) error          { return nil }
func (a *actor) SetConfig(_ string, _ offloadingv1beta1.ReflectorConfig) error {
	return nil
}

func virtualNodes(names ...string) (all []*offloadingv1beta1.VirtualNode) {
	for _, name := range names {
		all = append(all, &offloadingv1beta1.VirtualNode{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: corev1beta1.ClusterID("milan")},
		})
	}
	return all
}

// counterpart is the reflection of one virtual node, with its own connection to the shared API server.
type counterpart struct {
	*Reflection
	last *actor
	// leading is what it was told last about leading, and terms how often that it leads.
	leading bool
	terms   int
	// cut makes its calls fail, as those of a process that hangs or was killed.
	cut  func()
	stop func()
	// networked is closed once the networks are known.
	networked chan struct{}
}

func (s *stage) start(t *testing.T, tracker clienttesting.ObjectTracker, name string) *counterpart {
	c := &fake.Clientset{}
	fakeapi.React(&c.Fake, "*", "*", clienttesting.ObjectReaction(tracker))
	var mu sync.Mutex
	dead := false
	fakeapi.React(&c.Fake, "*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if dead {
			return true, nil, errors.New("the connection is gone")
		}
		return false, nil, nil
	})
	r := &counterpart{networked: make(chan struct{}), cut: func() {
		mu.Lock()
		defer mu.Unlock()
		dead = true
	}}
	r.Reflection = New(Options{
		Client: c, Siblings: &script{}, Namespace: "liqo-tenant-milan", Node: name, Provider: "milan", Networked: r.networked,
		Build: func() (Engine, error) {
			r.last = &actor{stage: s, name: name}
			return r.last, nil
		},
		Leads: func(leads bool) {
			if r.leading = leads; leads {
				r.terms++
			}
		},
	}, settings.Settings{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	r.stop = func() {
		cancel()
		<-done
	}
	return r
}

// C16: of two virtual nodes of one provider one reflects at a time; when it dies the other one takes over.
func TestC16OneVirtualNodeOfAProviderReflects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := fake.NewClientset().Tracker()
		s := &stage{}
		running := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, s.now(), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s: %s", what, diff)
			}
		}
		first := s.start(t, tracker, "milan")
		defer func() { first.stop() }()
		running("nothing is known yet")
		first.SetVirtualNodes(virtualNodes("milan"))
		first.SetMapping(map[string]string{"demo": "demo-rome"})
		running("the networks are not known yet")
		close(first.networked)
		running("the only one", "milan")
		time.Sleep(time.Hour)
		if _, err := tracker.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "liqo-tenant-milan", leaseOf("milan")); !apierrors.IsNotFound(err) {
			t.Errorf("the only one took a lease: %v", err)
		}

		both := virtualNodes("milan", "milan-big")
		first.SetVirtualNodes(both)
		synctest.Wait()
		second := s.start(t, tracker, "milan-big")
		close(second.networked)
		defer func() { second.stop() }()
		second.SetVirtualNodes(both)
		second.SetMapping(map[string]string{"demo": "demo-rome"})
		time.Sleep(time.Hour)
		running("the first of two", "milan")
		if !first.leading || second.leading || second.terms > 0 {
			t.Errorf("the first leads: %v, the second: %v (%d times)", first.leading, second.leading, second.terms)
		}

		first.cut()
		time.Sleep(2 * time.Minute)
		running("the leader was killed", "milan-big")
		if first.leading || !second.leading {
			t.Errorf("the killed one leads: %v, the other one: %v", first.leading, second.leading)
		}
		if second.last.mapping["demo"] != "demo-rome" || !second.last.provider.Nodes["milan"] || !second.last.provider.Nodes["milan-big"] {
			t.Errorf("the new leader was told %+v", second.last)
		}
		first.stop()
		second.stop()
		running("all stopped")
		if s.most != 1 {
			t.Errorf("%d engines ran at a time", s.most)
		}
		// It is the same virtual node after a restart: it waits for nobody.
		third := s.start(t, tracker, "milan-big")
		close(third.networked)
		defer func() { third.stop() }()
		third.SetVirtualNodes(both)
		time.Sleep(time.Second)
		running("a restart", "milan-big")
	})
}

func TestProviderOf(t *testing.T) {
	all := append(virtualNodes("milan", "milan-big"), &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Name: "turin"}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "turin"},
	})
	if diff := cmp.Diff(map[string]bool{"milan": true, "milan-big": true}, providerOf(all[0], all, "milan").Nodes); diff != "" {
		t.Error(diff)
	}
	m := New(Options{Siblings: &script{}, Node: "milan", Provider: "milan"}, settings.Settings{})
	m.SetVirtualNodes(virtualNodes("turin"))
	select {
	case <-m.known:
		t.Error("something was concluded from a list without the own virtual node")
	default:
	}
}

// While a Configuration does not say how the provider is seen, ranges are called what they were before, and nothing before that was known.
func TestRangesOfTheProvider(t *testing.T) {
	m := New(Options{Siblings: &script{}, Node: "milan", Provider: "milan"}, settings.Settings{})
	mapping, err := addressing.New(addressing.Pair{Own: netip.MustParsePrefix("10.244.0.0/16"), Seen: netip.MustParsePrefix("10.61.0.0/16")})
	if err != nil {
		t.Fatal(err)
	}
	seen := translation.Peer{Known: true, Seen: []netip.Prefix{netip.MustParsePrefix("10.61.0.0/16")}, Mapping: mapping}
	for _, step := range []struct {
		what  string
		peers translation.Peers
		want  string
	}{
		{"not known yet", translation.Peers{"milan": {Known: true}}, "invalid Prefix"},
		{"seen", translation.Peers{"milan": seen}, "10.244.2.0/24"},
		{"not known for a while", translation.Peers{"milan": {Known: true}}, "10.244.2.0/24"},
		{"without a Configuration", translation.Peers{"turin": seen}, "10.61.2.0/24"},
	} {
		m.SetAddresses(step.peers, nil)
		m.SetVirtualNodes(virtualNodes("milan"))
		if got, _ := m.provider.Ranges(netip.MustParsePrefix("10.61.2.0/24")); got.String() != step.want {
			t.Errorf("%s: the range is called %s, want %s", step.what, got, step.want)
		}
	}
}
