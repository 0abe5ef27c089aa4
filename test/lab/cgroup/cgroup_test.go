package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const (
		memory  = "34 25 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		systemd = "35 25 0:30 / /sys/fs/cgroup/systemd rw,relatime shared:9 - cgroup cgroup rw,name=systemd\n"
		unified = "36 25 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		v2      = "36 25 0:31 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
		root    = "25 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
	)
	for sentence, c := range map[string]struct {
		mountinfo string
		want      Hierarchies
	}{
		"v1":           {root + memory + systemd, Hierarchies{Mounts: []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/systemd"}}},
		"hybrid":       {root + unified + memory, Hierarchies{Mounts: []string{"/sys/fs/cgroup/memory"}, Hybrid: "/sys/fs/cgroup/unified"}},
		"v2":           {root + v2, Hierarchies{Mounts: []string{"/sys/fs/cgroup"}, V2: true}},
		"none mounted": {root, Hierarchies{V2: true}},
		"broken lines": {"x\n\n - \n" + memory, Hierarchies{Mounts: []string{"/sys/fs/cgroup/memory"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := parse([]byte(c.mountinfo))
			if len(got.Mounts) == 0 {
				got.Mounts = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("hierarchies differ (-want +got):\n%s", diff)
			}
		})
	}
}

// Plain folders stand in for mounted hierarchies: making, walking and measuring
// groups is file work.
func TestGroupsAreFolders(t *testing.T) {
	cpuset, memory := t.TempDir(), t.TempDir()
	write(t, filepath.Join(cpuset, "cpuset.cpus"), "0-1\n")
	write(t, filepath.Join(cpuset, "liqo-lab/demo/cpuset.cpus"), "\n")
	h := Hierarchies{Mounts: []string{cpuset, memory}}
	if err := h.Ensure("/liqo-lab/demo"); err != nil {
		t.Fatal(err)
	}
	if err := h.Ensure("/liqo-lab/demo"); err != nil {
		t.Fatalf("a second time: %v", err)
	}
	write(t, filepath.Join(memory, "liqo-lab/demo/node/cgroup.procs"), "12\n7\n")
	write(t, filepath.Join(cpuset, "liqo-lab/demo/cgroup.procs"), "7\n")
	write(t, filepath.Join(memory, "liqo-lab/demo/memory.stat"), "rss 1\ntotal_rss 4096\n")
	if diff := cmp.Diff([]int{7, 12}, h.Processes("/liqo-lab/demo")); diff != "" {
		t.Errorf("processes differ (-want +got):\n%s", diff)
	}
	if got, ok := h.Memory("/liqo-lab/demo"); !ok || got != 4096 {
		t.Errorf("memory = %d, %t, want 4096", got, ok)
	}
	if diff := cmp.Diff([]int{}, h.Processes("/liqo-lab/other")); diff != "" {
		t.Errorf("processes of a group that is not there (-want +got):\n%s", diff)
	}
}

func TestRemoveTakesEmptyAncestors(t *testing.T) {
	mount := t.TempDir()
	h := Hierarchies{Mounts: []string{mount}}
	for _, group := range []string{"/liqo-lab/a/rome/control", "/liqo-lab/b"} {
		if err := h.Ensure(group); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if err := h.Remove(t.Context(), "/liqo-lab/"+name); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(filepath.Join(mount, "liqo-lab"))
		if gone := err != nil; gone != (name == "b") {
			t.Errorf("after removing %s the root is gone: %t", name, gone)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
