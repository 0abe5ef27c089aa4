package mirroring

import (
	"context"
	"errors"
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

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/network"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
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

// actor is an engine that does nothing but be there, and know what is wanted.
type actor struct {
	stage  *stage
	name   string
	wanted *latest.Value[mirror.Wanted]
	told   mirror.Wanted
}

func (a *actor) Run(ctx context.Context) error {
	defer a.wanted.Follow(func(_, now mirror.Wanted) { a.told = now })()
	a.stage.mu.Lock()
	a.stage.running = append(a.stage.running, a.name)
	a.stage.most = max(a.stage.most, len(a.stage.running))
	a.stage.mu.Unlock()
	<-ctx.Done()
	a.stage.ends(a.name)
	return nil
}
func (a *actor) Reflected(_, _, _ string) (reflection.Object, bool) { return nil, false }
func (a *actor) Crossed(string) bool                                { return false }
func (a *actor) Reconsider(_, _ string, _ ...string) error          { return nil }

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
	// view and network are what this cluster says.
	view    latest.Value[settings.View]
	network latest.Value[network.View]
	// terms is how often it was told that it leads.
	terms int
	// cut makes its calls fail, as those of a process that hangs or was killed.
	cut  func()
	stop func()
}

// networked has the networks be known.
func (c *counterpart) networked() { c.network.Set(network.New(network.Options{}).View.Get()) }

func (c *counterpart) setVirtualNodes(all []*offloadingv1beta1.VirtualNode) {
	c.view.Change(func(v *settings.View) { v.VirtualNodes = all })
}

func (c *counterpart) setMapping(mapping map[string]string) {
	c.view.Change(func(v *settings.View) { v.Mapping = pod.Mapping{Known: true, Desired: mapping, Effective: mapping} })
}

// wantedOf is what the virtual node is to reflect by these.
func wantedOf(node string, view *latest.Value[settings.View], networks *latest.Value[network.View]) *latest.Value[mirror.Wanted] {
	return latest.Join(view, networks, func(v settings.View, n network.View) mirror.Wanted { return Wanted(node, "milan", v, n) })
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
	r := &counterpart{cut: func() {
		mu.Lock()
		defer mu.Unlock()
		dead = true
	}}
	wanted := wantedOf(name, &r.view, &r.network)
	r.Reflection = New(Options{
		Client: c, Siblings: &script{}, Namespace: "liqo-tenant-milan", Node: name, Provider: "milan", Network: &r.network, Wanted: wanted,
		Build: func() (Engine, error) {
			r.last = &actor{stage: s, name: name, wanted: wanted}
			return r.last, nil
		},
	})
	r.Leads.Follow(func(_, leads bool) {
		if leads {
			r.terms++
		}
	})
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
		first.setVirtualNodes(virtualNodes("milan"))
		first.setMapping(map[string]string{"demo": "demo-rome"})
		running("the networks are not known yet")
		first.networked()
		running("the only one", "milan")
		time.Sleep(time.Hour)
		if _, err := tracker.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "liqo-tenant-milan", leaseOf("milan")); !apierrors.IsNotFound(err) {
			t.Errorf("the only one took a lease: %v", err)
		}

		both := virtualNodes("milan", "milan-big")
		first.setVirtualNodes(both)
		synctest.Wait()
		second := s.start(t, tracker, "milan-big")
		second.networked()
		defer func() { second.stop() }()
		second.setVirtualNodes(both)
		second.setMapping(map[string]string{"demo": "demo-rome"})
		time.Sleep(time.Hour)
		running("the first of two", "milan")
		if !first.Leads.Get() || second.Leads.Get() || second.terms > 0 {
			t.Errorf("the first leads: %v, the second: %v (%d times)", first.Leads.Get(), second.Leads.Get(), second.terms)
		}

		first.cut()
		time.Sleep(2 * time.Minute)
		running("the leader was killed", "milan-big")
		if first.Leads.Get() || !second.Leads.Get() {
			t.Errorf("the killed one leads: %v, the other one: %v", first.Leads.Get(), second.Leads.Get())
		}
		if told := second.last.told; told.Mapping["demo"] != "demo-rome" || !told.Provider.Nodes["milan"] || !told.Provider.Nodes["milan-big"] {
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
		third.networked()
		defer func() { third.stop() }()
		third.setVirtualNodes(both)
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
	if known(Wanted("milan", "milan", settings.View{VirtualNodes: virtualNodes("turin")}, network.View{})) {
		t.Error("something was concluded from a list without the own virtual node")
	}
}
