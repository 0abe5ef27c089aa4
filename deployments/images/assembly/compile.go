package assembly

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const versionPackage = "liqo.io/liqo/pkg/version"

// binaryPath is where the compiled binary of one architecture is kept between runs.
func binaryPath(opts Options, arch string, binary Binary) string {
	return filepath.Join(opts.Out, ".bin", arch, binary.Name)
}

// compile builds all binaries for linux on one architecture, statically, in one go command: the packages that
// they share are loaded once, and what is up to date is neither compiled nor linked again.
func compile(ctx context.Context, opts Options, arch string, binaries []Binary) error {
	folder := filepath.Join(opts.Out, ".bin", arch)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("creating the folder for binaries: %w", err)
	}
	// The linker would throw the debug information away; the compiler is faster without it. The tag is explained in the Makefile.
	args := []string{
		"build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-tags=grpcnotrace",
		"-ldflags", linkerFlags(opts), "-o", folder + string(filepath.Separator),
	}
	for _, binary := range binaries {
		args = append(args, binary.Package)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = opts.Root
	// GOFLAGS of the caller (-race, -cover, -tags) must not leak into what is shipped.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=", "GOWORK=off", "GOGC=300")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compiling for linux/%s: %w\n%s", arch, err, strings.TrimSpace(output.String()))
	}
	return nil
}

func linkerFlags(opts Options) string {
	flags := "-s -w -X " + versionPackage + ".Version=" + opts.Tag
	if opts.Commit != "" {
		flags += " -X " + versionPackage + ".Commit=" + opts.Commit
	}
	return flags
}
