package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t *testing.T) (*os.Root, string) {
	t.Helper()
	folder := t.TempDir()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root, folder
}

func TestCopyIsTheSame(t *testing.T) {
	source, folder := open(t)
	for name, text := range map[string]string{"a": "1", "dir/b": strings.Repeat("x", 1<<20), "dir/sub/c": ""} {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../outside", filepath.Join(folder, "dir/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(folder, "dir/sub"), 0o550); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(folder, "dir/sub"), 0o750) })
	want, err := identify(source)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := send(source, &archive); err != nil {
		t.Fatal(err)
	}
	target, copied := open(t)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(copied, "dir/sub"), 0o750) })
	if err := os.WriteFile(filepath.Join(copied, "left over"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := receive(target, &archive); err != nil {
		t.Fatal(err)
	}
	got, err := identify(target)
	if err != nil {
		t.Fatal(err)
	}
	// The two temporary folders themselves may differ in nothing either: the archive carries the top folder's rights.
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := os.WriteFile(filepath.Join(copied, "a"), []byte("2"), 0o640); err != nil {
		t.Fatal(err)
	}
	if changed, err := identify(target); err != nil || changed == want {
		t.Errorf("a changed file is not noticed: %+v, %v", changed, err)
	}
}

// A hostile archive stays inside the volume.
func TestHostileArchives(t *testing.T) {
	for name, headers := range map[string][]tar.Header{
		"a path that leads out":         {{Name: "../evil", Typeflag: tar.TypeReg}},
		"an absolute path":              {{Name: "/tmp/evil", Typeflag: tar.TypeReg}},
		"a link that leads out, used":   {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, {Name: "out/evil", Typeflag: tar.TypeReg}},
		"a device":                      {{Name: "sda", Typeflag: tar.TypeBlock}},
		"a hard link to something else": {{Name: "shadow", Typeflag: tar.TypeLink, Linkname: "/etc/shadow"}},
	} {
		t.Run(name, func(t *testing.T) {
			var archive bytes.Buffer
			writer := tar.NewWriter(&archive)
			for i := range headers {
				headers[i].Mode, headers[i].Uid, headers[i].Gid = 0o600, os.Getuid(), os.Getgid()
				if err := writer.WriteHeader(&headers[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			root, folder := open(t)
			if err := receive(root, &archive); err == nil {
				t.Error("it was taken")
			}
			if _, err := os.Lstat(filepath.Join(filepath.Dir(folder), "evil")); err == nil {
				t.Error("it left the volume")
			}
		})
	}
}
