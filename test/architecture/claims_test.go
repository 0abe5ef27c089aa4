package architecture

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// pages are the pages that are written by hand.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, file := range repositoryFiles(t) {
		if path.Ext(file) == ".md" && !strings.HasPrefix(file, "docs/reference/") {
			all = append(all, file)
		}
	}
	if len(all) < 5 {
		t.Fatalf("found only the pages %v", all)
	}
	return all
}

var (
	// link is a link, with or without a title behind its target.
	link = regexp.MustCompile(`\]\(([^)\s]+)(?:\s[^)]*)?\)`)
	// reference says where the links of a name lead, which are written [text][name], or [name][].
	reference = regexp.MustCompile(`(?m)^ {0,3}\[([^\]^]+)\]:\s*(\S+)`)
	referring = regexp.MustCompile(`\[([^\[\]]+)\]\[([^\[\]]*)\]`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence     = regexp.MustCompile("(?s)\n```.*?\n```")
	// unslugged is what the anchor of a heading leaves out.
	unslugged = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the places in a page that links can lead to.
func anchors(page string) map[string]bool {
	found := map[string]bool{"": true}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		found[strings.ReplaceAll(unslugged.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	var offenders []string
	for _, page := range pages(t) {
		targets, unknown := linksOf(readFile(t, page))
		for _, name := range unknown {
			offenders = append(offenders, fmt.Sprintf("%s: [%s]: no line says where it leads, as `[%s]: target`", page, name, name))
		}
		for _, link := range targets {
			target, anchor, _ := strings.Cut(link, "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
				offenders = append(offenders, fmt.Sprintf("%s: %s: there is no such file", page, link))
			} else if anchor != "" && !anchors(readFile(t, file))[anchor] {
				offenders = append(offenders, fmt.Sprintf("%s: %s: there is no such heading", page, link))
			}
		}
	}
	report(t, "a link in a page leads to a file of the repository, and to a heading that is there", offenders)
}

// linksOf are the targets of the links of a page, and the names of links for which it has no target.
func linksOf(page string) (targets, unknown []string) {
	text := inlineCode.ReplaceAllStringFunc(fence.ReplaceAllString(page, ""), func(code string) string {
		return strings.ReplaceAll(code, "][", "") // an index is no link
	})
	for _, match := range link.FindAllStringSubmatch(text, -1) {
		targets = append(targets, match[1])
	}
	known := map[string]bool{}
	for _, match := range reference.FindAllStringSubmatch(text, -1) {
		targets, known[strings.ToLower(match[1])] = append(targets, match[2]), true
	}
	for _, match := range referring.FindAllStringSubmatch(text, -1) {
		if name := cmp.Or(match[2], match[1]); !known[strings.ToLower(name)] {
			unknown = append(unknown, name)
		}
	}
	return targets, unknown
}

// Every page can be reached from the README.
func TestReadmeListsThePages(t *testing.T) {
	readme := readFile(t, "README.md")
	var offenders []string
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/") && !strings.Contains(readme, "]("+page+")") {
			offenders = append(offenders, page)
		}
	}
	report(t, "the README leads to every page", offenders)
}

var (
	chartValue = regexp.MustCompile(`\b(?:apiServer|authentication|common|controllerManager|discovery|ipam|metrics|networking|offloading|storage|virtualKubelet|webhook)(?:\.[a-zA-Z]+)+`)
	// notAValue tells API groups and files from values.
	notAValue = regexp.MustCompile(`\.(?:liqo\.io|k|md|yaml|go)$|\.liqo\.io`)
	// ownKey is no version of a group, which goes on with a digit. One that ends with a dash is the beginning of many.
	ownKey = regexp.MustCompile(`\b(?:[a-z-]+\.)*liqo\.io/[a-zA-Z-]+(?:-|\b)`)
)

// valueExists tells whether the chart has a value of the path. Below an empty map anything goes.
func valueExists(values map[string]any, keys []string) bool {
	value, there := values[keys[0]]
	if !there {
		return len(values) == 0
	}
	below, isMap := value.(map[string]any)
	return len(keys) == 1 || isMap && valueExists(below, keys[1:])
}

func TestPagesNameValuesOfTheChart(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(readFile(t, "charts/liqo/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	named := 0
	var offenders []string
	for _, page := range pages(t) {
		for _, name := range chartValue.FindAllString(readFile(t, page), -1) {
			if notAValue.MatchString(name) {
				continue
			}
			if named++; !valueExists(values, strings.Split(name, ".")) {
				offenders = append(offenders, page+": "+name)
			}
		}
	}
	if named == 0 {
		t.Fatal("no page names a value")
	}
	report(t, "values of the chart that pages name are there", offenders)
}

func TestPagesNameLabelsThatExist(t *testing.T) {
	var keys strings.Builder
	for _, file := range repositoryFiles(t) {
		if strings.HasPrefix(file, "pkg/") && !strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "charts/") {
			keys.WriteString(" " + strings.Join(ownKey.FindAllString(readFile(t, file), -1), " ") + " ")
		}
	}
	text, named := keys.String(), 0
	var offenders []string
	for _, page := range pages(t) {
		for _, key := range ownKey.FindAllString(readFile(t, page), -1) {
			// One key as a whole, or what many begin with.
			if named++; !strings.Contains(text, " "+key+" ") && !(strings.HasSuffix(key, "-") && strings.Contains(text, " "+key)) {
				offenders = append(offenders, page+": "+key)
			}
		}
	}
	if named == 0 {
		t.Fatal("no page names a label")
	}
	report(t, "labels, annotations and groups that pages name are in the code, in full", offenders)
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	invocation = regexp.MustCompile(`\bliqoctl ((?:[a-z]+ )*[a-z]+)([^\n|;` + "`" + `]*)`)
	// continued is the end of a line that goes on in the next one.
	continued = regexp.MustCompile(`\s*\\\n\s*`)
	option    = regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]+)`)
)

// A command that a page tells to run is there, with the flags that it is given.
func TestPagesNameCommandsThatExist(t *testing.T) {
	reference := map[string]string{}
	for _, file := range repositoryFiles(t) {
		if name, ok := strings.CutPrefix(file, "docs/reference/cli/liqoctl_"); ok {
			reference[strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "_", " ")] = readFile(t, file)
		}
	}
	var offenders []string
	for _, page := range pages(t) {
		text := continued.ReplaceAllString(readFile(t, page), " ")
		code := slices.Concat(fence.FindAllString(text, -1), inlineCode.FindAllString(fence.ReplaceAllString(text, ""), -1))
		for _, run := range invocation.FindAllStringSubmatch(strings.Join(code, "\n"), -1) {
			words := strings.Fields(run[1])
			command := words[0]
			if len(words) > 1 && reference[command+" "+words[1]] != "" {
				command += " " + words[1]
			}
			help, there := reference[command]
			if !there {
				offenders = append(offenders, fmt.Sprintf("%s: %s: there is no such command", page, run[0]))
				continue
			}
			comment, _, _ := strings.Cut(run[2], "#")
			for _, flag := range option.FindAllStringSubmatch(comment, -1) {
				if !strings.Contains(help, flag[1]+" ") {
					offenders = append(offenders, fmt.Sprintf("%s: %s: there is no flag %s", page, run[0], flag[1]))
				}
			}
		}
	}
	report(t, "commands of liqoctl that pages name are there", offenders)
}

// reasonTable is a table whose first column holds reasons.
var reasonTable = regexp.MustCompile(`(?m)^\| (?:reason|Event on the claim)[^\n]*\n\|[-| ]+\n((?:\|[^\n]*\n)+)`)

func TestPagesNameReasonsThatAreGiven(t *testing.T) {
	reasons := exportedReasons(t)
	named := 0
	var offenders []string
	for _, page := range pages(t) {
		for _, table := range reasonTable.FindAllStringSubmatch(readFile(t, page), -1) {
			for _, cell := range firstCell.FindAllStringSubmatch(table[1], -1) {
				for _, word := range quoted.FindAllStringSubmatch(cell[1], -1) {
					if named++; reasons[word[1]] == "" {
						offenders = append(offenders, page+": "+word[1])
					}
				}
			}
		}
	}
	if named == 0 {
		t.Fatal("no page has a table of reasons")
	}
	report(t, "reasons that pages explain are given by some code", offenders)
}
