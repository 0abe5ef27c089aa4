package chart

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

// block is one of YAML in a page.
var block = regexp.MustCompile("(?s)\n```yaml\n(.*?)```")

// Values that pages show are values of the chart: a block whose keys the chart has at the top is taken for such.
func TestValuesInPagesAreTaken(t *testing.T) {
	known, tried := load(t).Values, 0
	root := os.DirFS(filepath.Join("..", ".."))
	try := func(page string) {
		text, err := fs.ReadFile(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range block.FindAllSubmatchIndex(text, -1) {
			values, where := string(text[found[2]:found[3]]), fmt.Sprintf("%s:%d", page, strings.Count(string(text[:found[2]]), "\n")+1)
			given, err := chartutil.ReadValues([]byte(values))
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			ours := len(given) > 0
			for key := range given {
				_, is := known[key]
				ours = ours && is
			}
			if !ours {
				continue
			}
			tried++
			if _, err := render(t, values); err != nil {
				t.Errorf("%s: the chart does not take these values: %v", where, err)
			}
		}
	}
	try("README.md")
	err := fs.WalkDir(root, "docs", func(page string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(page) == ".md" {
			try(page)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if tried == 0 {
		t.Error("no page shows values")
	}
}
