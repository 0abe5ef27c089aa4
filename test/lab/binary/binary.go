package binary

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"liqo.io/liqo/test/lab/step"
)

const (
	// EnvReady names a directory of ready binaries, which switches building off.
	EnvReady = "LIQO_LAB_BIN"
	// EnvCache names the cache directory to use instead of the user's.
	EnvCache = "LIQO_LAB_CACHE"
	// KubernetesVersion is the version of Kubernetes that hack/kube/go.mod pins and a lab runs.
	KubernetesVersion = "v1.36.3"
)

// Names of the programs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
	Proxy             = "kube-proxy"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	CoreDNS           = "coredns"
	Flannel           = "flannel"
	Provisioner       = "provisioner"
	Ingress           = "ingress"
	// Relay makes links slow.
	Relay = "relay"
	// Ginkgo runs E2E in several processes; Agnhost and NoNewPrivs are programs of its images.
	E2E        = "e2e.test"
	Ginkgo     = "ginkgo"
	Agnhost    = "agnhost"
	NoNewPrivs = "nonewprivs"
	// MetricsServer measures what pods and nodes use.
	MetricsServer = "metrics-server"
)

// Set maps the name of a program to the path of its file.
type Set map[string]string

// module is one Go module and the programs that are built from it.
type module struct {
	name     string
	dir      string            // relative to the checkout
	ldflags  string            // in addition to stripping
	packages map[string]string // program → package
	inputs   []string          // files and folders, relative to dir, that decide the content
}

func modules() []module {
	kube := map[string]string{}
	for _, name := range []string{APIServer, ControllerManager, Scheduler, Kubelet, Proxy, Kubectl} {
		kube[name] = "k8s.io/kubernetes/cmd/" + name
	}
	pinned := []string{"go.mod", "go.sum"}
	written := append(slices.Clone(pinned), "main.go")
	return []module{
		{name: "kubernetes", dir: "hack/kube", packages: kube, inputs: pinned, ldflags: versionFlags(KubernetesVersion)},
		{
			name: conformance, dir: "hack/kube/e2e", inputs: pinned, ldflags: versionFlags(KubernetesVersion),
			packages: map[string]string{
				E2E: "k8s.io/kubernetes/test/e2e", Ginkgo: "github.com/onsi/ginkgo/v2/ginkgo",
				Agnhost: "k8s.io/kubernetes/test/images/agnhost", NoNewPrivs: "k8s.io/kubernetes/test/images/nonewprivs",
			},
		},
		{
			name: measuring, dir: "hack/kube/metrics-server", packages: map[string]string{MetricsServer: "sigs.k8s.io/metrics-server/cmd/metrics-server"},
			inputs: pinned,
		},
		{name: "etcd", dir: "hack/kube/etcd", packages: map[string]string{Etcd: "go.etcd.io/etcd/server/v3"}, inputs: pinned},
		{name: "kwok", dir: "hack/kube/kwok", packages: map[string]string{Kwok: "sigs.k8s.io/kwok/cmd/kwok"}, inputs: pinned},
		{name: "coredns", dir: "hack/kube/coredns", packages: map[string]string{CoreDNS: "."}, inputs: written},
		{name: "flannel", dir: "hack/kube/flannel", packages: map[string]string{Flannel: "."}, inputs: written},
		{
			name: "provisioner", dir: ".", packages: map[string]string{Provisioner: "./test/lab/volume/provisioner"},
			inputs: append(slices.Clone(pinned), "test/lab/volume"),
		},
		{
			name: "ingress", dir: ".", packages: map[string]string{Ingress: "./test/lab/ingress/controller"},
			inputs: append(slices.Clone(pinned), "test/lab/ingress"),
		},
		{
			name: "relay", dir: ".", packages: map[string]string{Relay: "./test/lab/network/relay"},
			inputs: append(slices.Clone(pinned), "test/lab/network/relay"),
		},
	}
}

// conformance and measuring are the modules that only some tests need.
const conformance, measuring = "conformance", "metrics-server"

// Usual lists the programs of labs, without those that only some tests need, in alphabetical order.
func Usual() (names []string) {
	for _, m := range modules() {
		if m.name != conformance && m.name != measuring {
			names = slices.AppendSeq(names, maps.Keys(m.packages))
		}
	}
	slices.Sort(names)
	return names
}

// versionFlags makes the binaries report their version instead of v0.0.0.
func versionFlags(version string) string {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	const pkg = "k8s.io/component-base/version."
	return fmt.Sprintf("-X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", pkg, version, pkg, parts[0], pkg, parts[1])
}

// Ensure returns the named programs, building into the cache what is missing there.
func Ensure(ctx context.Context, names []string, o step.Observer) (Set, error) {
	if dir := os.Getenv(EnvReady); dir != "" {
		return ready(dir, names)
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	set := Set{}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(2) // while one links, the other one compiles
	for _, m := range modules() {
		var wanted []string
		for name := range m.packages {
			if slices.Contains(names, name) {
				wanted = append(wanted, name)
			}
		}
		slices.Sort(wanted)
		if len(wanted) == 0 {
			continue
		}
		dir, err := m.folder(root, cache)
		if err != nil {
			return nil, err
		}
		for _, name := range wanted {
			set[name] = filepath.Join(dir, name)
		}
		group.Go(func() error { return m.ensure(groupCtx, root, dir, wanted, o) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return set, nil
}

// ready finds the programs in a directory that the user prepared.
func ready(dir string, names []string) (Set, error) {
	set, missing := Set{}, []string{}
	for _, name := range names {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			missing = append(missing, name)
			continue
		}
		set[name] = file
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s=%s lacks the programs %s: put executables of these names there, or unset %s to have them built",
			EnvReady, dir, strings.Join(missing, ", "), EnvReady)
	}
	return set, nil
}

// CacheDir is the folder for everything that outlives a lab.
func CacheDir() (string, error) {
	if dir := os.Getenv(EnvCache); dir != "" {
		return filepath.Abs(dir)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory is known (%w): set %s to a folder with 2 GB of free space", err, EnvCache)
	}
	return filepath.Join(user, "liqo-lab"), nil
}

// checkout finds the root of the product's module above the working directory.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "hack", "kube", "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("hack/kube/go.mod was not found above the working directory: run inside the checkout, or set %s to a folder with ready binaries", EnvReady)
		}
		dir = parent
	}
}

