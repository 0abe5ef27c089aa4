package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// namespaceDir is where iproute2 keeps named network namespaces.
const namespaceDir = "/run/netns"

// ErrNoRouter is returned for faults that only a router can have.
var ErrNoRouter = errors.New("only the router of a routed lab can do more to a link than to cut it: declare the lab with routed: true")

// Intact says whether every namespace of the plan exists and is plugged into the switch.
func (p Plan) Intact(ctx context.Context) bool {
	ports, err := p.switchPorts(ctx)
	if err != nil || !ports["p0"] {
		return false
	}
	for _, e := range p.Endpoints {
		if _, err := os.Stat(filepath.Join(namespaceDir, e.Namespace)); err != nil || !ports[e.Port] {
			return false
		}
	}
	return true
}

func (p Plan) switchPorts(ctx context.Context) (map[string]bool, error) {
	if _, err := os.Stat(filepath.Join(namespaceDir, p.Switch())); err != nil {
		return nil, err
	}
	out, err := run(ctx, nil, "ip", "-n", p.Switch(), "-j", "link", "show")
	if err != nil {
		return nil, err
	}
	var links []struct {
		Name string `json:"ifname"`
	}
	if err := json.Unmarshal(out, &links); err != nil {
		return nil, fmt.Errorf("parsing the switch's ports: %w", err)
	}
	ports := map[string]bool{}
	for _, l := range links {
		ports[l.Name] = true
	}
	return ports, nil
}

// Create builds the network. It expects that nothing of it exists.
func (p Plan) Create(ctx context.Context) error {
	for _, name := range p.namespaces() {
		if _, err := run(ctx, nil, "ip", "netns", "add", name); err != nil {
			return fmt.Errorf("creating the network namespace %s: %w", name, err)
		}
	}
	if err := batch(ctx, "", p.renderSwitch()); err != nil {
		return fmt.Errorf("connecting the host to the lab's switch: %w", err)
	}
	if err := batch(ctx, p.Switch(), p.renderBridge()); err != nil {
		return fmt.Errorf("building the lab's switch (does this kernel have bridge and veth?): %w", err)
	}
	if p.Routed {
		if err := forward(ctx, p.Switch()); err != nil {
			return err
		}
		// What a relay brings back came from elsewhere first.
		if err := within(ctx, p.Switch(), "echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter && echo 0 > /proc/sys/net/ipv4/conf/default/rp_filter"); err != nil {
			return fmt.Errorf("switching the check of sources off: %w", err)
		}
		if err := p.SetFaults(ctx, nil); err != nil {
			return err
		}
	}
	for _, e := range p.Endpoints {
		if err := p.createEndpoint(ctx, e); err != nil {
			return fmt.Errorf("connecting the network namespace %s: %w", e.Namespace, err)
		}
	}
	return nil
}

func (p Plan) createEndpoint(ctx context.Context, e Endpoint) error {
	if err := batch(ctx, p.Switch(), p.renderPort(e)); err != nil {
		return err
	}
	if err := batch(ctx, e.Namespace, p.renderEndpoint(e)); err != nil {
		return err
	}
	if !e.PodCIDR.IsValid() {
		return nil
	}
	if err := forward(ctx, e.Namespace); err != nil || !e.masquerades() {
		return err
	}
	return ruleset(ctx, e.Namespace, p.renderMasquerade(e))
}

// forward switches IP forwarding on in a namespace.
func forward(ctx context.Context, namespace string) error {
	if err := within(ctx, namespace, "echo 1 > /proc/sys/net/ipv4/ip_forward"); err != nil {
		return fmt.Errorf("switching IP forwarding on: %w", err)
	}
	return nil
}

// within runs a command of the shell in a namespace.
func within(ctx context.Context, namespace, command string) error {
	_, err := run(ctx, nil, "nsenter", "--net="+filepath.Join(namespaceDir, namespace), "--", "/bin/sh", "-c", command)
	return err
}

