package skew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"liqo.io/liqo/hack/tools/cache"
)

// Recorded is the commit of the last release, which the present code has to work with. When a release is made, its commit is written here,
// in the commit after it, and `make skew` has to pass.
const Recorded = "5ce274ce711d3d55fd8e50ea26d0a6f1622fdaa0"

const (
	recorded = "recorded"
	present  = "present"
)

// Release is the code of one commit, compiled.
type Release struct {
	// Name says which one it is, and Tag is the version that its programs and images have.
	Name, Tag string
	// Liqoctl is the path of its liqoctl.
	Liqoctl string
	// Images are archives of its images.
	Images []string
}

// BuildPresent compiles a checkout into a folder.
func BuildPresent(ctx context.Context, checkout, folder string) (*Release, error) {
	return build(ctx, present, checkout, folder)
}

// BuildRecorded compiles the recorded release, or finds what an earlier run compiled.
func BuildRecorded(ctx context.Context, checkout string) (*Release, error) {
	root, err := cache.Root()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(root, "skew", Recorded)
	source := filepath.Join(folder, "source")
	if _, err := os.Stat(source); errors.Is(err, os.ErrNotExist) {
		if err := unpack(ctx, checkout, source); err != nil {
			return nil, err
		}
	}
	return build(ctx, recorded, source, folder)
}

// unpack writes the files of the recorded commit into a folder, which is there whole or not at all.
func unpack(ctx context.Context, checkout, folder string) error {
	git := func(args ...string) error {
		return run(ctx, checkout, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	}
	if git("cat-file", "-e", Recorded+"^{commit}") != nil {
		return fmt.Errorf("this clone has not the commit of the last release: fetch it with 'git fetch --unshallow', or with 'git fetch origin %s'", Recorded)
	}
	part := folder + ".part"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o750)); err != nil {
		return fmt.Errorf("making a folder for the recorded release: %w", err)
	}
	archive := folder + ".tar"
	if err := git("archive", "--format=tar", "--output="+archive, Recorded); err != nil {
		return err
	}
	if err := run(ctx, part, "tar", "-xf", archive); err != nil {
		return err
	}
	return errors.Join(os.Remove(archive), os.Rename(part, folder))
}

// build compiles what a release consists of, as its own code says. Go's cache makes it fast if nothing changed.
func build(ctx context.Context, name, source, folder string) (*Release, error) {
	r := &Release{Name: name, Tag: name, Liqoctl: filepath.Join(folder, "liqoctl")}
	images := filepath.Join(folder, "images")
	if err := run(ctx, source, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X liqo.io/liqo/pkg/version.Version="+r.Tag,
		"-o", r.Liqoctl, "./cmd/liqoctl"); err != nil {
		return nil, err
	}
	programs := []string{"liqo-controller-manager", "virtual-kubelet", "liqo-volume"}
	for _, agent := range []string{"liqo-fabric", "liqo-gateway"} { // The recorded release has no network module.
		if _, err := os.Stat(filepath.Join(source, "cmd", agent)); err == nil {
			programs = append(programs, agent)
		}
	}
	args := append([]string{"run", "-buildvcs=false", "./deployments/images", "--out", images, "--tag", r.Tag}, programs...)
	if err := run(ctx, source, "go", args...); err != nil {
		return nil, err
	}
	var err error
	if r.Images, err = filepath.Glob(filepath.Join(images, "*.tar")); err == nil && len(r.Images) != len(programs) {
		err = fmt.Errorf("%d images were made in %s, want %d", len(r.Images), images, len(programs))
	}
	return r, err
}

// run runs a program in a folder to its end.
func run(ctx context.Context, folder, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
