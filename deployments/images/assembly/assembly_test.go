package assembly

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var tiny = Binary{
	Name:        "tiny",
	Package:     "./deployments/images/assembly/testdata/tiny",
	Description: "A test.",
}

func options(t *testing.T) Options {
	t.Helper()
	return Options{
		Root: filepath.Join("..", "..", ".."), Out: t.TempDir(), Tag: "v9.9.9", Commit: "0123abc",
		RepositoryPrefix: "registry.example/liqo", Architectures: []string{runtime.GOARCH},
	}
}

func assemble(t *testing.T, opts Options) []Artifact {
	t.Helper()
	artifacts, err := Assemble(context.Background(), opts, tiny)
	if err != nil {
		t.Fatalf("assembling: %v", err)
	}
	return artifacts
}

func TestArchiveHoldsARunnableUnprivilegedImage(t *testing.T) {
	opts := options(t)
	got := assemble(t, opts)
	want := []Artifact{{
		Name: "tiny", Reference: "registry.example/liqo/tiny:v9.9.9",
		Path:          filepath.Join(opts.Out, "tiny-"+runtime.GOARCH+".tar"),
		Architectures: []string{runtime.GOARCH}, Digest: got[0].Digest,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("artifacts (-want +got):\n%s", diff)
	}
	img, err := tarball.ImageFromPath(got[0].Path, nil)
	if err != nil {
		t.Fatalf("reading the archive: %v", err)
	}
	checkConfig(t, img, runtime.GOARCH)
	checkLayer(t, img)
}

func checkConfig(t *testing.T, img v1.Image, arch string) {
	t.Helper()
	if err := validate.Image(img); err != nil {
		t.Errorf("the image is not valid: %v", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatalf("reading the configuration: %v", err)
	}
	got := []any{config.OS, config.Architecture, config.Config.User, config.Config.Entrypoint, config.Config.Labels}
	want := []any{"linux", arch, "65532:65532", []string{"/usr/bin/tiny"}, map[string]string{
		"org.opencontainers.image.title":       "tiny",
		"org.opencontainers.image.description": "A test.",
		"org.opencontainers.image.version":     "v9.9.9",
		"org.opencontainers.image.revision":    "0123abc",
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func checkLayer(t *testing.T, img v1.Image) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("want one layer, got %d (error %v)", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatalf("opening the layer: %v", err)
	}
	defer content.Close()
	modes, files := unpack(t, content)
	wantModes := map[string]int64{
		"etc/": 0o755, "etc/group": 0o644, "etc/passwd": 0o644, "etc/ssl/": 0o755, "etc/ssl/certs/": 0o755,
		"etc/ssl/certs/ca-certificates.crt": 0o644, "tmp/": 0o1777, "usr/": 0o755, "usr/bin/": 0o755,
		"usr/bin/tiny": 0o755,
	}
	if diff := cmp.Diff(wantModes, modes); diff != "" {
		t.Errorf("files and modes (-want +got):\n%s", diff)
	}
	if !strings.Contains(files["etc/passwd"], "nonroot:x:65532:65532:") {
		t.Errorf("no unprivileged user in /etc/passwd:\n%s", files["etc/passwd"])
	}
	if count := strings.Count(files["etc/ssl/certs/ca-certificates.crt"], "BEGIN CERTIFICATE"); count < 50 {
		t.Errorf("only %d root certificates", count)
	}
	for _, stamp := range []string{"v9.9.9", "0123abc"} {
		if !strings.Contains(files["usr/bin/tiny"], stamp) {
			t.Errorf("the binary does not know %s", stamp)
		}
	}
}

func unpack(t *testing.T, content io.Reader) (modes map[string]int64, files map[string]string) {
	t.Helper()
	modes, files = map[string]int64{}, map[string]string{}
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return modes, files
		}
		if err != nil {
			t.Fatalf("reading the layer: %v", err)
		}
		if header.ModTime.Unix() != 0 || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s: time %v and owner %d:%d are not the fixed ones", header.Name, header.ModTime, header.Uid, header.Gid)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatalf("reading %s from the layer: %v", header.Name, err)
		}
		modes[header.Name], files[header.Name] = header.Mode, string(data)
	}
}

func TestTwoRunsInDifferentFoldersGiveTheSameBytes(t *testing.T) {
	first, second := assemble(t, options(t))[0], assemble(t, options(t))[0]
	if first.Digest != second.Digest {
		t.Errorf("digests differ: %s and %s", first.Digest, second.Digest)
	}
	one, errOne := os.ReadFile(first.Path)
	two, errTwo := os.ReadFile(second.Path)
	if err := errors.Join(errOne, errTwo); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, two) {
		t.Error("the archives differ")
	}
}

