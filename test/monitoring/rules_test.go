package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const root = "../.."

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// query is what is asked of Prometheus somewhere.
type query struct{ where, expr string }

// alerts are the queries of the alert rules, as Prometheus' own parser of rule files takes them.
func alerts(t *testing.T) []query {
	t.Helper()
	var manifest struct {
		APIVersion, Kind string
		Spec             map[string]any
	}
	if err := yaml.Unmarshal(read(t, "deployments", "monitoring", "liqo-alerts.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.APIVersion != "monitoring.coreos.com/v1" || manifest.Kind != "PrometheusRule" {
		t.Errorf("the alert rules are a %s %s", manifest.APIVersion, manifest.Kind)
	}
	rules, err := yaml.Marshal(manifest.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(rules, false, model.UTF8Validation)
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.Fatal("there are no alert rules")
	}
	var all []query
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			all = append(all, query{"alert " + rule.Alert, rule.Expr})
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || !slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]) {
				t.Errorf("alert %s needs a summary, a description and a severity", rule.Alert)
			}
		}
	}
	return all
}

type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ H, W, X, Y int }
	Targets []struct{ Expr string }
}

// dashboard is the queries of the dashboard, with Grafana's variables filled in.
func dashboard(t *testing.T) []query {
	t.Helper()
	var board struct {
		Panels     []panel
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(read(t, "deployments", "monitoring", "liqo-dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "5m", "$cluster", ".*")
	var all []query
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d (%s) has no ID of its own, no title, or no place", p.ID, p.Title)
		}
		ids[p.ID] = true
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %s is a %s with %d queries", p.Title, p.Type, len(p.Targets))
		}
		for _, target := range p.Targets {
			all = append(all, query{"panel " + p.Title, fill.Replace(target.Expr)})
		}
	}
	values := regexp.MustCompile(`^label_values\((\w+), \w+\)$`)
	for _, v := range board.Templating.List {
		if found := values.FindStringSubmatch(v.Definition); found != nil {
			all = append(all, query{"variable " + v.Name, found[1]})
		}
	}
	return all
}

// examples are the queries that the page shows.
func examples(t *testing.T) []query {
	t.Helper()
	var all []query
	for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllSubmatch(read(t, "docs", "metrics.md"), -1) {
		all = append(all, query{"docs/metrics.md", string(block[1])})
	}
	return all
}

// names are the metrics that a query asks for, as they are registered.
func names(t *testing.T, q query) []string {
	t.Helper()
	expr, err := parser.ParseExpr(q.expr)
	if err != nil {
		t.Errorf("%s: %s: %v", q.where, q.expr, err)
		return nil
	}
	var all []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			all = append(all, strings.TrimSuffix(selector.Name, "_bucket"))
		}
		return nil
	})
	if len(all) == 0 {
		t.Errorf("%s asks for no metric: %s", q.where, q.expr)
	}
	return all
}

// Alerts, dashboard and examples ask for metrics that there are; the tests of the processes say which there are.
func TestQueriesAskForMetricsOfThePage(t *testing.T) {
	known := map[string]bool{}
	for _, section := range Page(t, root) {
		for _, m := range section {
			if known[m.Name] {
				t.Errorf("docs/metrics.md has %s twice", m.Name)
			}
			known[m.Name] = true
		}
	}
	asked := map[string]bool{}
	for source, queries := range map[string][]query{"alert rules": alerts(t), "dashboard": dashboard(t), "examples": examples(t)} {
		if len(queries) < 5 {
			t.Errorf("the %s hold %d queries; were they understood?", source, len(queries))
		}
		for _, q := range queries {
			for _, name := range names(t, q) {
				asked[name] = true
				if !known[name] {
					t.Errorf("%s asks for %s, which docs/metrics.md does not have", q.where, name)
				}
			}
		}
	}
	// What the page promises to answer is on a screen or in an alert.
	for _, m := range slices.Concat(Page(t, root)[Both], Page(t, root)[ControllerManager], Page(t, root)[NetworkAgents]) {
		if !asked[m.Name] {
			t.Errorf("nobody asks for %s: neither an alert rule nor the dashboard", m.Name)
		}
	}
}

func TestTypesAreThoseOfPrometheus(t *testing.T) {
	for title, section := range Page(t, root) {
		for _, m := range section {
			if !slices.Contains([]string{"gauge", "counter", "histogram"}, m.Type) {
				t.Errorf("%s: %s is a %q", title, m.Name, m.Type)
			}
		}
	}
}
