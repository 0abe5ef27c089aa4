package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
)

// Set is the wanted content of all generated files.
type Set struct {
	// Files maps slash-separated paths below the module's root to content.
	Files map[string][]byte
	// Owned says which files in the tree are generated: what is owned and not in Files is left over.
	Owned []Owned
}

// Owned describes generated files by path and content.
type Owned struct {
	// Pattern is a glob pattern of slash-separated paths below the module's root.
	Pattern string
	// Mark is what an owned file starts with; empty means that every file matching Pattern is owned.
	Mark string
}

// Verb says what has to happen to a file.
type Verb string

const (
	// Create means that the file is missing in the tree.
	Create Verb = "create"
	// Update means that the file's content differs.
	Update Verb = "update"
	// Delete means that nothing generates the file any longer.
	Delete Verb = "delete"
)

// Change is one difference between the tree and a [Set].
type Change struct {
	Verb Verb
	Path string
}

// String renders the change as a line of a report.
func (c Change) String() string { return string(c.Verb) + " " + c.Path }

// Changes lists what differs below root, sorted by path.
func (s Set) Changes(root string) ([]Change, error) {
	var changes []Change
	for path, wanted := range s.Files {
		found, err := os.ReadFile(filepath.Join(root, path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			changes = append(changes, Change{Create, path})
		case err != nil:
			return nil, fmt.Errorf("reading generated file: %w", err)
		case !bytes.Equal(found, wanted):
			changes = append(changes, Change{Update, path})
		}
	}
	for _, owned := range s.Owned {
		found, err := owned.find(root)
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			if _, wanted := s.Files[path]; !wanted {
				changes = append(changes, Change{Delete, path})
			}
		}
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Path < changes[j].Path })
	return changes, nil
}

// Apply carries the changes out below root.
func (s Set) Apply(root string, changes []Change) error {
	for _, change := range changes {
		path := filepath.Join(root, change.Path)
		if change.Verb == Delete {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("deleting left-over file: %w", err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("creating the folder of %s: %w", change.Path, err)
		}
		if err := os.WriteFile(path, s.Files[change.Path], 0o644); err != nil {
			return fmt.Errorf("writing generated file: %w", err)
		}
	}
	return nil
}

// find lists the owned files below root, relative to it.
func (o Owned) find(root string) ([]string, error) {
	matches, err := filepath.Glob(filepath.Join(root, o.Pattern))
	if err != nil {
		return nil, fmt.Errorf("matching %s: %w", o.Pattern, err)
	}
	var found []string
	for _, match := range matches {
		content, err := os.ReadFile(match)
		if err != nil {
			return nil, fmt.Errorf("reading generated file: %w", err)
		}
		path, err := filepath.Rel(root, match)
		if err != nil {
			return nil, fmt.Errorf("locating generated file: %w", err)
		}
		if bytes.HasPrefix(content, []byte(o.Mark)) {
			found = append(found, filepath.ToSlash(path))
		}
	}
	return found, nil
}
