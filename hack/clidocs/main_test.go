package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheReferenceIsFresh(t *testing.T) {
	fresh := t.TempDir()
	if err := run(fresh); err != nil {
		t.Fatal(err)
	}
	read := func(folder string) map[string]string {
		pages := map[string]string{}
		files, err := filepath.Glob(filepath.Join(folder, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pages[filepath.Base(file)] = string(content)
		}
		return pages
	}
	if diff := cmp.Diff(read(filepath.Join("..", "..", "docs", "reference", "cli")), read(fresh)); diff != "" {
		t.Errorf("docs/reference/cli is stale; write it with 'go run ./hack/clidocs':\n%s", diff)
	}
}
