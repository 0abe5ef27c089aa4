package image

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestArchive(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	i := Image{
		Reference: "lab.liqo.io/x:1", Entrypoint: []string{"/x"},
		Files: []File{{Path: "/tmp", Dir: true}, {Path: "/x", Source: source}, {Path: "/y", Link: "x"}},
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

func TestMissingFileIsNamed(t *testing.T) {
	i := Image{Reference: "lab.liqo.io/x:1", Files: []File{{Path: "/x", Source: "/nonexistent"}}}
	if _, err := i.Archive(t.TempDir()); err == nil {
		t.Error("no error")
	}
}
