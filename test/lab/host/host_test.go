package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqo.io/liqo/test/lab/step"
)

// machine returns one that has everything; a case takes something away.
func machine(change func(*Machine)) Machine {
	m := Machine{
		UID: 0, Kernel: "6.1.0-18-amd64", Filesystems: "nodev\toverlay\n",
		Look:   func(program string) (string, error) { return "/usr/bin/" + program, nil },
		Exists: func(path string) bool { return strings.HasPrefix(path, "/usr/lib/cni") },
		Free:   func(string) (uint64, error) { return 50 << 30, nil },
	}
	change(&m)
	return m
}

func TestRefusals(t *testing.T) {
	lacking := func(programs ...string) func(*Machine) {
		return func(m *Machine) {
			m.Look = func(program string) (string, error) {
				for _, p := range programs {
					if p == program {
						return "", errors.New("not found")
					}
				}
				return program, nil
			}
		}
	}
	for sentence, c := range map[string]struct {
		change func(*Machine)
		want   string
	}{
		"everything there": {func(*Machine) {}, ""},
		"not root":         {func(m *Machine) { m.UID = 1000 }, "real nodes need root and this user has id 1000: run it with sudo, or declare simulated nodes only"},
		"old kernel":       {func(m *Machine) { m.Kernel = "5.10.0-28-amd64" }, "this kernel is 5.10.0-28-amd64 and kube-proxy needs 5.13 or newer: boot a newer kernel, or declare simulated nodes only"},
		"no overlay":       {func(m *Machine) { m.Filesystems = "nodev\ttmpfs\n" }, `this kernel has no overlay file system, which containers need: load it with "modprobe overlay"`},
		"no containerd":    {lacking("containerd", "ctr"), "this machine lacks containerd (names of Debian packages) and has no apt-get to install them: install them with the distribution's package manager"},
		"no CNI plugins": {
			func(m *Machine) { m.Exists = func(string) bool { return false } },
			"this machine lacks containernetworking-plugins (names of Debian packages) and has no apt-get to install them: install them with the distribution's package manager",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			m := machine(c.change)
			m.Watchers = watchers(t, "1024")
			if err := m.Prepare(context.Background(), step.Silent{}); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}
		})
	}
}

// Pods on one bridge need a kernel that filters what passes it.
func TestBridgesAreFiltered(t *testing.T) {
	if err := machine(func(m *Machine) { m.Exists = func(path string) bool { return path == bridgeFilter } }).CheckBridges(); err != nil {
		t.Errorf("error = %v, want none", err)
	}
	if err := machine(func(*Machine) {}).CheckBridges(); err == nil || !strings.Contains(err.Error(), "modprobe br_netfilter") {
		t.Errorf("error = %v, want one with a remedy", err)
	}
}

// watchers makes the file of a limit.
func watchers(t *testing.T, limit string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "limit")
	if err := os.WriteFile(path, []byte(limit+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The limit of inotify instances is raised where it is too low, and nowhere lowered.
func TestTheLimitOfInotifyIsRaised(t *testing.T) {
	for limit, want := range map[string]string{"128": "1024", "1024": "1024", "8192": "8192"} {
		m := machine(func(*Machine) {})
		m.Watchers = watchers(t, limit)
		if err := m.Prepare(t.Context(), step.Silent{}); err != nil {
			t.Errorf("%s: %v", limit, err)
		}
		if got, err := os.ReadFile(m.Watchers); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s became %q, %v, want %s", limit, got, err, want)
		}
	}
}

func TestDisk(t *testing.T) {
	m := machine(func(m *Machine) { m.Free = func(string) (uint64, error) { return 100 << 20, nil } })
	want := "only 100 MB are free on the disk of /var/lib/x: free at least 3 GB, or move the lab with LIQO_LAB_STATE and LIQO_LAB_CACHE"
	if err := m.CheckDisk("/var/lib/x"); err == nil || err.Error() != want {
		t.Errorf("error = %v, want %q", err, want)
	}
	if err := This().CheckDisk("/nonexistent/below/root"); err != nil && !strings.Contains(err.Error(), "MB are free") {
		t.Errorf("a folder that does not exist yet: %v", err)
	}
}

func TestOlder(t *testing.T) {
	for release, want := range map[string]bool{"4.19.0": true, "5.12.19": true, "5.13.0-rc1": false, "6.18.44-fc": false, "5.15": false, "": true} {
		if got := older(release, oldestKernel); got != want {
			t.Errorf("older(%q) = %t, want %t", release, got, want)
		}
	}
}

func TestInstallAsksForWhatIsMissing(t *testing.T) {
	m := machine(func(m *Machine) {
		m.Look = func(program string) (string, error) {
			if program == "dig" {
				return "", errors.New("not found")
			}
			return program, nil
		}
	})
	err := m.Install(t.Context(), step.Silent{}, Program{"dig", "bind9-dnsutils"}, Program{"curl", "curl"})
	if err == nil || !strings.Contains(err.Error(), "lacks bind9-dnsutils (") {
		t.Errorf("error %v, want one that names bind9-dnsutils alone", err)
	}
	if err := m.Install(t.Context(), step.Silent{}, Program{"curl", "curl"}); err != nil {
		t.Errorf("nothing is missing, error %v", err)
	}
}
