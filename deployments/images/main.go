// Command images assembles the container images of this project without Docker. See package assembly for
// what goes into them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"liqo.io/liqo/deployments/images/assembly"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("images", pflag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(os.Stderr, "Assemble container images.\n\nUsage: go run ./deployments/images --out DIR [image...]\n\nFlags:")
		flags.PrintDefaults()
	}
	out := flags.String("out", "", "folder that receives the images")
	format := flags.String("format", string(assembly.DockerArchive), "docker-archive or oci")
	arch := flags.StringSlice("arch", nil, "architectures (default: this machine's for docker-archive, amd64 and arm64 for oci)")
	tag := flags.String("tag", "v0.0.0-dev", "tag of the images and version of the binaries")
	prefix := flags.String("repository-prefix", assembly.DefaultRepositoryPrefix, "what image names start with")
	root := flags.String("root", ".", "folder of the Go module")
	if err := flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	binaries, err := assembly.Select(flags.Args()...)
	if err != nil {
		return err
	}
	created, err := creationTime(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	artifacts, err := assembly.Assemble(ctx, assembly.Options{
		Root:             *root,
		Out:              *out,
		Format:           assembly.Format(*format),
		Architectures:    architectures(*arch, assembly.Format(*format)),
		RepositoryPrefix: *prefix,
		Tag:              *tag,
		Commit:           commit(ctx, *root),
		Created:          created,
		Progress:         func(line string) { fmt.Fprintln(os.Stderr, line) },
	}, binaries...)
	if err != nil {
		return err
	}
	for _, artifact := range artifacts {
		fmt.Printf("%s\t%s\t%s\n", artifact.Reference, artifact.Digest, relative(artifact.Path))
	}
	return nil
}

func architectures(wanted []string, format assembly.Format) []string {
	switch {
	case len(wanted) > 0:
		return wanted
	case format == assembly.OCI:
		return []string{"amd64", "arm64"}
	default:
		return []string{runtime.GOARCH}
	}
}

// creationTime reads SOURCE_DATE_EPOCH, the convention of reproducible builds; empty means the Unix epoch.
func creationTime(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH must be a number of seconds: %w", err)
	}
	return time.Unix(seconds, 0), nil
}

// commit returns the commit of the checkout, or nothing when Git cannot tell (an unpacked source archive).
func commit(ctx context.Context, root string) string {
	output, err := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "-C", root, "rev-parse", "--verify", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(output))
}

func relative(path string) string {
	folder, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(folder, path)
	if err != nil || strings.HasPrefix(short, "..") {
		return path
	}
	return short
}
