// Package host checks that this machine can run what a lab needs and installs
// missing distribution packages where it may: on Debian and Ubuntu, as root.
// Every refusal is one sentence that says what is missing and how to get it.
package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"liqo.io/liqo/test/lab/step"
)

// Machine is what the checks look at; tests pass an invented one.
type Machine struct {
	// UID is the effective user id.
	UID int
	// Look finds a program in PATH.
	Look func(program string) (string, error)
	// Exists says whether a path exists.
	Exists func(path string) bool
	// Kernel is the kernel's release, such as 6.1.0-18-amd64.
	Kernel string
	// Filesystems is the content of /proc/filesystems.
	Filesystems string
	// Free returns the free bytes of the file system that holds a path.
	Free func(path string) (uint64, error)
	// Packages says whether apt-get may be used.
	Packages bool
	// Watchers is the file with how many inotify instances a user may have.
	Watchers string
}

// pluginDirs are the places where distributions put CNI plugins.
var pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Program is a program and the Debian package that it is in.
type Program struct{ Name, Package string }

// required are the programs of a lab with real nodes.
var required = []Program{
	{"ip", "iproute2"},
	{"nsenter", "util-linux"},
	{"nft", "nftables"},
	{"iptables", "iptables"}, // used by the CNI plugin for host ports
	{"conntrack", "conntrack"},
	{"mount", "mount"},
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"busybox", "busybox-static"},
}

// Programs returns those of a lab with real nodes that have these names.
func Programs(names ...string) (programs []Program, err error) {
	for _, name := range names {
		i := slices.IndexFunc(required, func(p Program) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("real nodes need no program %q", name)
		}
		programs = append(programs, required[i])
	}
	return programs, nil
}

const (
	pluginPackage = "containernetworking-plugins"
	oldestKernel  = "5.13" // kube-proxy's nftables mode
	neededDisk    = 3 << 30
	// neededWatchers are enough for several labs: each has about 15 for each control plane and ten for each node, and Linux gives 128.
	neededWatchers = 1024
)

// This returns the machine that we run on.
func This() Machine {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	filesystems, _ := os.ReadFile("/proc/filesystems")
	_, err := exec.LookPath("apt-get")
	return Machine{
		UID:  os.Geteuid(),
		Look: exec.LookPath,
		Exists: func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		},
		Kernel:      strings.TrimSpace(string(release)),
		Filesystems: string(filesystems),
		Free:        free,
		Packages:    err == nil,
		Watchers:    "/proc/sys/fs/inotify/max_user_instances",
	}
}

// free looks at the closest ancestor that exists.
func free(path string) (uint64, error) {
	for {
		var s syscall.Statfs_t
		err := syscall.Statfs(path, &s)
		if err == nil {
			return s.Bavail * uint64(s.Bsize), nil
		}
		if path == filepath.Dir(path) {
			return 0, err
		}
		path = filepath.Dir(path)
	}
}

// CheckDisk refuses a folder whose file system is nearly full.
func (m Machine) CheckDisk(path string) error {
	bytes, err := m.Free(path)
	if err != nil {
		return fmt.Errorf("reading the free space of %s: %w", path, err)
	}
	if bytes < neededDisk {
		return fmt.Errorf("only %d MB are free on the disk of %s: free at least 3 GB, or move the lab with LIQO_LAB_STATE and LIQO_LAB_CACHE", bytes>>20, path)
	}
	return nil
}

// CheckKernel refuses a machine whose user or kernel cannot run real nodes.
func (m Machine) CheckKernel() error {
	if m.UID != 0 {
		return fmt.Errorf("real nodes need root and this user has id %d: run it with sudo, or declare simulated nodes only", m.UID)
	}
	if older(m.Kernel, oldestKernel) {
		return fmt.Errorf("this kernel is %s and kube-proxy needs %s or newer: boot a newer kernel, or declare simulated nodes only", m.Kernel, oldestKernel)
	}
	if !strings.Contains(m.Filesystems, "overlay") {
		return fmt.Errorf("this kernel has no overlay file system, which containers need: load it with \"modprobe overlay\"")
	}
	return nil
}

