package binary

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"liqo.io/liqo/test/lab/step"
)

func TestReadyBinaries(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, Etcd), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Kwok), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvReady, dir)
	set, err := Ensure(t.Context(), []string{Etcd}, step.Silent{})
	if err != nil || set[Etcd] != filepath.Join(dir, Etcd) {
		t.Errorf("set %v, error %v", set, err)
	}
	want := "LIQO_LAB_BIN=" + dir + " lacks the programs kubelet, kwok: put executables of these names there, or unset LIQO_LAB_BIN to have them built"
	if _, err := Ensure(t.Context(), []string{Etcd, Kubelet, Kwok}, step.Silent{}); err == nil || err.Error() != want {
		t.Errorf("error = %v, want %q", err, want)
	}
}

func TestOutsideTheCheckout(t *testing.T) {
	t.Setenv(EnvReady, "")
	t.Chdir(t.TempDir())
	if _, err := Ensure(t.Context(), []string{Etcd}, step.Silent{}); err == nil || !strings.Contains(err.Error(), "run inside the checkout") {
		t.Errorf("error = %v", err)
	}
}

func TestBuildErrors(t *testing.T) {
	for sentence, c := range map[string]struct {
		output string
		err    error
		want   string
	}{
		"no Go":        {"", &exec.Error{Name: "go", Err: exec.ErrNotFound}, "building etcd needs Go, which was not found in PATH: install Go 1.26 or set LIQO_LAB_BIN to a folder with ready binaries"},
		"no disk":      {"write x: no space left on device", errors.New("exit status 1"), "building etcd ran out of disk: free 5 GB, or move the cache with LIQO_LAB_CACHE and GOCACHE"},
		"wrong source": {"x.go:1: syntax error\n", errors.New("exit status 1"), "building etcd: exit status 1: x.go:1: syntax error"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := buildError("etcd", c.output, c.err).Error(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheKeyFollowsTheVersions(t *testing.T) {
	root := t.TempDir()
	m := module{name: "etcd", dir: "m", inputs: []string{"go.mod", "src"}}
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, "m", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	key := func() string {
		t.Helper()
		k, err := m.key(root)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write("go.mod", "v1")
	write("src/main.go", "package main")
	first := key()
	write("src/main_test.go", "package main")
	write("README.md", "x")
	if key() != first {
		t.Error("a test or an unrelated file changed the key")
	}
	write("go.mod", "v2")
	if key() == first {
		t.Error("another version kept the key")
	}
}

func TestModulesArePinnedAsDeclared(t *testing.T) {
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "hack", "kube", "go.mod"))
	if err != nil || !strings.Contains(string(data), "k8s.io/kubernetes "+KubernetesVersion) {
		t.Errorf("hack/kube/go.mod does not pin Kubernetes %s, error %v", KubernetesVersion, err)
	}
	for _, m := range modules() {
		if _, err := m.key(root); err != nil {
			t.Errorf("module %s: %v", m.name, err)
		}
	}
}

func TestUsualProgramsAreThoseOfLabs(t *testing.T) {
	usual := Usual()
	for _, name := range []string{APIServer, Etcd, Kwok, Kubelet, CoreDNS, Flannel, Ingress, Relay} {
		if !slices.Contains(usual, name) {
			t.Errorf("%s is not built before clusters start: %v", name, usual)
		}
	}
	for _, name := range []string{E2E, Ginkgo, Agnhost, NoNewPrivs} {
		if slices.Contains(usual, name) {
			t.Errorf("%s, which only Kubernetes' own tests need, is built for all", name)
		}
	}
}
