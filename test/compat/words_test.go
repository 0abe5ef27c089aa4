package compat

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sources are the Go code of the product, without tests, and the templates of the chart, as one text.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"pkg", "cmd", "charts/liqo/templates"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(file, "_test.go") {
				return err
			}
			content, err := os.ReadFile(file)
			all.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// Selectors and annotations that users of Liqo v1 write mean something here: the product writes or reads each of its labels and annotations.
func TestLabelsAndAnnotationsAreThoseOfV1(t *testing.T) {
	code, table := sources(t), rows(t, "words.tsv", 2)
	var differences []string
	for _, row := range table {
		sort, key := row[0], row[1]
		if !strings.Contains(code, `"`+key+`"`) && !strings.Contains(code, key+":") {
			differences = append(differences, sort+" "+key)
		}
	}
	exceptions{"words-exceptions.tsv", 24}.explain(t, len(table), differences)
}
