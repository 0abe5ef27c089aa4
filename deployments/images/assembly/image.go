package assembly

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// nonroot is the numeric user and group that every image runs as. It is numeric in the image's
	// configuration too, so that Kubernetes' runAsNonRoot can be checked without reading /etc/passwd.
	nonroot          = "65532:65532"
	certificatesPath = "etc/ssl/certs/ca-certificates.crt"
	passwdContent    = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"
	groupContent     = "root:x:0:\nnonroot:x:65532:\n"
)

// platformImage is the image of one architecture.
type platformImage struct {
	architecture string
	image        v1.Image
}

// newImage makes the one-layer image of a compiled binary.
func newImage(opts Options, binary Binary, arch string) (v1.Image, error) {
	content, err := os.ReadFile(binaryPath(opts, arch, binary))
	if err != nil {
		return nil, fmt.Errorf("reading the compiled binary: %w", err)
	}
	packed, err := pack(entries(binary, content), opts.Created)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil },
		tarball.WithCompressionLevel(compressionLevel(opts.Format)),
		tarball.WithCompressedCaching,
		tarball.WithMediaType(types.OCILayer),
	)
	if err != nil {
		return nil, fmt.Errorf("making the layer: %w", err)
	}
	base := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{CreatedBy: "liqo deployments/images", Created: v1.Time{Time: opts.Created}},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	layered, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's configuration: %w", err)
	}
	return mutate.ConfigFile(img, configFile(opts, binary, arch, layered))
}

// compressionLevel favours speed for archives, which are loaded on the machine that made them, and size for
// layouts, which are published.
func compressionLevel(format Format) int {
	if format == DockerArchive {
		return gzip.BestSpeed
	}
	return gzip.DefaultCompression
}

// configFile completes the configuration that the layer brought: platform, time, user, entry point, labels.
func configFile(opts Options, binary Binary, arch string, layered *v1.ConfigFile) *v1.ConfigFile {
	config := layered.DeepCopy()
	config.Architecture = arch
	config.OS = "linux"
	config.Created = v1.Time{Time: opts.Created}
	config.Config = v1.Config{
		User:       nonroot,
		WorkingDir: "/",
		Entrypoint: []string{"/usr/bin/" + binary.Name},
		Env:        []string{"PATH=/usr/bin", "SSL_CERT_FILE=/" + certificatesPath},
		Labels: map[string]string{
			"org.opencontainers.image.title":       binary.Name,
			"org.opencontainers.image.description": binary.Description,
			"org.opencontainers.image.version":     opts.Tag,
			"org.opencontainers.image.revision":    opts.Commit,
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}
	return config
}

// entry is one file or folder of the layer.
type entry struct {
	path    string
	mode    int64
	folder  bool
	content []byte
}

// entries lists the layer's content; parents stand before their children.
func entries(binary Binary, content []byte) []entry {
	return []entry{
		{path: "etc/", mode: 0o755, folder: true},
		{path: "etc/group", mode: 0o644, content: []byte(groupContent)},
		{path: "etc/passwd", mode: 0o644, content: []byte(passwdContent)},
		{path: "etc/ssl/", mode: 0o755, folder: true},
		{path: "etc/ssl/certs/", mode: 0o755, folder: true},
		{path: certificatesPath, mode: 0o644, content: rootCertificates()},
		{path: "tmp/", mode: 0o1777, folder: true},
		{path: "usr/", mode: 0o755, folder: true},
		{path: "usr/bin/", mode: 0o755, folder: true},
		{path: "usr/bin/" + binary.Name, mode: 0o755, content: content},
	}
}

// pack writes the entries as an uncompressed tar whose bytes depend on nothing but its arguments.
func pack(list []entry, created time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, e := range list {
		header := &tar.Header{
			Name: e.path, Mode: e.mode, Size: int64(len(e.content)), ModTime: created,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if e.folder {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.path, err)
		}
		if _, err := writer.Write(e.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.path, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("packing the layer: %w", err)
	}
	return buffer.Bytes(), nil
}

// rootCertificates returns the public roots that browsers trust, in PEM. Roots that are trusted only under a
// condition that a PEM file cannot express are left out.
var rootCertificates = sync.OnceValue(func() []byte {
	var buffer bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			buffer.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return buffer.Bytes()
})
