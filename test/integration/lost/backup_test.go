package lost

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"liqo.io/liqo/test/integration/fixture"
)

// backup copies what etcd of a cluster has stored, and returns what puts the cluster back to that: as an administrator does it, with all
// of its control plane stopped, and started anew. Our own processes are the caller's to stop and start.
//
// Etcd stands still while its files are copied: what it has written by then is what it would find after a crash.
func backup(t *testing.T, c *fixture.Cluster) (restore func()) {
	t.Helper()
	e := env.Environment
	data, kept := filepath.Join(e.Lab.Dir(), c.ID, "etcd"), filepath.Join(e.Dir, fixture.Unique("backup-"+c.ID))
	etcd := c.ID + "/etcd"
	fixture.Must(t, "stopping etcd for a moment", e.Lab.Signal(etcd, syscall.SIGSTOP))
	err := os.CopyFS(kept, os.DirFS(data))
	fixture.Must(t, "letting etcd go on", e.Lab.Signal(etcd, syscall.SIGCONT))
	fixture.Must(t, "copying the files of etcd", err)
	return func() {
		t.Helper()
		var parts []string
		for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
			if part := c.ID + "/" + name; slices.Contains(e.Lab.Components(), part) {
				parts = append(parts, part)
			}
		}
		for _, part := range slices.Backward(parts) {
			fixture.Must(t, "ending "+part, e.Lab.Kill(part))
			fixture.Await(t, fixture.Patience, part+" to end", func(context.Context) (bool, string) { return e.Lab.PID(part) == 0, "it runs" })
		}
		fixture.Must(t, "removing what etcd stored", os.RemoveAll(data))
		fixture.Must(t, "putting the backup in its place", os.CopyFS(data, os.DirFS(kept)))
		for _, part := range parts {
			fixture.Must(t, "starting "+part, e.Lab.Restart(t.Context(), part))
			switch part {
			case etcd:
				fixture.Must(t, "awaiting etcd", e.Lab.AwaitEtcd(t.Context(), c.ID))
			case c.ID + "/kube-apiserver":
				fixture.Await(t, 2*fixture.Patience, "the API server of "+c.ID+" to be ready", func(ctx context.Context) (bool, string) {
					_, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
					return err == nil, fmt.Sprint(err)
				})
			}
		}
	}
}
