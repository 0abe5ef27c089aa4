package assembly

import (
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeArchive writes a single image as a docker-archive; a reader never sees half a file. It returns the image's
// ID, because an archive holds no manifest whose digest could be given.
func writeArchive(path string, ref name.Tag, images []platformImage) (v1.Hash, error) {
	img := images[0].image
	partial := path + ".partial"
	if err := tarball.WriteToFile(partial, ref, img); err != nil {
		return v1.Hash{}, fmt.Errorf("writing the docker-archive: %w", err)
	}
	if err := os.Rename(partial, path); err != nil {
		return v1.Hash{}, fmt.Errorf("moving the docker-archive into place: %w", err)
	}
	return img.ConfigName()
}

// writeLayout writes an OCI layout that holds one index over the images of all architectures, and returns the
// index's digest.
func writeLayout(path string, ref name.Tag, images []platformImage) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        platform.image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: platform.architecture}},
		})
	}
	partial := path + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return v1.Hash{}, fmt.Errorf("removing the remains of an interrupted run: %w", err)
	}
	folder, err := layout.Write(partial, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("creating the OCI layout: %w", err)
	}
	annotation := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": ref.String()})
	if err := folder.AppendIndex(index, annotation); err != nil {
		return v1.Hash{}, fmt.Errorf("writing the OCI index: %w", err)
	}
	if err := os.RemoveAll(path); err != nil {
		return v1.Hash{}, fmt.Errorf("removing the previous OCI layout: %w", err)
	}
	if err := os.Rename(partial, path); err != nil {
		return v1.Hash{}, fmt.Errorf("moving the OCI layout into place: %w", err)
	}
	return index.Digest()
}
