package helm

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// small is a chart of one object.
func small(t *testing.T) *Chart {
	t.Helper()
	chart, err := Load(fstest.MapFS{
		"Chart.yaml":  {Data: []byte("apiVersion: v2\nname: small\nversion: 0.1.0\nappVersion: v1.0.0\n")},
		"values.yaml": {Data: []byte("word: default\nkept: default\n")},
		"values.schema.json": {Data: []byte(`{"type":"object","additionalProperties":false,
			"properties":{"word":{"type":"string"},"kept":{"type":"string"},"count":{"type":"integer","minimum":1},"global":{}}}`)},
		"templates/config.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {word: \"{{ required \"a word is needed\" .Values.word }}\"}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// inMemory is a client whose releases are kept in memory, and whose cluster takes everything.
func inMemory(fails *kubefake.FailingKubeClient) *client {
	printing := kubefake.PrintingKubeClient{Out: io.Discard}
	configuration := &action.Configuration{
		Releases: storage.Init(driver.NewMemory()), Capabilities: chartutil.DefaultCapabilities, KubeClient: &printing,
		Log: func(string, ...any) {},
	}
	if fails != nil {
		fails.PrintingKubeClient = printing
		configuration.KubeClient = fails
	}
	return &client{configuration: configuration, namespace: "liqo"}
}

func TestLifeOfARelease(t *testing.T) {
	c, chart := inMemory(nil), small(t)
	if found, err := c.Get(t.Context(), "liqo"); found != nil || err != nil {
		t.Fatalf("before it is installed there is %+v, %v", found, err)
	}
	if _, err := c.Upgrade(t.Context(), Request{Name: "liqo", Chart: chart}); err == nil {
		t.Error("what is not installed was upgraded")
	}
	made, err := c.Install(t.Context(), Request{Name: "liqo", Chart: chart, Values: map[string]any{"word": "first", "kept": "first"}})
	if err != nil {
		t.Fatal(err)
	}
	want := &Release{Name: "liqo", Namespace: "liqo", Revision: 1, ChartVersion: "0.1.0", AppVersion: "v1.0.0", Status: "deployed",
		Manifest: made.Manifest, Values: map[string]any{"word": "first", "kept": "first"}}
	if diff := cmp.Diff(want, made); diff != "" || !strings.Contains(made.Manifest, `word: "first"`) {
		t.Errorf("%s %s", diff, made.Manifest)
	}
	if _, err := c.Install(t.Context(), Request{Name: "liqo", Chart: chart}); err == nil {
		t.Error("it was installed twice")
	}
	// The values of the earlier revision are not kept.
	again, err := c.Upgrade(t.Context(), Request{Name: "liqo", Chart: chart, Values: map[string]any{"word": "second"}})
	if err != nil || again.Revision != 2 || !strings.Contains(again.Manifest, `word: "second"`) {
		t.Errorf("%+v, %v", again, err)
	}
	found, err := c.Get(t.Context(), "liqo")
	if diff := cmp.Diff(again, found); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	if diff := cmp.Diff(map[string]any{"word": "second"}, found.Values); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		// That it is gone already is no failure.
		if err := c.Uninstall(t.Context(), "liqo", 0); err != nil {
			t.Error(err)
		}
	}
	if found, err := c.Get(t.Context(), "liqo"); found != nil || err != nil {
		t.Errorf("after it was uninstalled there is %+v, %v", found, err)
	}
}

// An install or upgrade that was interrupted keeps nobody from the next one.
func TestInterruptedReleaseIsUpgraded(t *testing.T) {
	for _, status := range []release.Status{release.StatusPendingUpgrade, release.StatusPendingRollback, release.StatusFailed, release.StatusDeployed} {
		t.Run(string(status), func(t *testing.T) {
			c, chart := inMemory(nil), small(t)
			if _, err := c.Install(t.Context(), Request{Name: "liqo", Chart: chart}); err != nil {
				t.Fatal(err)
			}
			last, err := c.configuration.Releases.Last("liqo")
			if err != nil {
				t.Fatal(err)
			}
			cut := *last
			info := *last.Info
			cut.Info, cut.Version = &info, 2
			cut.SetStatus(status, "for the test")
			if err := c.configuration.Releases.Create(&cut); err != nil {
				t.Fatal(err)
			}
			if found, err := c.Get(t.Context(), "liqo"); err != nil || found.Pending() != status.IsPending() {
				t.Errorf("%+v, %v", found, err)
			}
			got, err := c.Upgrade(t.Context(), Request{Name: "liqo", Chart: chart, Values: map[string]any{"word": "again"}})
			if err != nil || got.Revision != 3 || got.Status != "deployed" {
				t.Fatalf("%+v, %v", got, err)
			}
			if status.IsPending() {
				if closed, err := c.configuration.Releases.Get("liqo", 2); err != nil || closed.Info.Status.IsPending() {
					t.Errorf("the interrupted revision is %+v, %v", closed.Info, err)
				}
			}
		})
	}
}

// Errors say what was being done to which release; a cancelled context does nothing.
func TestFailuresOfReleases(t *testing.T) {
	chart, refused := small(t), errors.New("the API server said no")
	for sentence, tc := range map[string]struct {
		do   func(ctx context.Context, c *client) error
		says string
	}{
		"install": {func(ctx context.Context, c *client) error {
			_, err := c.Install(ctx, Request{Name: "liqo", Chart: chart})
			return err
		}, "installing Helm release liqo/liqo"},
		"a chart that cannot be rendered": {func(ctx context.Context, c *client) error {
			_, err := c.Template(ctx, Request{Name: "liqo", Chart: chart, Values: map[string]any{"word": ""}})
			return err
		}, "rendering Helm release liqo/liqo"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := inMemory(&kubefake.FailingKubeClient{CreateError: refused, BuildError: refused})
			if err := tc.do(t.Context(), c); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q wanted, got %v", tc.says, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := inMemory(nil)
	if _, err := c.Get(ctx, "liqo"); !errors.Is(err, context.Canceled) {
		t.Errorf("reading: %v", err)
	}
	if err := c.Uninstall(ctx, "liqo", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("uninstalling: %v", err)
	}
}

// All that is wrong with values is told in one line, each key with its reason.
func TestValidate(t *testing.T) {
	for sentence, tc := range map[string]struct {
		values map[string]any
		says   []string
	}{
		"what fits":               {map[string]any{"word": "a", "count": 1}, nil},
		"nothing":                 {nil, nil},
		"another type":            {map[string]any{"count": "many"}, []string{"/count"}},
		"too little":              {map[string]any{"count": 0}, []string{"minimum"}},
		"an unknown key":          {map[string]any{"wrod": "a"}, []string{"wrod"}},
		"several at once":         {map[string]any{"wrod": "a", "count": "many"}, []string{"wrod", "/count", "; "}},
		"a table in place of one": {map[string]any{"word": map[string]any{"a": "b"}}, []string{"/word"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := small(t).Validate(tc.values)
			if (err != nil) != (tc.says != nil) {
				t.Fatalf("it says %v", err)
			}
			for _, word := range tc.says {
				if text := err.Error(); !strings.Contains(text, word) || strings.Contains(text, "\n") {
					t.Errorf("%q is not in %q, or it has several lines", word, text)
				}
			}
		})
	}
}

func TestRenderFailsWithTheReason(t *testing.T) {
	_, err := small(t).Render("liqo", "liqo", map[string]any{"word": ""})
	if err == nil || !strings.Contains(err.Error(), "a word is needed") {
		t.Errorf("it says %v", err)
	}
}

func TestLoadPath(t *testing.T) {
	folder := t.TempDir()
	if _, err := LoadPath(filepath.Join(folder, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a path that is not there: %v", err)
	}
	if _, err := LoadPath(folder); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("of a folder without a chart: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "Chart.yaml"), []byte("apiVersion: v2\nname: other\nversion: 0.2.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	chart, err := LoadPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if version, _ := chart.Version(); version != "0.2.0" {
		t.Errorf("version %s", version)
	}
	if _, err := Load(fstest.MapFS{"values.yaml": {Data: []byte("a: b")}}); err == nil {
		t.Error("files without Chart.yaml were taken for a chart")
	}
}

func TestBadValues(t *testing.T) {
	if err := Set(map[string]any{}, "a.b"); err == nil || !strings.Contains(err.Error(), "--set a.b") {
		t.Errorf("%v", err)
	}
	if err := SetString(map[string]any{}, "[]=x"); err == nil || !strings.Contains(err.Error(), "--set-string") {
		t.Errorf("%v", err)
	}
	if _, err := Parse("values.yaml", []byte("a: [")); err == nil || !strings.Contains(err.Error(), "values.yaml") {
		t.Errorf("%v", err)
	}
	got, err := Parse("values.yaml", []byte("a: {b: 1}"))
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": float64(1)}}, got); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
}
