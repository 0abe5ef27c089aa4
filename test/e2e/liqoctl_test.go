package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLiqoctl shows what liqoctl says and returns about a pair that works.
func TestLiqoctl(t *testing.T) {
	the.alone(t)
	rome := func(args ...string) []string { return append(args, "--kubeconfig", the.rome.kubeconfig) }

	t.Run("a second install and a second peer change nothing", func(t *testing.T) {
		the.recordFailure(t)
		the.liqoctl(t, 3*time.Minute, the.installArgs(t, the.milan)...).succeeds(t)
		the.liqoctl(t, time.Minute, the.pair("peer")...).succeeds(t)
	})
	t.Run("info tells the cluster's ID and its healthy peer", func(t *testing.T) {
		the.recordFailure(t)
		if o := the.liqoctl(t, soon, rome("info", "--get", "clusterid")...).succeeds(t); strings.TrimSpace(o.stdout) != consumer {
			t.Errorf("%s wanted: %s", consumer, o)
		}
		// The install of before may still make something of them start.
		eventually(t, patience, fmt.Sprintf("a healthy cluster %s with one peer, the healthy provider %s", consumer, provider), saysHealthy(t, rome("info", "-o", "json")))
		the.liqoctl(t, soon, rome("info", "peer", provider)...).succeeds(t).says(t, provider)
	})
	t.Run("programs of Liqo v1 find the cluster and its peering healthy", func(t *testing.T) {
		the.recordFailure(t)
		eventually(t, patience, "all to be as programs of Liqo v1 expect it", func(ctx context.Context) (bool, string) {
			for _, c := range []*side{the.rome, the.milan} {
				if id, err := readAsV1(ctx, c); err != nil || id != c.name {
					return false, fmt.Sprintf("%s is read as %q: %v", c.name, id, err)
				}
			}
			return true, ""
		})
	})
	t.Run("version names both sides", func(t *testing.T) {
		the.liqoctl(t, soon, rome("version")...).succeeds(t).says(t, the.tag)
	})

	for name, wrong := range map[string]struct {
		args []string
		code int
		says string
	}{
		"an unknown flag is a misuse":                      {rome("peer", "--colour", "red"), 2, "--colour"},
		"the same cluster twice is refused":                {rome("peer", "--remote-kubeconfig", the.rome.kubeconfig), 3, "same"},
		"a namespace that does not exist is named":         {rome("offload", "namespace", "nowhere"), 3, "nowhere"},
		"a kubeconfig that does not exist is named":        {[]string{"info", "--kubeconfig", "/nonexistent/kubeconfig"}, 2, "/nonexistent/kubeconfig"},
		"another cluster ID than the installed is refused": {rome("install", "--cluster-id", "paris", "--pod-cidr", "10.110.0.0/16", "--service-cidr", "10.111.0.0/16"), 3, consumer},
	} {
		t.Run(name, func(t *testing.T) {
			the.recordFailure(t)
			the.liqoctl(t, time.Minute, wrong.args...).exits(t, wrong.code).says(t, wrong.says)
		})
	}
}

// saysHealthy checks that liqoctl info finds a healthy consumer with one healthy provider. It exits with 4 while anything is unhealthy.
func saysHealthy(t *testing.T, args []string) check {
	return func(context.Context) (bool, string) {
		o := the.liqoctl(t, soon, args...)
		if o.code != 0 {
			return false, o.String()
		}
		var info struct {
			Local    struct{ ClusterID string }
			Health   struct{ Healthy bool }
			Peerings struct {
				Peers []struct{ ClusterID, Role, AuthenticationStatus, OffloadingStatus string }
			}
		}
		if err := json.Unmarshal([]byte(o.stdout), &info); err != nil {
			t.Fatalf("reading the answer: %v: %s", err, o)
		}
		if info.Local.ClusterID != consumer || !info.Health.Healthy || len(info.Peerings.Peers) != 1 {
			return false, o.String()
		}
		peer := info.Peerings.Peers[0]
		return peer.ClusterID == provider && peer.Role == "Provider" && peer.AuthenticationStatus == "Healthy" && peer.OffloadingStatus == "Healthy", o.String()
	}
}
