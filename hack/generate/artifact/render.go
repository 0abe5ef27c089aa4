package artifact

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	deepcopyFile   = "zz_generated.deepcopy.go"
	deepcopyMarker = "+kubebuilder:object:generate=true"
	// crdFolder is read by a template of the chart; helm's own folder for CRDs would never be upgraded.
	crdFolder = "charts/liqo/charts/liqo-crds/files"
)

// typeFolders are the trees in which packages of API and configuration types live.
var typeFolders = []string{"pkg/apis", "pkg/config"}

// Options say where to read and which generator to run.
type Options struct {
	// Root is the folder of the Go module.
	Root string
	// ControllerGen is the path of the controller-gen binary.
	ControllerGen string
	// ProtoPlugins are the paths of the plugins of the protobuf compiler.
	ProtoPlugins []string
}

// Render produces all generated files. It fails with the generator's own words when the code does not parse or
// a marker is wrong.
func Render(ctx context.Context, opts Options) (Set, error) {
	set := Set{Files: map[string][]byte{}}
	steps := []func(context.Context, Options) (Set, error){renderDeepcopy, renderCRDs, renderRoles, renderServices, renderElements}
	for _, step := range steps {
		part, err := step(ctx, opts)
		if err != nil {
			return Set{}, err
		}
		maps.Copy(set.Files, part.Files)
		set.Owned = append(set.Owned, part.Owned...)
	}
	return set, nil
}

func renderDeepcopy(ctx context.Context, opts Options) (Set, error) {
	set := Set{Files: map[string][]byte{}}
	for _, folder := range typeFolders {
		// One pattern per depth: pkg/config/v1alpha1 and pkg/apis/core/v1beta1.
		set.Owned = append(set.Owned, Owned{Pattern: folder + "/*/" + deepcopyFile}, Owned{Pattern: folder + "/*/*/" + deepcopyFile})
		packages, err := markedPackages(opts.Root, folder)
		if err != nil {
			return Set{}, err
		}
		for _, pkg := range packages {
			files, err := generate(ctx, opts, "object", "paths=./"+pkg)
			if err != nil {
				return Set{}, fmt.Errorf("generating deepcopy functions of %s: %w", pkg, err)
			}
			for _, content := range files {
				set.Files[pkg+"/"+deepcopyFile] = content
			}
		}
	}
	return set, nil
}

// markedPackages lists the folders below folder whose Go files carry the deepcopy marker.
func markedPackages(root, folder string) ([]string, error) {
	var packages []string
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() || !strings.HasSuffix(path, ".go") || filepath.Base(path) == deepcopyFile {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(content, []byte(deepcopyMarker)) {
			return err
		}
		relative, err := filepath.Rel(root, filepath.Dir(path))
		pkg := filepath.ToSlash(relative)
		if len(packages) == 0 || packages[len(packages)-1] != pkg {
			packages = append(packages, pkg)
		}
		return err
	})
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for API packages in %s: %w", folder, err)
	}
	return packages, nil
}

func renderCRDs(ctx context.Context, opts Options) (Set, error) {
	set := Set{Files: map[string][]byte{}, Owned: []Owned{{Pattern: crdFolder + "/*.yaml"}}}
	if _, err := os.Stat(filepath.Join(opts.Root, "pkg", "apis")); os.IsNotExist(err) {
		return set, nil
	}
	// Embedded metadata (pod and Deployment templates) is kept, else the API server would prune it.
	files, err := generate(ctx, opts, "crd:generateEmbeddedObjectMeta=true", "paths=./pkg/apis/...")
	if err != nil {
		return Set{}, fmt.Errorf("generating CRDs: %w", err)
	}
	for name, content := range files {
		completed, err := completeCRD(content)
		if err != nil {
			return Set{}, fmt.Errorf("generating CRD %s: %w", name, err)
		}
		set.Files[crdFolder+"/"+name] = completed
	}
	return set, nil
}

// generate runs controller-gen with the given generator and paths, and returns what it wrote by file name.
func generate(ctx context.Context, opts Options, args ...string) (map[string][]byte, error) {
	folder, err := os.MkdirTemp("", "liqo-generate-")
	if err != nil {
		return nil, fmt.Errorf("creating a scratch folder: %w", err)
	}
	defer os.RemoveAll(folder)
	cmd := exec.CommandContext(ctx, opts.ControllerGen, append(args, "output:dir="+folder)...)
	cmd.Dir = opts.Root
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		// What follows the error is a page of help about flags that the caller has not chosen.
		words, _, _ := strings.Cut(output.String(), "\nUsage:")
		return nil, fmt.Errorf("running controller-gen %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(words))
	}
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("listing what controller-gen wrote: %w", err)
	}
	files := map[string][]byte{}
	for _, item := range found {
		content, err := os.ReadFile(filepath.Join(folder, item.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading what controller-gen wrote: %w", err)
		}
		files[item.Name()] = content
	}
	return files, nil
}
