// Package state keeps what a lab remembers between invocations: its
// declaration, the addresses and ports it took and the links that are broken.
//
// Each lab has one folder: $LIQO_LAB_STATE/<name>, or /var/lib/liqo-lab/<name>
// for root, or liqo-lab/<name> under $XDG_STATE_HOME (~/.local/state) for others.
// Locks are taken on the folders themselves, so nothing is left behind.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"liqo.io/liqo/test/lab/network"
	"liqo.io/liqo/test/lab/spec"
)

// EnvRoot names the folder to keep labs in instead of the default.
const EnvRoot = "LIQO_LAB_STATE"

// Ports are the loopback ports of one cluster in a lab that is simulated only.
type Ports struct {
	// API is the API server's port, Etcd and EtcdPeer are etcd's.
	API, Etcd, EtcdPeer int
}

// State is what is remembered.
type State struct {
	// Lab is the declaration, completed.
	Lab spec.Lab `json:"lab"`
	// Plan is the network; nil in a lab that is simulated only.
	Plan *network.Plan `json:"plan,omitempty"`
	// Ports are those of each cluster in a lab that is simulated only.
	Ports map[string]Ports `json:"ports,omitempty"`
	// Faults are what is wrong with links between clusters.
	Faults []network.Fault `json:"faults,omitempty"`
	// Down are the nodes, as cluster/node, that were killed on purpose.
	Down []string `json:"down,omitempty"`
}

// Root returns the folder that holds the labs of this user.
func Root() (string, error) {
	if dir := os.Getenv(EnvRoot); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/var/lib/liqo-lab", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "liqo-lab"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the lab's state is known (%w): set %s", err, EnvRoot)
	}
	return filepath.Join(home, ".local", "state", "liqo-lab"), nil
}

// Dir returns the folder of a lab.
func Dir(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, name), nil
}

// Names lists the labs of this user.
func Names() ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "state.json"))
	if err != nil {
		return nil, fmt.Errorf("listing the labs: %w", err)
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	return names, nil
}

// Load reads the state of the lab in dir; found is false when there is none.
func Load(dir string) (s State, found bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, false, nil
	}
	if err != nil {
		return State{}, false, fmt.Errorf("reading the lab's state: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, false, fmt.Errorf("parsing the lab's state in %s: %w", dir, err)
	}
	return s, true, nil
}

// Save writes the state.
func (s State) Save(dir string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the lab's state: %w", err)
	}
	path := filepath.Join(dir, "state.json")
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("writing the lab's state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing the lab's state: %w", err)
	}
	return nil
}

// LoadCreated reads which folders outside the labs' own were brought into being
// by labs. The caller holds the lock of root.
func LoadCreated(root string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(root, "created.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which folders the labs created: %w", err)
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("parsing which folders the labs created: %w", err)
	}
	return list, nil
}

// SaveCreated remembers the folders for LoadCreated; none removes the record.
func SaveCreated(root string, folders []string) error {
	path := filepath.Join(root, "created.json")
	if len(folders) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the record of folders that labs created: %w", err)
		}
		return nil
	}
	data, err := json.Marshal(folders)
	if err != nil {
		return fmt.Errorf("encoding which folders the labs created: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("recording which folders the labs created: %w", err)
	}
	return nil
}

// Lock creates the folder when needed and waits until no other process holds it.
func Lock(ctx context.Context, dir string) (unlock func(), err error) {
	var held *os.File
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return false, err
		}
		file, err := os.Open(dir)
		if err != nil {
			return false, nil //nolint:nilerr // removed meanwhile by the holder: try again
		}
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || !same(file, dir) {
			_ = file.Close()
			return false, nil
		}
		held = file
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("locking the folder %s: %w", dir, err)
	}
	return func() { _ = held.Close() }, nil
}

// same says whether the open folder is still the one of that name.
func same(file *os.File, dir string) bool {
	a, err := file.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(dir)
	return err == nil && os.SameFile(a, b)
}
