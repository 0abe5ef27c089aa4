package helm

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ociregistry "github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
)

// published are versions of the small chart as a repository has them, in a folder.
func published(t *testing.T, versions ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, version := range versions {
		chart := small(t)
		chart.loaded.Metadata.Version = version
		if _, err := chartutil.Save(chart.loaded, folder); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// isolate keeps what users have of Helm's out of a test.
func isolate(t *testing.T) {
	t.Helper()
	for _, home := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		t.Setenv(home, t.TempDir())
	}
}

func TestFetchFromARepository(t *testing.T) {
	isolate(t)
	folder := published(t, "1.2.3", "1.3.0")
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(server.Close)
	index, err := repo.IndexDirectory(folder, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := index.WriteFile(filepath.Join(folder, "index.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := strings.Replace(server.URL, "http://", "http://me:hunter2@", 1)
	// A folder of the chart's name is not what was asked for.
	t.Chdir(t.TempDir())
	if err := os.Mkdir("small", 0o700); err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct {
		from Source
		want string // version, or with an error what it says
	}{
		"a version":             {Source{server.URL, "small", "1.2.3"}, "1.2.3"},
		"with a slash":          {Source{server.URL + "/", "small", "1.3.0"}, "1.3.0"},
		"one that is not there": {Source{server.URL, "small", "1.4.0"}, `error: chart "small" version "1.4.0" not found in ` + server.URL + " repository"},
		"another chart":         {Source{server.URL, "large", "1.2.3"}, `error: chart "large" version "1.2.3" not found in`},
		"no repository":         {Source{server.URL + "/nothing", "small", "1.2.3"}, "error: looks like"},
		"no URL":                {Source{"charts", "small", "1.2.3"}, "error: it is no URL such as https://charts.example.com"},
		"with a password":       {Source{secret, "small", "1.4.0"}, "error: chart \"small\" version \"1.4.0\" not found in http://me:xxxxx@"},
	} {
		t.Run(sentence, func(t *testing.T) {
			chart, err := Fetch(t.Context(), test.from)
			expect(t, chart, err, test.want)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password is told: %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Fetch(ctx, Source{server.URL, "small", "1.2.3"}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted command went on: %v", err)
	}
}

func expect(t *testing.T, chart *Chart, err error, want string) {
	t.Helper()
	if complaint, fails := strings.CutPrefix(want, "error: "); fails {
		if err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("got %v, want %s", err, complaint)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if version, _ := chart.Version(); version != want {
		t.Errorf("got version %s", version)
	}
}

func TestFetchFromARegistry(t *testing.T) {
	isolate(t)
	server := httptest.NewServer(ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	at := "oci://" + strings.TrimPrefix(server.URL, "http://") + "/charts/small"
	client, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptWriter(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(filepath.Join(published(t, "1.2.3"), "small-1.2.3.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(archive, strings.TrimPrefix(at, "oci://")+":1.2.3"); err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct {
		from Source
		want string
	}{
		"a version":             {Source{at, "small", "1.2.3"}, "1.2.3"},
		"one that is not there": {Source{at, "small", "1.4.0"}, "error: "},
		"another chart":         {Source{at + "er", "small", "1.2.3"}, "error: "},
	} {
		t.Run(sentence, func(t *testing.T) {
			chart, err := Fetch(t.Context(), test.from)
			expect(t, chart, err, test.want)
		})
	}
}
