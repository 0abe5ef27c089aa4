// Package image makes the few small images that a lab needs without a registry
// and without Docker, and loads docker-archive files into the nodes.
//
// The images are a busybox from Debian's static busybox, a pause image from the
// same, CoreDNS from its binary and, for clusters that want it, the lab's ingress
// controller from its own. They are named as their users expect
// (busybox:1.36 is docker.io/library/busybox:1.36), and their tags are fixed, so
// that pods use them with the default pull policy.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// References of the lab's images.
const (
	Busybox = "docker.io/library/busybox:1.36"
	Pause   = "lab.liqo.io/pause:1"
	CoreDNS = "lab.liqo.io/coredns:1"
	Ingress = "lab.liqo.io/ingress:1"
)

// File is one file of an image.
type File struct {
	// Path is its absolute path in the image.
	Path string
	// Source is the file of this machine that is copied; empty for a link.
	Source string
	// Content is what is in it, if it is not copied.
	Content string
	// Link is the target of a symbolic link.
	Link string
	// Dir makes it a folder with mode 01777.
	Dir bool
	// Mode is the mode of a file that is not 0755.
	Mode int64
}

// Image is an image of one layer.
type Image struct {
	// Reference is its full name with tag.
	Reference string
	// Entrypoint and Command are run by default.
	Entrypoint, Command []string
	// User is whom it runs as; empty is root.
	User string
	// Files are its content.
	Files []File
}

// Archive returns the path of the image as a docker-archive in dir, writing it
// unless the same content is there already.
func (i Image) Archive(dir string) (string, error) {
	layer, err := i.layer()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, i.Reference, i.Entrypoint, i.Command, i.User)
	h.Write(layer)
	base := strings.NewReplacer("/", "-", ":", "-").Replace(i.Reference)
	path := filepath.Join(dir, base+"-"+hex.EncodeToString(h.Sum(nil))[:12]+".tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the folder for images: %w", err)
	}
	if err := i.write(path, layer); err != nil {
		return "", fmt.Errorf("writing the image %s: %w", i.Reference, err)
	}
	return path, nil
}

func (i Image) write(path string, layer []byte) error {
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil })
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{
		Entrypoint: i.Entrypoint, Cmd: i.Command, User: i.User,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return err
	}
	tag, err := name.NewTag(i.Reference)
	if err != nil {
		return err
	}
	// Parallel callers write the same content; the rename decides.
	temporary, err := os.CreateTemp(filepath.Dir(path), ".image-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if err := errors.Join(tarball.Write(tag, img, temporary), temporary.Close()); err != nil {
		return err
	}
	if err := os.Chmod(temporary.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// layer writes the files as a tar stream that depends on nothing but their content.
func (i Image) layer() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range i.Files {
		header := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: cmp.Or(f.Mode, 0o755), Format: tar.FormatPAX}
		var content []byte
		switch {
		case f.Dir:
			header.Typeflag, header.Name, header.Mode = tar.TypeDir, header.Name+"/", 0o1777
		case f.Link != "":
			header.Typeflag, header.Linkname = tar.TypeSymlink, f.Link
		case f.Source == "":
			content, header.Typeflag, header.Size = []byte(f.Content), tar.TypeReg, int64(len(f.Content))
		default:
			data, err := os.ReadFile(f.Source)
			if err != nil {
				return nil, fmt.Errorf("reading a file of the image %s: %w", i.Reference, err)
			}
			content, header.Typeflag, header.Size = data, tar.TypeReg, int64(len(data))
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing the image %s: %w", i.Reference, err)
		}
		if _, err := w.Write(content); err != nil {
			return nil, fmt.Errorf("packing the image %s: %w", i.Reference, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing the image %s: %w", i.Reference, err)
	}
	return out.Bytes(), nil
}

// busybox is the path of Debian's static busybox.
func busybox() (string, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return "", errors.New("busybox is missing, the lab makes its images from it: apt-get install busybox-static")
	}
	return path, nil
}

// Shell returns the files of an image that has a shell: Debian's static busybox, its applets, and folders for what they write.
func Shell(ctx context.Context) ([]File, error) {
	source, err := busybox()
	if err != nil {
		return nil, err
	}
	applets, err := exec.CommandContext(ctx, source, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing busybox's applets: %w", err)
	}
	files := []File{{Path: "/tmp", Dir: true}, {Path: "/var/run", Dir: true}, {Path: "/bin/busybox", Source: source}}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			files = append(files, File{Path: "/bin/" + applet, Link: "busybox"})
		}
	}
	return files, nil
}

// Programs returns the files of programs of this machine, below /usr/local/bin, with the libraries that they are linked with.
func Programs(ctx context.Context, names ...string) ([]File, error) {
	var files []File
	libraries := map[string]bool{}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("looking for a program of an image: %w", err)
		}
		files = append(files, File{Path: "/usr/local/bin/" + name, Source: path})
		out, err := exec.CommandContext(ctx, "ldd", path).Output()
		if err != nil {
			return nil, fmt.Errorf("listing the libraries of %s: %w", path, err)
		}
		for word := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(word, "/") && !libraries[word] {
				libraries[word] = true
				files = append(files, File{Path: word, Source: word})
			}
		}
	}
	return files, nil
}

// Defaults returns the images that every real cluster gets.
func Defaults(ctx context.Context, coredns string) ([]Image, error) {
	files, err := Shell(ctx)
	if err != nil {
		return nil, err
	}
	source, err := busybox()
	if err != nil {
		return nil, err
	}
	return []Image{
		{Reference: Busybox, Command: []string{"sh"}, Files: files},
		// A pod's sandbox only has to stay: the kernel reaps and the runtime kills.
		{Reference: Pause, Entrypoint: []string{"/bin/sleep", "2147483647"}, Files: []File{{Path: "/bin/sleep", Source: source}}},
		{Reference: CoreDNS, Entrypoint: []string{"/coredns"}, Files: []File{{Path: "/coredns", Source: coredns}}},
	}, nil
}

// Entrance is the image of the ingress controller, made from its program.
func Entrance(program string) Image {
	return Image{Reference: Ingress, Entrypoint: []string{"/ingress"}, Files: []File{{Path: "/ingress", Source: program}}}
}

// Load imports docker-archive (or OCI) files into the containerd behind a socket.
func Load(ctx context.Context, socket string, archives ...string) error {
	for _, archive := range archives {
		out, err := exec.CommandContext(ctx, "ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", archive).CombinedOutput()
		if err != nil {
			return fmt.Errorf("loading the image archive %s: %w: %s", archive, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
