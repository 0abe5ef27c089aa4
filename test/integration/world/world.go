package world

import (
	"sync"
	"testing"

	"liqo.io/liqo/test/integration/fixture"
)

// atATime is how many tests run side by side: they wait most of the time.
const atATime = "10"

// Shared is what tests share that run side by side.
type Shared struct {
	// Rome is the consumer and Milan the provider.
	Rome, Milan *fixture.Cluster

	environment *fixture.Environment
	once        sync.Once
	peering     *Peering
	// settings are those that all tests share, as they were when the clusters were peered.
	settings map[string]string
	storage  sync.Once
}

// World is what tests have that run one after the other.
type World struct {
	Shared
	// Environment runs the clusters and our processes.
	Environment *fixture.Environment
}

// Peering is rome peered with milan.
type Peering struct {
	// Rome and Milan are the controller managers of both clusters.
	Rome, Milan *fixture.Manager
	// Kubelet is the virtual kubelet, which runs in the place of its simulated pod.
	Kubelet *fixture.Kubelet
	// Node is the name of the VirtualNode and of its Node.
	Node string
}

// commands are those that each run needs.
var commands = []string{"liqo-controller-manager", "virtual-kubelet"}

// SideBySide runs a folder of tests that all call t.Parallel; it does not return.
func SideBySide(m *testing.M, s *Shared) {
	environment := &fixture.Environment{}
	fixture.Main(m, environment, fixture.Options{Nodes: 3, Commands: commands, Parallel: atATime, Check: sideBySide,
		Before: func() { s.use(environment) }, After: s.untouched})
}

// OneByOne runs a folder of tests one after the other; it does not return. Commands that it needs besides are built at once.
func OneByOne(m *testing.M, w *World, more ...string) {
	w.Environment = &fixture.Environment{}
	fixture.Main(m, w.Environment, fixture.Options{Nodes: 3, Linked: true, Commands: append(commands, more...), Before: func() { w.use(w.Environment) }})
}

func (s *Shared) use(environment *fixture.Environment) {
	s.environment, s.Rome, s.Milan = environment, environment.Rome, environment.Milan
}

// Peered returns the name of rome's virtual node for milan. The first test that asks has the clusters peered.
func (s *Shared) Peered(t *testing.T) (node string) {
	t.Helper()
	s.environment.Explain(t)
	s.once.Do(func() {
		p := &Peering{Rome: s.environment.StartManager(t, s.Rome), Milan: s.environment.StartManager(t, s.Milan)}
		p.Kubelet = s.environment.Peer(t)
		p.Node = p.Kubelet.Node
		s.Milan.AwaitCounted(t, fixture.ProviderNamespace) // tests that count writes find none of this
		var err error
		s.settings, err = s.sharedSettings(t.Context())
		fixture.Must(t, "reading the settings that all share", err)
		s.peering = p
	})
	if s.peering == nil {
		t.Fatal("the clusters could not be peered; the first test that failed says why")
	}
	return s.peering.Node
}

// Peered returns the peering, with what runs it. The first test that asks has it made.
func (w *World) Peered(t *testing.T) *Peering {
	t.Helper()
	w.Shared.Peered(t)
	return w.peering
}
