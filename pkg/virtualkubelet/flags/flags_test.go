package flags

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

var good = []string{"--home-cluster-id=rome", "--foreign-cluster-id=milan", "--nodename=milan", "--tenant-namespace=liqo-tenant-milan",
	"--foreign-kubeconfig-secret-name=kubeconfig"}

func TestFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"all that is needed":            {nil, ""},
		"ranges, given twice":           {[]string{"--local-podcidr=10.0.0.0/16", "--local-podcidr=fd00::/64"}, ""},
		"no home":                       {[]string{"--home-cluster-id="}, "--home-cluster-id must be given"},
		"no provider":                   {[]string{"--foreign-cluster-id="}, "--foreign-cluster-id must be given"},
		"no node":                       {[]string{"--nodename="}, "--nodename must be given"},
		"no tenant namespace":           {[]string{"--tenant-namespace="}, "--tenant-namespace must be given"},
		"no kubeconfig":                 {[]string{"--foreign-kubeconfig-secret-name="}, "--foreign-kubeconfig-secret-name must be given"},
		"the same cluster twice":        {[]string{"--foreign-cluster-id=rome"}, "the same cluster"},
		"a range that is none":          {[]string{"--local-podcidr=10.0.0.0"}, "is not a prefix"},
		"too many workers":              {[]string{"--pod-reflection-workers=1001"}, "between 0 and 1000"},
		"a node that runs no pods":      {[]string{"--pod-reflection-workers=0"}, "at least 1"},
		"an unknown policy":             {[]string{"--secret-reflection-type=Some"}, "must be DenyList or AllowList"},
		"a lease that is always behind": {[]string{"--node-lease-duration=15s"}, "at least twice"},
		"a turn of defaults":            {[]string{"--vk-lease-enabled"}, ""},
		"turns of several replicas":     {append([]string{"--vk-lease-enabled"}, "--vk-lease-duration=30s", "--vk-lease-renew-interval=20s", "--vk-lease-retry-period=10s"), ""},
		"two turns at a time":           {[]string{"--vk-lease-enabled", "--vk-lease-duration=100s"}, "--vk-lease-duration at least 8s more"},
		"a turn without renewal":        {[]string{"--vk-lease-enabled", "--vk-lease-retry-period=99s"}, "at least 4s more"},
		"an identity that there is not": {[]string{"--node-identity=admin"}, "must be node or serviceAccount"},
		"no node but an account":        {[]string{"--node-identity=serviceAccount"}, ""},
		"no memory":                     {[]string{"--remote-memory=0"}, "must be at least 1"},
		"more than all copies":          {[]string{"--max-removals=101"}, "from 0 to 100"},
		"no time between probes":        {[]string{"--node-ping-interval=0s"}, "more than 0"},
		"a way to the API server":       {[]string{"--enable-apiserver-support", "--home-api-server-host=api", "--home-api-server-port=6443"}, ""},
		"a port of no host":             {[]string{"--home-api-server-port=6443"}, "needs --home-api-server-host"},
		"a port that is none":           {[]string{"--home-api-server-host=api", "--home-api-server-port=70000"}, "is not a port"},
		"tokens that live a day":        {[]string{"--service-account-token-max-lifetime=24h"}, "must be between"},
		"tokens that live a minute":     {[]string{"--service-account-token-max-lifetime=1m"}, "must be between"},
		"too many workers for tokens":   {[]string{"--serviceaccount-reflection-workers=1001"}, "between 0 and 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			var f Flags
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.Register(set)
			if err := set.Parse(append(append([]string{}, good...), tc.args...)); err != nil {
				t.Fatal(err)
			}
			err := f.validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("POD_IP", "10.0.0.9")
	t.Setenv("POD_NAME", "vk-1")
	if got, err := Environment(); err != nil || got.Address != netip.MustParseAddr("10.0.0.9") || got.Pod != "vk-1" {
		t.Errorf("got %v, %v", got, err)
	}
	t.Setenv("POD_NAME", "")
	if _, err := Environment(); err == nil {
		t.Error("no name is accepted")
	}
	t.Setenv("POD_IP", "x")
	if _, err := Environment(); err == nil {
		t.Error("no address is accepted")
	}
}

// Both Leases of a virtual node together are written six times a minute, and each of them in time.
func TestTheLeasesOfANodeShareABudget(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want time.Duration
	}{
		"one that is alone has no other Lease":            {nil, 10 * time.Second},
		"one that may be followed by another":             {[]string{"--vk-lease-enabled"}, 12 * time.Second},
		"several replicas take over fast":                 {[]string{"--vk-lease-enabled", "--vk-lease-retry-period=10s"}, 10 * time.Second},
		"what would be too late for the node's Lease":     {[]string{"--vk-lease-enabled", "--vk-lease-retry-period=15s", "--node-lease-duration=45s"}, 15 * time.Second},
		"no more often than the provider is asked":        {[]string{"--vk-lease-enabled", "--node-ping-interval=20s"}, 20 * time.Second},
		"and as seldom as it is, if the Lease lasts long": {[]string{"--vk-lease-enabled", "--node-ping-interval=20s", "--node-lease-duration=2m"}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var f Flags
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.Register(set)
			if err := set.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if got := f.NodeLeaseInterval(); got != tc.want {
				t.Errorf("the node's Lease is renewed each %s, want %s", got, tc.want)
			}
		})
	}
}
