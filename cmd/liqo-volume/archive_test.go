package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if err := receive(target, &archive, toDisk); err != nil {
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
		"a hard link out of the volume": {{Name: "neighbour", Typeflag: tar.TypeLink, Linkname: "../neighbour"}},
		"a hard link through a link":    {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "shadow", Typeflag: tar.TypeLink, Linkname: "out/passwd"}},
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
			if err := receive(root, &archive, toDisk); err == nil {
				t.Error("it was taken")
			}
			if _, err := os.Lstat(filepath.Join(filepath.Dir(folder), "evil")); err == nil {
				t.Error("it left the volume")
			}
		})
	}
}

// put writes a file and the folders that it is in.
func put(t *testing.T, folder, name, text string) string {
	t.Helper()
	file := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return file
}

// travel copies a volume, and fails unless the copy is identified as the same.
func travel(t *testing.T, source, target *os.Root) manifest {
	t.Helper()
	var archive bytes.Buffer
	if err := send(source, &archive); err != nil {
		t.Fatal(err)
	}
	if err := receive(target, &archive, toDisk); err != nil {
		t.Fatal(err)
	}
	want, err := identify(source)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := identify(target); err != nil || got != want {
		t.Errorf("got %+v, want %+v, error %v", got, want, err)
	}
	return want
}

// Names of one file are names of one file afterwards, and the checksum knows the difference.
func TestHardLinks(t *testing.T) {
	source, folder := open(t)
	target, copied := open(t)
	first := put(t, folder, "a", "x")
	for _, name := range []string{"b", "c"} {
		if err := os.Link(first, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(folder, "link"), filepath.Join(folder, "link too")); err != nil {
		t.Fatal(err)
	}
	want := travel(t, source, target)
	for _, names := range [][2]string{{"a", "b"}, {"a", "c"}, {"link", "link too"}} {
		one, err1 := os.Lstat(filepath.Join(copied, names[0]))
		other, err2 := os.Lstat(filepath.Join(copied, names[1]))
		if err := errors.Join(err1, err2); err != nil || !os.SameFile(one, other) {
			t.Errorf("%s are two files, error %v", names, err)
		}
	}
	if err := os.Remove(filepath.Join(copied, "b")); err != nil {
		t.Fatal(err)
	}
	put(t, copied, "b", "x")
	if got, err := identify(target); err != nil || got.digest == want.digest {
		t.Errorf("a file of its own counts as the same, error %v", err)
	}
}

// Holes stay holes, and what is no hole is written although it is zero.
func TestSparseFiles(t *testing.T) {
	source, folder := open(t)
	target, copied := open(t)
	const size = 8 << 20
	sparse := put(t, folder, "sparse", "begin")
	if err := os.Truncate(sparse, size); err != nil {
		t.Fatal(err)
	}
	if blocks(t, sparse) >= size/512 {
		t.Skip("the file system has no holes")
	}
	put(t, folder, "full", string(make([]byte, 1<<20)))
	travel(t, source, target)
	if got := blocks(t, filepath.Join(copied, "sparse")); got > size/512/2 {
		t.Errorf("the copy has %d blocks", got)
	}
	if got := blocks(t, filepath.Join(copied, "full")); got < 1<<20/512 {
		t.Errorf("the full file has %d blocks only", got)
	}
}

func blocks(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Skip("blocks cannot be counted here")
	}
	return stat.Blocks
}

// What a file system repaired is content; the folder that it keeps for that is not.
func TestLostAndFound(t *testing.T) {
	source, folder := open(t)
	target, copied := open(t)
	for _, name := range []string{folder, copied} {
		if err := os.Mkdir(filepath.Join(name, lostAndFound), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	empty := travel(t, source, target)
	put(t, folder, lostAndFound+"/#12", "repaired")
	put(t, copied, lostAndFound+"/#7", "left by an earlier try")
	if full := travel(t, source, target); full.digest == empty.digest {
		t.Error("the checksum does not know it")
	}
	if got, err := os.ReadFile(filepath.Join(copied, lostAndFound, "#12")); err != nil || string(got) != "repaired" {
		t.Errorf("got %q, error %v", got, err)
	}
	other, without := open(t)
	travel(t, source, other)
	if _, err := os.Stat(filepath.Join(without, lostAndFound, "#12")); err != nil {
		t.Error(err)
	}
}

// Folders are written to the disk when they are complete, the top one last.
func TestFoldersToDisk(t *testing.T) {
	source, folder := open(t)
	target, _ := open(t)
	put(t, folder, "dir/sub/a", "1")
	put(t, folder, "dir/b", "2")
	var archive bytes.Buffer
	if err := send(source, &archive); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := receive(target, &archive, func(folder *os.File) error {
		names, err := folder.Readdirnames(-1)
		slices.Sort(names)
		got = append(got, strings.Join(names, " "))
		return err
	})
	if diff := cmp.Diff([]string{"a", "b sub", "dir"}, got); diff != "" || err != nil {
		t.Errorf("%s, error %v", diff, err)
	}
}
