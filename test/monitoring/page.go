package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Sections of docs/metrics.md with a table of metrics.
const (
	Both              = "Both processes"
	ControllerManager = "Controller manager"
	VirtualKubelets   = "Virtual kubelets"
	NetworkAgents     = "Network agents"
	Libraries         = "Libraries"
)

// nodeLabel is what metrics of both processes have besides if they are a virtual kubelet's.
const nodeLabel = "node_name"

// Metric is one row of a table.
type Metric struct {
	Name, Type string
	Labels     []string
}

var (
	code     = regexp.MustCompile("`([a-zA-Z0-9_]+)`")
	fqName   = regexp.MustCompile(`fqName: "([^"]*)"`)
	constant = regexp.MustCompile(`constLabels: \{([^}]*)\}`)
	variable = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)
)

// Page reads the tables of docs/metrics.md, by section; root is the way to the repository's root.
func Page(t testing.TB, root string) map[string][]Metric {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string][]Metric{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		for line := range strings.Lines(body) {
			cells := strings.Split(line, "|")
			if len(cells) < 6 || !strings.HasPrefix(line, "| `") {
				continue
			}
			m := Metric{Name: code.FindStringSubmatch(cells[1])[1], Type: strings.TrimSpace(cells[2])}
			for _, label := range code.FindAllStringSubmatch(cells[3], -1) {
				m.Labels = append(m.Labels, label[1])
			}
			sections[title] = append(sections[title], m)
		}
	}
	for _, title := range []string{Both, ControllerManager, VirtualKubelets, NetworkAgents, Libraries} {
		if len(sections[title]) == 0 {
			t.Fatalf("docs/metrics.md has no table in section %q", title)
		}
	}
	return sections
}

// Of are the labels, in order, of each metric that the page says a process of ours registers, by name.
func Of(t testing.TB, root, process string) map[string][]string {
	t.Helper()
	page, want := Page(t, root), map[string][]string{}
	for _, section := range []string{Both, process} {
		for _, m := range page[section] {
			labels := slices.Clone(m.Labels)
			if section == Both && process == VirtualKubelets {
				labels = append(labels, nodeLabel)
			}
			slices.Sort(labels)
			want[m.Name] = append([]string{}, labels...)
		}
	}
	return want
}

// Registry is a registry that remembers what was registered, used or not.
type Registry struct {
	*prometheus.Registry

	mu     sync.Mutex
	labels map[string][]string
}

// NewRegistry makes an empty one that checks what it is given.
func NewRegistry() *Registry {
	return &Registry{Registry: prometheus.NewPedanticRegistry(), labels: map[string][]string{}}
}

// Register implements prometheus.Registerer.
func (r *Registry) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for desc := range descs {
		r.remember(desc.String())
	}
	return r.Registry.Register(c)
}

// MustRegister implements prometheus.Registerer.
func (r *Registry) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// remember notes the labels of a metric, which only its text tells.
func (r *Registry) remember(desc string) {
	labels := []string{}
	for pair := range strings.SplitSeq(constant.FindStringSubmatch(desc)[1], ",") {
		if name, _, ok := strings.Cut(pair, "="); ok {
			labels = append(labels, name)
		}
	}
	for name := range strings.SplitSeq(variable.FindStringSubmatch(desc)[1], ",") {
		if name != "" {
			labels = append(labels, name)
		}
	}
	slices.Sort(labels)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.labels[fqName.FindStringSubmatch(desc)[1]] = labels
}

// Registered are the labels of each metric that was registered, by name.
func (r *Registry) Registered() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.labels
}
