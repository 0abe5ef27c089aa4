package mirror

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// step is one thing that happens to a world.
type step struct {
	What, Name, Value string
}

var happenings = []string{
	"put", "put", "put", "drop", "skip", "recreate", "spoil", "vandal", "foreign", "cut", "mend", "restart", "stop", "lies", "truth",
	"unmap", "map", "off", "on", "publish", "publish", "wait", "flaky", "steady", "localdown", "localup", "credentials",
}

func stepGenerator() *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		return step{
			What:  rapid.SampledFrom(happenings).Draw(t, "what"),
			Name:  rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
			Value: rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "value"),
		}
	})
}

// chaos is a world with its law: what may be deleted at the provider, judged by the truth at home.
type chaos struct {
	*world
	kind    string
	broken  []string
	foreign map[string]reflection.Object
	flaky   int
	calls   int
	running bool
}

func (c *chaos) object(name, value string) reflection.Object { return both(name, value)[c.kind] }

// stumble is called for each call at the provider before it has an effect.
func (c *chaos) stumble(string, string) error {
	c.calls++
	if c.flaky > 0 && c.calls%c.flaky == 0 {
		return errors.New("flaky")
	}
	return nil
}

// judge is called for each object that is deleted at the provider.
func (c *chaos) judge(key string, remote reflection.Object) {
	c.local.mu.Lock()
	local := c.local.objects[strings.Replace(key, there, here, 1)]
	c.local.mu.Unlock()
	_, skipped := map[bool]map[string]string{true: {}, false: annotationsOf(local)}[local == nil][offloadingv1beta1.SkipReflectionAnnotation]
	switch {
	case reflection.OriginUID(remote) == "":
		c.broken = append(c.broken, "deletes foreign "+key)
	case local != nil && !skipped && string(local.GetUID()) == reflection.OriginUID(remote):
		c.broken = append(c.broken, "deletes "+key+", which is alive at home")
	}
}

func annotationsOf(o reflection.Object) map[string]string {
	if o == nil {
		return nil
	}
	return o.GetAnnotations()
}

func (c *chaos) do(s step) {
	o := c.object(s.Name, s.Value)
	switch s.What {
	case "put":
		c.local.put(o)
	case "drop":
		c.local.drop(o)
	case "skip":
		o.SetAnnotations(map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""})
		c.local.put(o)
	case "recreate":
		c.local.drop(o)
		c.local.put(o)
	case "spoil":
		if found := c.remote.find(at(o)); found != nil && c.foreign[s.Name] == nil {
			spoiled := at(o)
			spoiled.SetLabels(found.GetLabels())
			spoiled.SetAnnotations(found.GetAnnotations())
			c.remote.put(spoiled)
		}
	case "vandal":
		if c.foreign[s.Name] == nil {
			c.remote.drop(at(o))
		}
	case "foreign":
		if c.remote.find(at(o)) == nil {
			c.foreign[s.Name] = c.remote.put(at(c.object(s.Name, "foreign")))
		}
	case "cut":
		c.cut()
	case "mend":
		c.mend()
	case "lies", "truth":
		c.local.lies.Store(s.What == "lies")
	case "unmap":
		c.setMapping(nil)
	case "map":
		c.setMapping(map[string]string{here: there})
	case "off":
		c.setConfig(c.kind, offloadingv1beta1.ReflectorConfig{})
	case "on":
		c.setConfig(c.kind, offloadingv1beta1.ReflectorConfig{NumWorkers: 2})
	case "publish":
		c.publish()
	case "wait":
		c.pass(20 * time.Second)
	case "flaky":
		c.set(func() { c.flaky = 2 })
	case "steady":
		c.set(func() { c.flaky = 0 })
	case "localdown":
		c.local.setDown(errors.New("down"))
	case "localup":
		c.local.setDown(nil)
	case "credentials":
		c.peer.set(func(p *fakePeer) { p.epoch++ })
	case "stop":
		c.stop()
		c.running = false
	case "restart":
		c.stop()
		c.start()
		c.running = true
	}
	c.rest()
}

func (c *chaos) set(f func()) {
	c.remote.mu.Lock()
	defer c.remote.mu.Unlock()
	f()
}

// heal ends all trouble and gives everybody time.
func (c *chaos) heal() {
	c.set(func() { c.flaky = 0 })
	for _, what := range []string{"truth", "localup", "mend"} {
		c.do(step{What: what, Name: "a"})
	}
	if !c.running {
		c.start()
	}
	for _, what := range []string{"on", "map", "publish"} {
		c.do(step{What: what, Name: "a"})
	}
	for range 8 {
		c.pass(time.Minute)
		c.publish()
	}
	// A home whose lists lied keeps a wrong cache until the watch is renewed.
	c.do(step{What: "restart", Name: "a"})
	for range 4 {
		c.pass(time.Minute)
		c.publish()
	}
}

// verdict compares both sides.
func (c *chaos) verdict() error {
	for _, name := range []string{"a", "b", "c"} {
		o := c.object(name, "")
		local, want := c.local.find(o), ""
		if local != nil {
			if _, skipped := local.GetAnnotations()[offloadingv1beta1.SkipReflectionAnnotation]; !skipped {
				want = value(local)
			}
		}
		if foreign := c.foreign[name]; foreign != nil {
			if found := c.remote.find(foreign); found == nil || found.GetResourceVersion() != foreign.GetResourceVersion() {
				return fmt.Errorf("foreign object %s was touched", name)
			}
			continue
		}
		if got := c.value(o); got != want {
			return fmt.Errorf("%s is %q at the provider, want %q", name, got, want)
		}
	}
	c.remote.took(true)
	c.pass(time.Hour)
	if writes := c.remote.took(false); len(writes) > 0 && len(c.foreign) == 0 {
		return fmt.Errorf("writes at rest: %v", writes)
	}
	if len(c.broken) > 0 {
		return fmt.Errorf("%s", strings.Join(c.broken, "; "))
	}
	return nil
}

func value(o reflection.Object) string {
	switch o := o.(type) {
	case *corev1.ConfigMap:
		return o.Data["key"]
	case *corev1.Secret:
		return string(o.Data["key"])
	default:
		return ""
	}
}

// TestWhateverHappens checks that whatever happens nothing is deleted without positive knowledge, no foreign object is
// touched, and everything is in step, at rest, once the trouble is over.
func TestWhateverHappens(t *testing.T) {
	for kind := range maps.Keys(both("", "")) {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				script := rapid.SliceOfN(stepGenerator(), 1, 40).Draw(rt, "script")
				var err error
				synctest.Test(t, func(t *testing.T) {
					c := &chaos{world: newWorld(t), kind: kind, foreign: map[string]reflection.Object{}, running: true}
					c.remote.intercept, c.remote.deleting = c.stumble, c.judge
					c.start()
					defer func() { c.stop() }()
					for _, s := range script {
						c.do(s)
					}
					c.heal()
					err = c.verdict()
				})
				if err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}
