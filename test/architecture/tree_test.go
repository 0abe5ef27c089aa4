package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	module = "liqo.io/liqo"
	root   = "../.."
)

// source is one parsed Go file.
type source struct {
	// path is slash-separated and relative to the module's root.
	path string
	ast  *ast.File
	// lines is the file's length.
	lines int
}

func (s source) folder() string    { return path.Dir(s.path) }
func (s source) isTest() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) isGenerated() bool { return ast.IsGenerated(s.ast) }

// imports lists the packages of this module that the file imports, relative to the module's root.
func (s source) imports() []string {
	var found []string
	for _, spec := range s.ast.Imports {
		if own, isOwn := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); isOwn {
			found = append(found, own)
		}
	}
	return found
}

var fileSet = token.NewFileSet()

// lines counts the lines that a node spans.
func lines(node ast.Node) int {
	return fileSet.Position(node.End()).Line - fileSet.Position(node.Pos()).Line + 1
}

// sources parses all Go files of the module once.
func sources(t *testing.T) []source {
	t.Helper()
	parsed, err := parseTree()
	if err != nil {
		t.Fatalf("parsing the source tree: %v", err)
	}
	return parsed
}

var parseTree = sync.OnceValues(func() ([]source, error) {
	var parsed []source
	err := filepath.WalkDir(root, func(file string, item fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if item.IsDir() {
			return skipFolder(file, item)
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		tree, err := parser.ParseFile(fileSet, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		parsed = append(parsed, source{
			path: filepath.ToSlash(relative), ast: tree, lines: fileSet.File(tree.FileStart).LineCount(),
		})
		return err
	})
	return parsed, err
})

// skipFolder leaves out what is not code of this module: hidden folders, build output, test data, other modules.
func skipFolder(file string, item fs.DirEntry) error {
	if file == root {
		return nil
	}
	hidden := strings.HasPrefix(item.Name(), ".") || item.Name() == "testdata"
	output := file == filepath.Join(root, "bin") || file == filepath.Join(root, "dist")
	_, err := os.Stat(filepath.Join(file, "go.mod"))
	if otherModule := err == nil; hidden || output || otherModule {
		return filepath.SkipDir
	}
	return nil
}

// repositoryFiles lists the files that are or would be committed, relative to the module's root. Outside a Git
// checkout (an unpacked source archive) those are all files.
func repositoryFiles(t *testing.T) []string {
	t.Helper()
	output, err := exec.Command("git", "-c", "safe.directory=*", "-C", root,
		"ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err == nil {
		return strings.FieldsFunc(string(output), func(r rune) bool { return r == 0 })
	}
	var files []string
	err = filepath.WalkDir(root, func(file string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			if err == nil && file != root && (item.Name() == "bin" || item.Name() == "dist" || item.Name() == ".git") {
				return filepath.SkipDir
			}
			return err
		}
		relative, err := filepath.Rel(root, file)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		t.Fatalf("listing files: %v", err)
	}
	return files
}

// report fails the test with one line per offender, under the rule that they break.
func report(t *testing.T, rule string, offenders []string) {
	t.Helper()
	if len(offenders) > 0 {
		t.Errorf("%s:\n  %s", rule, strings.Join(offenders, "\n  "))
	}
}
