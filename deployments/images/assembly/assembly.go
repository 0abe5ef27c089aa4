package assembly

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Format is the way in which images are written to disk.
type Format string

const (
	// DockerArchive writes one tarball per image and architecture, named <image>-<architecture>.tar.
	DockerArchive Format = "docker-archive"
	// OCI writes one OCI layout folder per image, named as the image, with an index over all architectures.
	OCI Format = "oci"
)

// DefaultRepositoryPrefix is what image names start with unless the caller says otherwise.
const DefaultRepositoryPrefix = "ghcr.io/liqotech"

// Binary is one program that becomes one image.
type Binary struct {
	// Name is the image's last path element and the program's file name in it.
	Name string
	// Package is the Go package to compile, relative to [Options.Root], such as "./cmd/virtual-kubelet". Its
	// last element must be Name.
	Package string
	// Description is one sentence for people who look at the image's labels.
	Description string
}

// Options say how images are assembled.
type Options struct {
	// Root is the folder of the Go module that holds the packages.
	Root string
	// Out is the folder that receives the images; it is created when missing.
	Out string
	// Format is [DockerArchive] when empty.
	Format Format
	// Architectures are Go architecture names (amd64, arm64); at least one is needed.
	Architectures []string
	// RepositoryPrefix is put before every image's name; [DefaultRepositoryPrefix] when empty.
	RepositoryPrefix string
	// Tag is the images' tag and the version that the binaries report.
	Tag string
	// Commit is the Git commit that the binaries and the images' labels report; it may be empty.
	Commit string
	// Created is the time stamped on images and on the files in them; the Unix epoch when zero.
	Created time.Time
	// Progress receives one line for every step that takes a while; it may be nil.
	Progress func(line string)
}

// Artifact is one file or folder that [Assemble] wrote or found up to date.
type Artifact struct {
	// Name is the image's name without prefix and tag.
	Name string `json:"name"`
	// Reference is the full image name: prefix, name and tag.
	Reference string `json:"reference"`
	// Path is the tarball or the OCI layout folder.
	Path string `json:"path"`
	// Architectures are the platforms that the artifact holds.
	Architectures []string `json:"architectures"`
	// Digest identifies the content: the image's ID as container runtimes show it (docker-archive), or the digest of
	// the index as registries show it (OCI).
	Digest string `json:"digest"`
}

// Assemble compiles the binaries and writes one artifact per binary (OCI) or per binary and architecture
// (docker-archive), in the order given. It returns an error that names the binary and the step that failed.
func Assemble(ctx context.Context, opts Options, binaries ...Binary) ([]Artifact, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkBinaries(binaries); err != nil {
		return nil, err
	}
	for _, arch := range opts.Architectures {
		opts.Progress(fmt.Sprintf("compiling %d binaries for linux/%s", len(binaries), arch))
		if err := compile(ctx, opts, arch, binaries); err != nil {
			return nil, err
		}
	}
	var artifacts []Artifact
	for _, binary := range binaries {
		for _, target := range targets(opts, binary) {
			artifact, err := target.ensure(opts)
			if err != nil {
				return nil, fmt.Errorf("assembling image %s: %w", binary.Name, err)
			}
			artifacts = append(artifacts, artifact)
		}
	}
	return artifacts, nil
}

func (o Options) withDefaults() (Options, error) {
	if o.Format == "" {
		o.Format = DockerArchive
	}
	if o.RepositoryPrefix == "" {
		o.RepositoryPrefix = DefaultRepositoryPrefix
	}
	if o.Created.IsZero() {
		o.Created = time.Unix(0, 0)
	}
	o.Created = o.Created.UTC()
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	switch {
	case o.Format != DockerArchive && o.Format != OCI:
		return o, fmt.Errorf("image format %q is unknown: use %s or %s", o.Format, DockerArchive, OCI)
	case o.Out == "":
		return o, errors.New("no output folder given for the images")
	case o.Tag == "":
		return o, errors.New("no tag given for the images")
	case len(o.Architectures) == 0:
		return o, errors.New("no architecture given for the images")
	}
	for _, folder := range []*string{&o.Root, &o.Out} {
		absolute, err := filepath.Abs(*folder)
		if err != nil {
			return o, fmt.Errorf("resolving folder %s: %w", *folder, err)
		}
		*folder = absolute
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return o, fmt.Errorf("creating the output folder %s: %w", o.Out, err)
	}
	return o, nil
}

