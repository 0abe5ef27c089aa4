package system

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/test/integration/fixture"
)

var env fixture.Environment

func TestMain(m *testing.M) { fixture.Main(m, &env, fixture.Options{Nodes: 3, Linked: true}) }

// world is what the tests of this package share: both controller managers, and rome peered with milan.
type world struct {
	rome, milan *fixture.Manager
	kubelet     *kubelet
	// node is the name of the VirtualNode and of its Node.
	node string
}

var (
	theWorld world
	once     sync.Once
	// broken says that the world could not be made, so that later tests do not wait for it again.
	broken = true
)

const (
	consumerNamespace = fixture.ConsumerNamespace
	providerNamespace = fixture.ProviderNamespace
)

// peered returns the world, made by the first test that asks.
func peered(t *testing.T) *world {
	t.Helper()
	env.Explain(t)
	once.Do(func() {
		theWorld.rome, theWorld.milan = env.StartManager(t, env.Rome), env.StartManager(t, env.Milan)
		theWorld.peer(t)
		broken = false
	})
	if broken {
		t.Fatal("the clusters could not be peered; the first test that failed says why")
	}
	return &theWorld
}

func (w *world) peer(t *testing.T) {
	t.Helper()
	w.kubelet = &kubelet{env.Peer(t)}
	w.node = w.kubelet.Node
	env.Milan.AwaitCounted(t, providerNamespace) // tests that count writes find none of this
}

// kubelet is the virtual kubelet in the place of its simulated pod.
type kubelet struct{ *fixture.Kubelet }

func startKubelet(t *testing.T, node string) *kubelet {
	t.Helper()
	return &kubelet{env.StartKubelet(t, node)}
}

func ready(node *corev1.Node) bool { return fixture.NodeReady(node) }