// bridgeFilter is there if the rules of Services see what passes a bridge, too.
const bridgeFilter = "/proc/sys/net/bridge/bridge-nf-call-iptables"

// CheckBridges refuses a kernel in which pods on one bridge do not reach each other by Services.
func (m Machine) CheckBridges() error {
	if !m.Exists(bridgeFilter) {
		return fmt.Errorf("this kernel does not filter what passes bridges, which pods of flannel need: run \"modprobe br_netfilter\", or use ptp")
	}
	return nil
}

// MissingPackages returns the Debian packages to install for a lab with real nodes.
func (m Machine) MissingPackages() []string {
	if m.PluginDir() == "" {
		return append(m.packagesOf(required), pluginPackage)
	}
	return m.packagesOf(required)
}

// packagesOf returns the packages of the programs that are missing.
func (m Machine) packagesOf(programs []Program) []string {
	var missing []string
	for _, p := range programs {
		if _, err := m.Look(p.Name); err != nil && !slices.Contains(missing, p.Package) {
			missing = append(missing, p.Package)
		}
	}
	return missing
}

// PluginDir returns the folder of the CNI plugins; empty when there is none.
func (m Machine) PluginDir() string {
	for _, dir := range pluginDirs {
		if m.Exists(filepath.Join(dir, "ptp")) && m.Exists(filepath.Join(dir, "host-local")) {
			return dir
		}
	}
	return ""
}

// Prepare makes the machine ready for real nodes, installing packages when it may. A limit of inotify that is too low for several kubelets
// is raised until the machine starts again.
func (m Machine) Prepare(ctx context.Context, o step.Observer) error {
	if err := errors.Join(m.CheckKernel(), m.raiseWatchers()); err != nil {
		return err
	}
	return m.install(ctx, o, m.MissingPackages())
}

// Install installs the packages of programs that the machine lacks.
func (m Machine) Install(ctx context.Context, o step.Observer, programs ...Program) error {
	return m.install(ctx, o, m.packagesOf(programs))
}

// raiseWatchers raises the limit of inotify instances, and never lowers it.
func (m Machine) raiseWatchers() error {
	if m.UID != 0 {
		return nil // refused already
	}
	text, err := os.ReadFile(m.Watchers)
	if err != nil {
		return fmt.Errorf("reading how many inotify instances there may be: %w", err)
	}
	if limit, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && limit >= neededWatchers {
		return nil
	}
	if err := os.WriteFile(m.Watchers, []byte(strconv.Itoa(neededWatchers)), 0o600); err != nil {
		return fmt.Errorf("kubelets need more inotify instances: run \"sysctl -w fs.inotify.max_user_instances=%d\": %w", neededWatchers, err)
	}
	return nil
}

func (m Machine) install(ctx context.Context, o step.Observer, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	if !m.Packages {
		return fmt.Errorf("this machine lacks %s (names of Debian packages) and has no apt-get to install them: install them with the distribution's package manager", strings.Join(missing, ", "))
	}
	return step.Run(o, "installing "+strings.Join(missing, ", "), func() error {
		if err := apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, missing...)...); err == nil {
			return nil
		}
		// The package lists may be old or absent.
		if err := apt(ctx, "update"); err != nil {
			return err
		}
		return apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, missing...)...)
	})
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return fmt.Errorf("apt-get %s: %w: %s (install the packages by hand and try again)", strings.Join(args, " "), err, lines[len(lines)-1])
	}
	return nil
}

// older compares the first two numbers of kernel releases.
func older(release, than string) bool {
	a, b := numbers(release), numbers(than)
	return a[0] < b[0] || a[0] == b[0] && a[1] < b[1]
}

func numbers(release string) [2]int {
	var n [2]int
	for i, part := range strings.SplitN(release, ".", 3) {
		if i < 2 {
			n[i], _ = strconv.Atoi(strings.TrimRight(part, "-+abcdefghijklmnopqrstuvwxyz"))
		}
	}
	return n
}