func TestASecondRunWritesOnlyWhatChanged(t *testing.T) {
	opts := options(t)
	var lines []string
	opts.Progress = func(line string) { lines = append(lines, line) }
	first := assemble(t, opts)
	second := assemble(t, opts)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("artifacts of the second run (-first +second):\n%s", diff)
	}
	if err := os.Remove(first[0].Path); err != nil {
		t.Fatal(err)
	}
	assemble(t, opts)
	opts.Tag = "v9.9.10"
	changed := assemble(t, opts)
	if changed[0].Digest == first[0].Digest {
		t.Error("a new tag did not change the image")
	}
	compiling, writing := "compiling 1 binaries for linux/"+runtime.GOARCH, "writing tiny-"+runtime.GOARCH+".tar"
	want := []string{compiling, writing, compiling, compiling, writing, compiling, writing}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestLayoutHoldsAnIndexOverAllArchitectures(t *testing.T) {
	opts := options(t)
	opts.Format, opts.Architectures = OCI, []string{"amd64", "arm64"}
	artifact := assemble(t, opts)[0]
	folder, err := layout.FromPath(artifact.Path)
	if err != nil {
		t.Fatalf("opening the layout: %v", err)
	}
	root, err := folder.ImageIndex()
	if err != nil {
		t.Fatalf("reading the layout: %v", err)
	}
	top, err := root.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("want one index in the layout, got %+v (error %v)", top, err)
	}
	if top.Manifests[0].Digest.String() != artifact.Digest {
		t.Errorf("digest reported %s, written %s", artifact.Digest, top.Manifests[0].Digest)
	}
	if got := top.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; got != artifact.Reference {
		t.Errorf("the layout names its image %q, want %q", got, artifact.Reference)
	}
	index, err := root.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatalf("reading the index: %v", err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the index is not valid: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatalf("reading the index: %v", err)
	}
	for position, arch := range opts.Architectures {
		descriptor := manifest.Manifests[position]
		if descriptor.Platform.Architecture != arch {
			t.Errorf("platform %d is %s, want %s", position, descriptor.Platform.Architecture, arch)
		}
		img, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatalf("reading the %s image: %v", arch, err)
		}
		checkConfig(t, img, arch)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	cases := map[string]struct {
		change   func(*Options)
		binaries []Binary
		want     string
	}{
		"an unknown format":        {func(o *Options) { o.Format = "zip" }, []Binary{tiny}, "use docker-archive or oci"},
		"no output folder":         {func(o *Options) { o.Out = "" }, []Binary{tiny}, "no output folder"},
		"no tag":                   {func(o *Options) { o.Tag = "" }, []Binary{tiny}, "no tag"},
		"no architecture":          {func(o *Options) { o.Architectures = nil }, []Binary{tiny}, "no architecture"},
		"no image":                 {func(*Options) {}, nil, "no image named"},
		"a name unlike its folder": {func(*Options) {}, []Binary{{Name: "big", Package: tiny.Package}}, "must be named as the folder"},
		"a tag that is no tag":     {func(o *Options) { o.Tag = "v1:2" }, []Binary{tiny}, "building the image's name"},
		"a package that is not there": {
			func(*Options) {}, []Binary{{Name: "gone", Package: "./deployments/images/gone"}}, "compiling for linux/",
		},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			opts := options(t)
			tc.change(&opts)
			_, err := Assemble(context.Background(), opts, tc.binaries...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	cases := map[string]struct {
		names   []string
		want    []string
		wantErr string
	}{
		"no name means the whole product":    {nil, productNames(), ""},
		"names are taken in the order given": {[]string{"liqoctl", "virtual-kubelet"}, []string{"liqoctl", "virtual-kubelet"}, ""},
		"an unknown name lists the known":    {[]string{"nginx"}, nil, "known are liqo-controller-manager"},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			selected, err := Select(tc.names...)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("want an error with %q, got %v", tc.wantErr, err)
				}
				return
			}
			var got []string
			for _, binary := range selected {
				got = append(got, binary.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("selection (-want +got, error %v):\n%s", err, diff)
			}
		})
	}
}
