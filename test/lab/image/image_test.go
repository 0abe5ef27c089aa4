package image

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestArchive(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	i := Image{
		Reference: "lab.liqo.io/x:1", Entrypoint: []string{"/x"}, User: "1234",
		Files: []File{{Path: "/tmp", Dir: true}, {Path: "/x", Source: source}, {Path: "/y", Link: "x"}, {Path: "/z", Content: "text", Mode: 0o4711}},
	}
	dir := t.TempDir()
	path, err := i.Archive(dir)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(i.Reference)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/x"}, config.Config.Entrypoint); diff != "" || config.OS != "linux" {
		t.Errorf("os %s, entrypoint differs (-want +got):\n%s", config.OS, diff)
	}
	if config.Config.User != "1234" {
		t.Errorf("it runs as %q, want 1234", config.Config.User)
	}
	if mode, content := file(t, img, "z"); mode != 0o4711 || content != "text" {
		t.Errorf("file z has mode %o and says %q, want 4711 and text", mode, content)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := i.Archive(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(again); err != nil || string(second) != string(first) {
		t.Errorf("the same image is not the same file, error %v", err)
	}
	if err := os.WriteFile(source, []byte("#!changed"), 0o755); err != nil {
		t.Fatal(err)
	}
	if other, err := i.Archive(dir); err != nil || other == path {
		t.Errorf("other content kept the file %s, error %v", other, err)
	}
}

// file reads a file of an image.
func file(t *testing.T, img v1.Image, name string) (mode int64, content string) {
	t.Helper()
	stream := mutate.Extract(img)
	defer stream.Close()
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if err != nil {
			t.Fatalf("looking for %s in the image: %v", name, err)
		}
		if header.Name != name {
			continue
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		return header.Mode, string(data)
	}
}

func TestProgramsComeWithTheirLibraries(t *testing.T) {
	files, err := Programs(t.Context(), "ls")
	if err != nil {
		t.Fatal(err)
	}
	libraries := 0
	for _, f := range files[1:] {
		if strings.Contains(filepath.Base(f.Path), ".so") {
			libraries++
		}
	}
	if files[0].Path != "/usr/local/bin/ls" || libraries < 2 {
		t.Errorf("files of ls: %v, want the program, libc and the loader", files)
	}
	if _, err := Programs(t.Context(), "no-such-program"); err == nil {
		t.Error("no error for a program that is not there")
	}
}

func TestMissingFileIsNamed(t *testing.T) {
	i := Image{Reference: "lab.liqo.io/x:1", Files: []File{{Path: "/x", Source: "/nonexistent"}}}
	if _, err := i.Archive(t.TempDir()); err == nil {
		t.Error("no error")
	}
}
