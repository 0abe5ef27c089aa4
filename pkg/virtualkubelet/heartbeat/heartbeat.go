// Package heartbeat tells the probes of a virtual kubelet's pod, by a file, that all its loops are alive, and whether it has all that it needs to
// take over its node: nothing of it listens for that.
package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

// DefaultFile is the heartbeat file, if nobody says otherwise.
const DefaultFile = "/var/lib/liqo/healthy"

const (
	// beatEvery is how often the heartbeat file is touched.
	beatEvery = 10 * time.Second
	// loopSilence is how long a loop may be silent and still count as alive: two calls at their deadline.
	loopSilence = 90 * time.Second
	// beatAge is how old the heartbeat may be.
	beatAge = 45 * time.Second
)

// prepared is what the heartbeat file begins with once the process has all that it needs.
const prepared = "prepared"

// Check tells why the process that touches the file does not work, or, if ready is asked for, cannot take over its node.
func Check(file string, now time.Time, ready bool) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("the virtual kubelet has not started yet: %w", err)
	}
	if age := now.Sub(info.ModTime()); age > beatAge {
		return fmt.Errorf("the virtual kubelet's last sign of life is %s old", age.Round(time.Second))
	}
	if !ready {
		return nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the heartbeat file: %w", err)
	}
	if !strings.HasPrefix(string(content), prepared) {
		return errors.New("the virtual kubelet waits for the node's certificates")
	}
	return nil
}

// Beat touches the file while alive says so, and notes in it when ready is closed.
func Beat(ctx context.Context, file string, alive func(since time.Time) bool, ready <-chan struct{}) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("making the folder of the heartbeat file: %w", err)
	}
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	started, state := time.Now(), "starting"
	for {
		select {
		case <-ready:
			state, ready = prepared, nil
		default:
		}
		// The loops get the time to make their first round.
		if now := time.Now(); now.Sub(started) < loopSilence || alive(now.Add(-loopSilence)) {
			if err := touch(file, state+" "+now.Format(time.RFC3339)+"\n"); err != nil {
				return err
			}
		} else {
			klog.FromContext(ctx).Info("A loop of the virtual kubelet gives no sign of life")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ready:
			state, ready = prepared, nil
		case <-ticker.C:
		}
	}
}

// touch replaces the file at once: a probe never reads half of it.
func touch(file, content string) error {
	err := os.WriteFile(file+".new", []byte(content), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("writing the heartbeat file: %w", err)
	}
	return nil
}
