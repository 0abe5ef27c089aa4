package namespaces

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// counting counts the reads of a reader.
type counting struct {
	client.Client
	reads int
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.reads++
	return c.Client.Get(ctx, key, object, options...)
}

func TestANamespaceIsReadWhenWhatIsKnownIsTooOld(t *testing.T) {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{"a": "1"}}}
	live, clock := &counting{Client: fake.NewClientBuilder().WithObjects(shop).Build()}, clocktesting.NewFakeClock(time.Unix(1000, 0))
	n := New(live, clock, time.Minute)
	type answer struct {
		A       string
		Changed bool
		Reads   int
	}
	ask := func(maxAge time.Duration, want answer) {
		t.Helper()
		annotations, changed, err := n.Annotations(t.Context(), "shop", maxAge)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, answer{annotations["a"], changed, live.reads}); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	ask(0, answer{"1", false, 1})
	shop.Annotations["a"] = "2"
	shop.ResourceVersion = ""
	if err := live.Update(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Hour)
	ask(0, answer{"1", false, 1})
	ask(2*time.Hour, answer{"1", false, 1})
	ask(time.Minute, answer{"2", true, 2})
	clock.Step(time.Second)
	if changed, again := n.Refresh(t.Context(), "shop"); changed || again || live.reads != 3 {
		t.Errorf("an unchanged namespace: changed %v, again %v", changed, again)
	}
	n.Forget("shop")
	reads := live.reads
	ask(0, answer{"2", false, reads + 1})
	if leaving, _ := n.Leaving(t.Context(), "shop", time.Minute); leaving {
		t.Error("a namespace that stays is leaving")
	}
	// Who only asks whether it leaves learns of another change first, and has to pass it on.
	clock.Step(time.Hour)
	if err := live.Get(t.Context(), client.ObjectKeyFromObject(shop), shop); err != nil {
		t.Fatal(err)
	}
	shop.Labels = map[string]string{"team": "b"}
	if err := live.Update(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	if leaving, changed := n.Leaving(t.Context(), "shop", time.Minute); leaving || !changed {
		t.Errorf("a namespace with another label: leaving %v, changed %v", leaving, changed)
	}
}

func TestANamespaceThatIsGoneIsNotAskedForAgain(t *testing.T) {
	n := New(fake.NewClientBuilder().Build(), clocktesting.NewFakeClock(time.Unix(1000, 0)), time.Minute)
	if _, _, err := n.Annotations(t.Context(), "shop", 0); err == nil {
		t.Error("the annotations of a namespace that is not there are known")
	}
	if changed, again := n.Refresh(t.Context(), "shop"); changed || again {
		t.Errorf("changed %v, again %v", changed, again)
	}
}
