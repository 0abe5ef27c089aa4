package artifact

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChangesNameWhatIsMissingDifferentAndLeftOver(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"chart/same.yaml": "same", "chart/different.yaml": "old", "chart/left.yaml": "# made\nleft",
		"chart/hand.yaml": "by hand",
	})
	set := Set{
		Files: map[string][]byte{
			"chart/same.yaml": []byte("same"), "chart/different.yaml": []byte("new"), "chart/deep/missing.yaml": []byte("new"),
		},
		Owned: []Owned{{Pattern: "chart/*.yaml", Mark: "# made\n"}},
	}
	changes, err := set.Changes(root)
	if err != nil {
		t.Fatalf("comparing: %v", err)
	}
	want := []Change{
		{Create, "chart/deep/missing.yaml"}, {Update, "chart/different.yaml"}, {Delete, "chart/left.yaml"},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if err := set.Apply(root, changes); err != nil {
		t.Fatalf("applying: %v", err)
	}
	again, err := set.Changes(root)
	if err != nil || len(again) != 0 {
		t.Errorf("after applying, want no changes, got %v (error %v)", again, err)
	}
	if _, err := os.Stat(filepath.Join(root, "chart/hand.yaml")); err != nil {
		t.Errorf("a file that is not generated was touched: %v", err)
	}
}
