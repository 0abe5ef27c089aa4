package mirroring

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
)

// script records what siblings and the engine are told, in order.
type script struct {
	answer
	mu    sync.Mutex
	lines []string
}

func (s *script) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// Follow implements siblings.
func (s *script) Follow(nodes, namespaces []string) { s.add("follow %v in %v", nodes, namespaces) }

// reader is an engine that records what it is told.
type reader struct {
	actor
	script *script
}

// Run implements Engine. At first it is told everything, later what differs.
func (r *reader) Run(ctx context.Context) error {
	r.script.add("runs")
	defer r.script.add("ends")
	first := true
	defer r.wanted.Follow(func(before, now mirror.Wanted) {
		if first || !maps.Equal(before.Kinds, now.Kinds) {
			for _, kind := range slices.Sorted(maps.Keys(now.Kinds)) {
				r.script.add("%s %s %d", kind, now.Kinds[kind].Type, now.Kinds[kind].NumWorkers)
			}
		}
		if first || !maps.Equal(before.Provider.Nodes, now.Provider.Nodes) {
			r.script.add("provider of %d", len(now.Provider.Nodes))
		}
		if first || !maps.Equal(before.Mapping, now.Mapping) {
			r.script.add("mapping of %d", len(now.Mapping))
		}
		first = false
	})()
	<-ctx.Done()
	return nil
}

// The pods of siblings matter only while this process reflects by the policy Referenced, and are asked for before the engine
// can ask.
func TestSiblingsAreFollowedOnlyWhileTheyMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		c := &counterpart{}
		wanted := wantedOf("milan", &c.view, &c.network)
		m := New(Options{Siblings: s, Node: "milan", Provider: "milan", Wanted: wanted, Build: func() (Engine, error) {
			return &reader{script: s, actor: actor{wanted: wanted}}, nil
		}})
		says := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if diff := cmp.Diff(want, s.lines); diff != "" {
				t.Fatalf("%s: %s", what, diff)
			}
			s.lines = nil
		}
		config := func(kind string, policy offloadingv1beta1.ReflectionType, workers int32) {
			kinds := map[string]offloadingv1beta1.ReflectorConfig{}
			maps.Copy(kinds, c.view.Get().Kinds)
			kinds[kind] = offloadingv1beta1.ReflectorConfig{Type: policy, NumWorkers: workers}
			c.view.Change(func(v *settings.View) { v.Kinds = kinds })
		}
		config("secret", offloadingv1beta1.Referenced, 3)
		c.setMapping(map[string]string{"shop": "shop"})
		says("nothing is known of others")
		c.setVirtualNodes(virtualNodes("milan", "milan-gpu"))
		says("another virtual node reflects", "follow [milan-gpu] in []")

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.reflect(ctx) }()
		says("this one reflects", "follow [milan-gpu] in [shop]", "runs", "secret Referenced 3", "provider of 2", "mapping of 1")
		config("secret", offloadingv1beta1.DenyList, 3)
		says("another policy", "follow [milan-gpu] in []", "secret DenyList 3")
		config("secret", offloadingv1beta1.Referenced, 0)
		says("the kind is off", "follow [milan-gpu] in []", "secret Referenced 0")
		config("secret", offloadingv1beta1.Referenced, 1)
		says("the kind is on", "follow [milan-gpu] in [shop]", "secret Referenced 1")
		config("service", offloadingv1beta1.AllowList, 1)
		says("another kind", "follow [milan-gpu] in [shop]", "secret Referenced 1", "service AllowList 1")
		c.setMapping(map[string]string{"shop": "shop", "bank": "bank"})
		says("a namespace is offloaded", "follow [milan-gpu] in [bank shop]", "mapping of 2")
		c.setMapping(map[string]string{"bank": "bank"})
		says("a namespace is not offloaded any more", "follow [milan-gpu] in [bank]", "mapping of 1")
		c.setVirtualNodes(virtualNodes("milan", "milan-gpu", "milan-big"))
		says("a sibling came", "follow [milan-big milan-gpu] in [bank]", "provider of 3")
		c.setVirtualNodes(virtualNodes("milan"))
		says("the siblings went", "follow [] in [bank]", "provider of 1")
		c.setVirtualNodes(virtualNodes("milan", "milan-gpu"))
		says("one came back", "follow [milan-gpu] in [bank]", "provider of 2")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		says("another one reflects again", "ends", "follow [milan-gpu] in []")
	})
}

// answer is what is known of the use of every object.
type answer struct{ used, known bool }

func (a answer) Uses(_, _, _ string) (used, known bool) { return a.used, a.known }

func TestUsesOfAllVirtualNodes(t *testing.T) {
	used, unused, unknown := answer{true, true}, answer{false, true}, answer{false, false}
	for sentence, tc := range map[string]struct {
		own      Uses
		siblings answer
		nodeless bool
		want     answer
	}{
		"nobody uses it":          {own: unused, siblings: unused, want: unused},
		"an own pod uses it":      {own: used, siblings: unused, want: used},
		"a sibling's pod uses it": {own: unused, siblings: used, want: used},
		"both use it":             {own: used, siblings: used, want: used},
		"an own pod uses it, of siblings nothing is known": {own: used, siblings: unknown, want: used},
		"no own pod uses it, of siblings nothing is known": {own: unused, siblings: unknown, want: unknown},
		"the own pods are not known, a sibling's uses it":  {own: unknown, siblings: used, want: used},
		"the own pods are not known, no sibling's uses it": {own: unknown, siblings: unused, want: unknown},
		"there is no identity as a node yet":               {siblings: unused, want: unknown},
		"there is no own Node, nobody else uses it":        {nodeless: true, siblings: unused, want: unused},
		"there is no own Node, a sibling's pod uses it":    {nodeless: true, siblings: used, want: used},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := New(Options{
				Siblings: &script{answer: tc.siblings}, Nodeless: tc.nodeless, Pods: func() Uses { return tc.own }, Wanted: &latest.Value[mirror.Wanted]{},
			})
			is, known := m.Referenced("shop", "secret", "keys")
			if got := (answer{is, known}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
