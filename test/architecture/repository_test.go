package architecture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// topLevel is all that may stand at the top of the repository.
var topLevel = []string{
	".ci", ".gitattributes", ".github", ".gitignore", ".golangci.yml", ".goreleaser.yaml",
	"CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md",
	"charts", "cmd", "deployments", "docs", "go.mod", "go.sum", "hack", "pkg", "test",
}

// unwanted is what must not be written down, by the reason. The patterns avoid matching themselves; a file in which none of the words stands,
// in any case, is not searched.
var unwanted = map[string]struct {
	words   []string
	pattern *regexp.Regexp
}{
	"a path of one author's machine":            {[]string{"work/"}, regexp.MustCompile(`(^|[^\w./-])[/]work/`)},
	"the tools of one author":                   {[]string{"laude", "nthropi", "ai ", "ai-"}, regexp.MustCompile(`(?i)\bcl[a]ude\b|\banthropi[c]\b|\bAI[ -](assistant|session|agent)`)},
	"how the work was organised":                {[]string{"session"}, regexp.MustCompile(`(?i)\b(this|next|earlier|previous|another|today's) session['s]*\b.{0,20}\b(work|task|issue|commit)`)},
	"a download proxy that only some can reach": {[]string{"goproxy"}, regexp.MustCompile(`GOPROXY\s*[:=]\s*['"]?https?:`)},
	"an unfinished thought":                     {[]string{"todo", "fixme", "xxx"}, regexp.MustCompile(`(?m)(^|[^.\w])(TOD[O]|FIXM[E]|XX[X])\b`)},
}

func TestTheTopOfTheRepositoryIsTidy(t *testing.T) {
	var offenders []string
	for _, file := range repositoryFiles(t) {
		entry, _, _ := strings.Cut(file, "/")
		if !slices.Contains(topLevel, entry) && !slices.Contains(offenders, entry) {
			offenders = append(offenders, entry)
		}
	}
	report(t, "a new entry at the top of the repository needs a reason (and a place in this test)", offenders)
}

func TestNothingUnwantedIsWrittenDown(t *testing.T) {
	var offenders []string
	for _, file := range repositoryFiles(t) {
		if file == "go.sum" || file == "LICENSE" || strings.HasSuffix(file, "/go.sum") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		// A file that was deleted but not yet from the index, or a link to nowhere, has nothing written in it.
		if err != nil || bytes.IndexByte(content, 0) >= 0 {
			continue
		}
		lower := string(bytes.ToLower(content))
		for reason, what := range unwanted {
			if !slices.ContainsFunc(what.words, func(word string) bool { return strings.Contains(lower, word) }) {
				continue
			}
			if place := what.pattern.FindIndex(content); place != nil {
				line := 1 + bytes.Count(content[:place[0]], []byte("\n"))
				offenders = append(offenders, fmt.Sprintf("%s:%d: %s (%q)", file, line, reason, content[place[0]:place[1]]))
			}
		}
	}
	slices.Sort(offenders)
	report(t, "what concerns one author or machine, and loose ends, stay out of the repository", offenders)
}