// Remove deletes the network; what does not exist is fine.
func (p Plan) Remove(ctx context.Context) error {
	var errs []error
	for _, name := range p.namespaces() {
		if _, err := os.Stat(filepath.Join(namespaceDir, name)); err != nil {
			continue
		}
		if _, err := run(ctx, nil, "ip", "netns", "delete", name); err != nil {
			errs = append(errs, fmt.Errorf("deleting the network namespace %s: %w", name, err))
		}
	}
	// The host's interface is the twin of one in the switch and goes with it,
	// but only some time after the namespace's name is gone.
	if _, err := os.Stat(filepath.Join("/sys/class/net", p.HostInterface())); err == nil {
		if _, err := run(ctx, nil, "ip", "link", "delete", p.HostInterface()); err != nil && !strings.Contains(err.Error(), "Cannot find device") {
			errs = append(errs, fmt.Errorf("deleting the interface %s: %w", p.HostInterface(), err))
		}
	}
	return errors.Join(errs...)
}

// SetFaults makes the given ones all that is wrong with links between clusters.
func (p Plan) SetFaults(ctx context.Context, faults []Fault) error {
	if !p.Routed && slices.ContainsFunc(faults, Fault.needsRouter) {
		return ErrNoRouter
	}
	if slices.ContainsFunc(faults, func(f Fault) bool { return f.Delay > 0 && f.NAT != "" }) {
		return errors.New("a link cannot have a delay and NAT at once: what a relay brings back is new to the router")
	}
	if err := ruleset(ctx, p.Switch(), p.renderFaults(faults)); err != nil {
		return fmt.Errorf("breaking links on the lab's switch: %w", err)
	}
	if !p.Routed {
		return nil
	}
	there, err := p.switchPorts(ctx)
	if err != nil {
		return err
	}
	if err := batch(ctx, p.Switch(), p.renderRelays(faults, there)); err != nil {
		return fmt.Errorf("slowing links of the lab's router down: %w", err)
	}
	return nil
}

// Forget has the router forget what it knows of connections, among it the ports of those behind a NAT.
func (p Plan) Forget(ctx context.Context) error {
	if !p.Routed {
		return ErrNoRouter
	}
	if _, err := run(ctx, nil, "nsenter", "--net="+filepath.Join(namespaceDir, p.Switch()), "--", "conntrack", "-F"); err != nil {
		return fmt.Errorf("having the router forget connections: %w", err)
	}
	return nil
}

// SetUp switches the cable of an endpoint on or off.
func (p Plan) SetUp(ctx context.Context, e Endpoint, up bool) error {
	state := map[bool]string{true: "up", false: "down"}[up]
	if _, err := run(ctx, nil, "ip", "-n", p.Switch(), "link", "set", e.Port, state); err != nil {
		return fmt.Errorf("setting the cable of %s %s: %w", e.Namespace, state, err)
	}
	return nil
}

func (p Plan) namespaces() []string {
	names := []string{p.Switch()}
	for _, e := range p.Endpoints {
		names = append(names, e.Namespace)
	}
	return names
}

// HostRoutes returns the ranges that the host routes somewhere, without its default route.
func HostRoutes(ctx context.Context) ([]netip.Prefix, error) {
	out, err := run(ctx, nil, "ip", "-4", "-j", "route", "show", "table", "all")
	if err != nil {
		return nil, fmt.Errorf("reading the host's routes: %w", err)
	}
	return parseRoutes(out)
}

func parseRoutes(data []byte) ([]netip.Prefix, error) {
	var routes []struct {
		Destination string `json:"dst"`
	}
	if err := json.Unmarshal(data, &routes); err != nil {
		return nil, fmt.Errorf("parsing the host's routes: %w", err)
	}
	var list []netip.Prefix
	for _, r := range routes {
		if a, err := netip.ParseAddr(r.Destination); err == nil {
			list = append(list, netip.PrefixFrom(a, a.BitLen()))
		} else if p, err := netip.ParsePrefix(r.Destination); err == nil && p.Bits() > 0 {
			list = append(list, p)
		}
	}
	return list, nil
}

func batch(ctx context.Context, namespace, commands string) error {
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-n", namespace}, args...)
	}
	_, err := run(ctx, strings.NewReader(commands), "ip", args...)
	return err
}

func ruleset(ctx context.Context, namespace, rules string) error {
	_, err := run(ctx, strings.NewReader(rules), "nsenter", "--net="+filepath.Join(namespaceDir, namespace), "--", "nft", "-f", "-")
	return err
}

func run(ctx context.Context, stdin *strings.Reader, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