func checkBinaries(binaries []Binary) error {
	if len(binaries) == 0 {
		return errors.New("no image named")
	}
	for _, binary := range binaries {
		// The Go compiler names its output after the package's folder.
		if filepath.Base(binary.Package) != binary.Name {
			return fmt.Errorf("image %s must be named as the folder of its package %s", binary.Name, binary.Package)
		}
	}
	return nil
}

// target is one artifact to be: a binary for the architectures that go into it.
type target struct {
	binary        Binary
	architectures []string
	path          string
	write         func(path string, ref name.Tag, images []platformImage) (v1.Hash, error)
}

func targets(opts Options, binary Binary) []target {
	if opts.Format == OCI {
		return []target{{
			binary:        binary,
			architectures: opts.Architectures,
			path:          filepath.Join(opts.Out, binary.Name),
			write:         writeLayout,
		}}
	}
	var all []target
	for _, arch := range opts.Architectures {
		all = append(all, target{
			binary:        binary,
			architectures: []string{arch},
			path:          filepath.Join(opts.Out, binary.Name+"-"+arch+".tar"),
			write:         writeArchive,
		})
	}
	return all
}

// receipt records what an artifact was made from, so that the next run can leave it alone.
type receipt struct {
	Key      string   `json:"key"`
	Artifact Artifact `json:"artifact"`
}

// ensure returns the artifact, written anew unless the one on disk was made from the same inputs.
func (t target) ensure(opts Options) (Artifact, error) {
	ref, err := name.NewTag(opts.RepositoryPrefix + "/" + t.binary.Name + ":" + opts.Tag)
	if err != nil {
		return Artifact{}, fmt.Errorf("building the image's name: %w", err)
	}
	key, err := t.key(opts, ref)
	if err != nil {
		return Artifact{}, err
	}
	receiptPath := filepath.Join(opts.Out, ".receipts", filepath.Base(t.path)+".json")
	if artifact, fresh := readReceipt(receiptPath, t.path, key); fresh {
		return artifact, nil
	}
	opts.Progress("writing " + filepath.Base(t.path))
	images := make([]platformImage, 0, len(t.architectures))
	for _, arch := range t.architectures {
		img, err := newImage(opts, t.binary, arch)
		if err != nil {
			return Artifact{}, fmt.Errorf("for architecture %s: %w", arch, err)
		}
		images = append(images, platformImage{architecture: arch, image: img})
	}
	digest, err := t.write(t.path, ref, images)
	if err != nil {
		return Artifact{}, fmt.Errorf("writing %s: %w", t.path, err)
	}
	artifact := Artifact{
		Name: t.binary.Name, Reference: ref.String(), Path: t.path,
		Architectures: t.architectures, Digest: digest.String(),
	}
	return artifact, writeReceipt(receiptPath, receipt{Key: key, Artifact: artifact})
}

// key is a digest over everything that decides the artifact's content.
func (t target) key(opts Options, ref name.Tag) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "layout 1\n%s\n%s\n%s\n%s\n%s\n", opts.Format, ref, opts.Commit,
		opts.Created.Format(time.RFC3339), t.binary.Description)
	sum.Write(rootCertificates())
	for _, arch := range t.architectures {
		_, _ = fmt.Fprintf(sum, "%s\n", arch)
		if err := addFile(sum, binaryPath(opts, arch, t.binary)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func addFile(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the compiled binary: %w", err)
	}
	defer file.Close()
	if _, err := io.Copy(w, file); err != nil {
		return fmt.Errorf("reading the compiled binary %s: %w", path, err)
	}
	return nil
}

func readReceipt(path, artifactPath, key string) (Artifact, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Artifact{}, false
	}
	var found receipt
	if json.Unmarshal(data, &found) != nil || found.Key != key {
		return Artifact{}, false
	}
	if _, err := os.Stat(artifactPath); err != nil {
		return Artifact{}, false
	}
	found.Artifact.Path = artifactPath
	return found.Artifact, true
}

func writeReceipt(path string, content receipt) error {
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding receipt %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("creating the folder of receipt %s: %w", path, err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("writing receipt: %w", err)
	}
	return nil
}