// folder is where the module's binaries are kept.
func (m module) folder(root, cache string) (string, error) {
	key, err := m.key(root)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "bin", m.name+"-"+key), nil
}

// ensure has the named programs in a folder.
func (m module) ensure(ctx context.Context, root, dir string, names []string, o step.Observer) error {
	missing := lacking(dir, names)
	if len(missing) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating the cache folder: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock", o)
	if err != nil {
		return err
	}
	defer unlock()
	// Those that the one who held the lock has built are there now.
	if missing = lacking(dir, missing); len(missing) == 0 {
		return nil
	}
	return step.Run(o, "building "+strings.Join(missing, ", "), func() error { return m.build(ctx, root, dir, missing) })
}

// lacking lists the programs that a folder does not have.
func lacking(dir string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// key hashes everything that decides what the module's binaries contain.
func (m module) key(root string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.GOOS, runtime.GOARCH, m.ldflags)
	for _, input := range m.inputs {
		err := filepath.WalkDir(filepath.Join(root, m.dir, input), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(file, "_test.go") {
				return err
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			fmt.Fprintln(h, filepath.Base(file), len(data))
			h.Write(data)
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("hashing the sources of %s: %w", m.name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// build builds programs into a folder: those that share packages by one command, which compiles packages and links programs side by side.
func (m module) build(ctx context.Context, root, dir string, names []string) error {
	partial, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return fmt.Errorf("creating a build folder: %w", err)
	}
	defer os.RemoveAll(partial)
	var together []string
	for _, name := range names {
		if path.Base(m.packages[name]) == name {
			together = append(together, name)
		}
	}
	groups := [][]string{}
	if len(together) > 0 {
		groups = append(groups, together)
	}
	for _, name := range names {
		if !slices.Contains(together, name) {
			groups = append(groups, []string{name}) // not named as go build would
		}
	}
	for _, group := range groups {
		if err := m.command(ctx, root, partial, group); err != nil {
			return err
		}
		for _, name := range group {
			if err := os.Rename(filepath.Join(partial, name), filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("placing %s in the cache: %w", name, err)
			}
		}
	}
	return nil
}

// compilerMemory has Go's compiler collect its garbage seldom, which takes a fifth less time (go build of client-go's typed clients).
const compilerMemory = "GOGC=300"

// command builds programs by one go command: one of any name, or several that are called as their packages are.
func (m module) command(ctx context.Context, root, dir string, names []string) error {
	verb, output := []string{"build"}, dir+string(filepath.Separator)
	if len(names) == 1 {
		output += names[0]
		if strings.HasSuffix(names[0], ".test") {
			verb = []string{"test", "-c"} // the program is the tests of its package
		}
	}
	// The linker would throw the debug information away; without it the compiler is faster, and what it made serves the product's own programs.
	// Half of the time packages wait for files: more of them than processors are compiled at once.
	args := append(verb, "-p", strconv.Itoa(2*runtime.NumCPU()), "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags", strings.TrimSpace("-s -w "+m.ldflags), "-o", output)
	for _, name := range names {
		args = append(args, m.packages[name])
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, m.dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", compilerMemory)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return buildError(strings.Join(names, ", "), said.String(), err)
	}
	return nil
}

// buildError turns what the compiler said into one sentence with its remedy.
func buildError(name, output string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("building %s needs Go, which was not found in PATH: install Go 1.26 or set %s to a folder with ready binaries", name, EnvReady)
	case strings.Contains(output, "no space left on device"):
		return fmt.Errorf("building %s ran out of disk: free 5 GB, or move the cache with %s and GOCACHE", name, EnvCache)
	}
	tail := strings.TrimSpace(output)
	if len(tail) > 2000 {
		tail = tail[len(tail)-2000:]
	}
	return fmt.Errorf("building %s: %w: %s", name, err, tail)
}

// lock takes the exclusive lock on a file, telling the observer when another caller holds it.
func lock(ctx context.Context, name string, o step.Observer) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the binary cache: %w", err)
	}
	release := func() { _ = file.Close() } // closing releases the lock
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return release, nil
	}
	done := o.Start("waiting for another process that builds the same binaries")
	locked := make(chan error, 1)
	go func() { locked <- syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }()
	select {
	case err = <-locked:
	case <-ctx.Done():
		err = ctx.Err()
	}
	done(err)
	if err != nil {
		release()
		return nil, fmt.Errorf("waiting for the lock of the binary cache: %w", err)
	}
	return release, nil
}

// Copy writes a copy of a program to w; images are made from it.
func (s Set) Copy(w io.Writer, name string) error {
	f, err := os.Open(s[name])
	if err != nil {
		return fmt.Errorf("reading the program %s: %w", name, err)
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("copying the program %s: %w", name, err)
	}
	return nil
}
