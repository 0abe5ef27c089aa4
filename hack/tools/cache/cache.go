package cache

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"syscall"
)

// Tool is a Go program at a pinned version.
type Tool struct {
	// Package is the import path of the main package.
	Package string
	// Version is the module version, such as v1.2.3.
	Version string
}

// Known maps each tool's name, which is its binary's name too, to the version that this project uses.
var Known = map[string]Tool{
	"controller-gen":     {Package: "sigs.k8s.io/controller-tools/cmd/controller-gen", Version: "v0.23.0"},
	"golangci-lint":      {Package: "github.com/golangci/golangci-lint/v2/cmd/golangci-lint", Version: "v2.15.0"},
	"goreleaser":         {Package: "github.com/goreleaser/goreleaser/v2", Version: "v2.16.0"},
	"cyclonedx-gomod":    {Package: "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod", Version: "v1.7.0"},
	"gotestsum":          {Package: "gotest.tools/gotestsum", Version: "v1.13.0"},
	"govulncheck":        {Package: "golang.org/x/vuln/cmd/govulncheck", Version: "v1.9.0"},
	"helm":               {Package: "helm.sh/helm/v3/cmd/helm", Version: "v3.22.0"},
	"protoc-gen-go":      {Package: "google.golang.org/protobuf/cmd/protoc-gen-go", Version: "v1.36.12"},
	"protoc-gen-go-grpc": {Package: "google.golang.org/grpc/cmd/protoc-gen-go-grpc", Version: "v1.6.2"},
}

// Root returns the folder in which this project keeps what it builds outside the checkout.
func Root() (string, error) {
	if folder := os.Getenv("LIQO_CACHE"); folder != "" {
		return filepath.Abs(folder)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding a cache folder (set LIQO_CACHE to one): %w", err)
	}
	return filepath.Join(home, ".cache", "liqo"), nil
}

// Path returns the path of the named tool's binary below root, after building it if needed. Building takes from
// one to ten minutes; one line about it goes to progress. An unknown name is an error that lists the known ones.
func Path(ctx context.Context, root, name string, progress io.Writer) (string, error) {
	tool, known := Known[name]
	if !known {
		return "", fmt.Errorf("there is no tool %q: known are %s", name, strings.Join(Names(), ", "))
	}
	folder := filepath.Join(root, "tools", name+"-"+tool.Version)
	binary := filepath.Join(folder, name)
	if usable(binary) {
		return binary, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("creating the folder of tool %s: %w", name, err)
	}
	unlock, err := lock(folder + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	// Another process may have built it while this one waited.
	if usable(binary) {
		return binary, nil
	}
	_, _ = fmt.Fprintf(progress, "building %s %s once, into %s\n", name, tool.Version, folder)
	if err := install(ctx, tool, folder); err != nil {
		return "", fmt.Errorf("building tool %s %s: %w", name, tool.Version, err)
	}
	if !usable(binary) {
		return "", fmt.Errorf("building tool %s %s left no usable binary at %s", name, tool.Version, binary)
	}
	return binary, nil
}

// Names lists the known tools alphabetically.
func Names() []string {
	names := make([]string, 0, len(Known))
	for name := range Known {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// usable tells whether the binary is there and was built by the language release of the running toolchain.
func usable(binary string) bool {
	info, err := buildinfo.ReadFile(binary)
	return err == nil && version.Lang(info.GoVersion) == version.Lang(runtime.Version())
}

// install builds into a folder of its own and moves the binary into place, so that an interrupted build leaves
// nothing that looks finished.
func install(ctx context.Context, tool Tool, folder string) error {
	partial, err := os.MkdirTemp(folder, "build-")
	if err != nil {
		return fmt.Errorf("creating a build folder: %w", err)
	}
	defer os.RemoveAll(partial)
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-buildvcs=false", tool.Package+"@"+tool.Version)
	cmd.Dir = partial
	cmd.Env = append(os.Environ(), "GOBIN="+partial, "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=local")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(output.String()))
	}
	built, err := filepath.Glob(filepath.Join(partial, "*"))
	if err != nil || len(built) != 1 {
		return errors.Join(fmt.Errorf("want one binary in %s, found %d", partial, len(built)), err)
	}
	if err := os.Rename(built[0], filepath.Join(folder, filepath.Base(built[0]))); err != nil {
		return fmt.Errorf("moving the binary into place: %w", err)
	}
	return nil
}

// lock takes an exclusive lock that other processes wait for; the kernel frees it if this process dies.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
