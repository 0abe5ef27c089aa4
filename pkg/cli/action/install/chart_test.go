package install_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liqo.io/liqo/charts"
	"liqo.io/liqo/pkg/cli/action/install"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/version"
)

// files of our chart, some of them changed.
func files(t *testing.T, changed map[string]string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(charts.Liqo(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(charts.Liqo(), path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(all, changed)
	return all
}

// packed is a chart as it is published.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(compressed)
	for path, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: "liqo/" + path, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// chartsOf serves a repository with version 9.9.9 of the chart and with that of Liqo v1, which has the same name.
func chartsOf(t *testing.T, ours, v1 []byte) string {
	t.Helper()
	for _, home := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		t.Setenv(home, t.TempDir())
	}
	const index = `apiVersion: v1
entries:
  liqo:
    - {apiVersion: v2, name: liqo, version: 9.9.9, appVersion: v9.9.9, urls: [ours.tgz]}
    - {apiVersion: v2, name: liqo, version: 1.2.0, appVersion: v1.2.0, urls: [v1.tgz]}
`
	mux := http.NewServeMux()
	for path, content := range map[string][]byte{"/index.yaml": []byte(index), "/ours.tgz": ours, "/v1.tgz": v1} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// later is our chart of version 9.9.9, one that also has what this program's configuration does not know, and the chart of Liqo v1.
func later(t *testing.T) (ours, unknown, v1 []byte) {
	t.Helper()
	head := strings.NewReplacer("\nversion: 0.1.0", "\nversion: 9.9.9", "appVersion: v0.1.0", "appVersion: v9.9.9").Replace(files(t, nil)["Chart.yaml"])
	changed := map[string]string{"Chart.yaml": head}
	ours = packed(t, files(t, changed))
	config := files(t, nil)["templates/config.yaml"]
	changed["templates/config.yaml"] = strings.Replace(config, "  config.yaml: |\n", "  config.yaml: |\n    unheard: of\n", 1)
	unknown = packed(t, files(t, changed))
	v1 = packed(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: liqo\nversion: 1.2.0\nappVersion: v1.2.0\n", "values.yaml": "{}\n"})
	return ours, unknown, v1
}

// A chart that is fetched, or is given as a folder or archive, is checked as the built-in one is; charts of others are refused.
func TestWhereTheChartComesFrom(t *testing.T) {
	const next = ": correct the values; docs/reference/values.md lists them, and --reset-values forgets those of the present installation"
	ours, unknown, v1 := later(t)
	at := chartsOf(t, ours, v1)
	store := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	v1Path, unknownPath := store("v1.tgz", v1), store("unknown.tgz", unknown)
	const fetch = ": name a repository, or with oci:// a chart in a registry, and with --version one that it has; or leave --repo-url out to install the built-in chart"
	bad := []map[string]any{{"offloading": map[string]any{"twinNamespaces": map[string]any{"network": map[string]any{"peers": []any{map[string]any{"cidr": "10.0.0.0/8"}}}}}}}
	later := " (the chart installs version v9.9.9, and this liqoctl is of version " + version.Version + ": if it is the chart that says so, use the liqoctl of that version)"
	for sentence, test := range map[string]struct {
		change func(*install.Options)
		want   string // nothing if it can be installed
	}{
		"a version in a repository":           {change: func(o *install.Options) { o.RepoURL, o.Version = at, "9.9.9" }},
		"the same, with a v":                  {change: func(o *install.Options) { o.RepoURL, o.Version = at+"/", "v9.9.9" }},
		"an archive of another version":       {change: func(o *install.Options) { o.ChartPath = store("ours.tgz", ours) }},
		"an archive of the version":           {change: func(o *install.Options) { o.ChartPath, o.Version = store("ours.tgz", ours), "v9.9.9" }},
		"a folder":                            {change: func(o *install.Options) { o.ChartPath = "../../../../charts/liqo" }},
		"this program's version is not there": {func(o *install.Options) { o.RepoURL = at }, "fetching version " + version.Version + " of the chart liqo from --repo-url " + at + ": "},
		"a version that is not there": {func(o *install.Options) { o.RepoURL, o.Version = at, "9.9.8" },
			"fetching version 9.9.8 of the chart liqo from --repo-url " + at + `: chart "liqo" version "9.9.8" not found in ` + at + " repository" + fetch},
		"a commit": {func(o *install.Options) { o.RepoURL, o.Version = at, "557c199" },
			"--version 557c199 is no version of a chart: give one such as 1.2.3; the chart of a commit is given with --local-chart-path"},
		"v1's chart in a repository": {func(o *install.Options) { o.RepoURL, o.Version = at, "1.2.0" },
			"the chart of version 1.2.0 in " + at + " is not one of this Liqo: install it with its own program, Liqo v1 with the liqoctl of Liqo v1"},
		"v1's chart in an archive": {func(o *install.Options) { o.ChartPath = v1Path },
			"the chart of version 1.2.0 in " + v1Path + " is not one of this Liqo: install it with its own program, Liqo v1 with the liqoctl of Liqo v1"},
		"a value that only the program refuses, fetched": {func(o *install.Options) { o.RepoURL, o.Version, o.Values = at, "9.9.9", bad },
			"parsing the configuration: error unmarshaling JSON: while decoding JSON: json: unknown field \"cidr\"" + later + next},
		"a value that only the program refuses, in a folder": {func(o *install.Options) { o.ChartPath, o.Values = "../../../../charts/liqo", bad },
			"parsing the configuration: error unmarshaling JSON: while decoding JSON: json: unknown field \"cidr\""},
		"a configuration of a later program": {func(o *install.Options) { o.ChartPath = unknownPath },
			"parsing the configuration: error unmarshaling JSON: while decoding JSON: json: unknown field \"unheard\"" + later + next},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &releases{}
			o := options(t, r, nil)
			test.change(&o)
			_, err := install.Prepare(t.Context(), o)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (failure.CodeOf(err) != failure.Usage || !strings.HasPrefix(err.Error(), test.want)):
				t.Errorf("code %d, got %v\nwant %s", failure.CodeOf(err), err, test.want)
			}
			if len(r.calls) > 0 {
				t.Errorf("a check changed something: %v", r.calls)
			}
		})
	}
}
