package architecture

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// release is what this project uses of goreleaser's configuration: a key that it does not name here is misspelt, or has to be added
// along with a look at goreleaser's documentation. goreleaser itself checks more (`make check-release`), but is too large a build
// for every run of the tests.
type release struct {
	Version     int    `json:"version"`
	ProjectName string `json:"project_name"`
	Before      struct {
		Hooks []string `json:"hooks"`
	} `json:"before"`
	Builds []struct {
		ID           string   `json:"id"`
		Main         string   `json:"main"`
		Binary       string   `json:"binary"`
		Env          []string `json:"env"`
		GOOS         []string `json:"goos"`
		GOARCH       []string `json:"goarch"`
		Flags        []string `json:"flags"`
		Ldflags      []string `json:"ldflags"`
		ModTimestamp string   `json:"mod_timestamp"`
	} `json:"builds"`
	Archives []struct {
		ID              string        `json:"id"`
		IDs             []string      `json:"ids"`
		NameTemplate    string        `json:"name_template"`
		Formats         []string      `json:"formats"`
		FormatOverrides []override    `json:"format_overrides"`
		Files           []archiveFile `json:"files"`
		BuildsInfo      fileInfo      `json:"builds_info"`
	} `json:"archives"`
	SBOMs    []sbom `json:"sboms"`
	Checksum struct {
		NameTemplate string      `json:"name_template"`
		Algorithm    string      `json:"algorithm"`
		ExtraFiles   []extraFile `json:"extra_files"`
	} `json:"checksum"`
	Snapshot struct {
		VersionTemplate string `json:"version_template"`
	} `json:"snapshot"`
	Changelog struct {
		Use     string `json:"use"`
		Sort    string `json:"sort"`
		Filters struct {
			Exclude []string `json:"exclude"`
		} `json:"filters"`
	} `json:"changelog"`
	Release struct {
		GitHub struct {
			Owner string `json:"owner"`
			Name  string `json:"name"`
		} `json:"github"`
		Prerelease string      `json:"prerelease"`
		ExtraFiles []extraFile `json:"extra_files"`
	} `json:"release"`
}

type sbom struct {
	ID        string   `json:"id"`
	Artifacts string   `json:"artifacts"`
	IDs       []string `json:"ids"`
	Cmd       string   `json:"cmd"`
	Args      []string `json:"args"`
	Documents []string `json:"documents"`
}

type extraFile struct {
	Glob string `json:"glob"`
}

type override struct {
	GOOS    string   `json:"goos"`
	Formats []string `json:"formats"`
}

type archiveFile struct {
	Src         string   `json:"src"`
	Dst         string   `json:"dst"`
	StripParent bool     `json:"strip_parent"`
	Info        fileInfo `json:"info"`
}

type fileInfo struct {
	Owner string `json:"owner"`
	Group string `json:"group"`
	MTime string `json:"mtime"`
}

var (
	// stamped are the variables that the linker is to set.
	stamped = regexp.MustCompile(`-X ` + regexp.QuoteMeta(module) + `/([\w/]+)\.(\w+)=`)
	// inTree are the paths of this repository that a hook's command names.
	inTree = regexp.MustCompile(`(?:^|[\s'"])(?:\./)?((?:cmd|hack|deployments|charts|docs)/[\w./-]+)`)
	// madeByHooks is the folder that the hooks fill before anything is built.
	madeByHooks = "bin/completions/"
)

// What the release is made from exists, under the names that its configuration says.
func TestTheReleaseIsMadeFromWhatIsThere(t *testing.T) {
	var config release
	if err := yaml.UnmarshalStrict([]byte(readFile(t, ".goreleaser.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	var offenders []string
	complain := func(about, what string) { offenders = append(offenders, about+": "+what) }
	if config.Version != 2 || config.ProjectName == "" || len(config.Builds) == 0 || len(config.Archives) == 0 {
		complain("the configuration", "it has to have version 2, a project's name, builds and archives")
	}
	var hooks string
	for _, hook := range config.Before.Hooks {
		hooks += hook + "\n"
		for _, named := range inTree.FindAllStringSubmatch(hook, -1) {
			if _, err := os.Stat(filepath.Join(root, named[1])); err != nil {
				complain("a hook", "there is no "+named[1])
			}
		}
	}
	var builds []string
	for _, build := range config.Builds {
		builds = append(builds, build.ID)
		if !isCommand(t, strings.TrimPrefix(build.Main, "./")) {
			complain("build "+build.ID, build.Main+" is no command")
		}
		variables := stamped.FindAllStringSubmatch(strings.Join(build.Ldflags, " "), -1)
		for _, v := range variables {
			if !hasVariable(t, v[1], v[2]) {
				complain("build "+build.ID, "package "+v[1]+" has no variable "+v[2]+" to be set by the linker")
			}
		}
		if len(variables) == 0 || !slices.Contains(build.Env, "CGO_ENABLED=0") || !slices.Contains(build.Flags, "-trimpath") || len(build.GOOS)*len(build.GOARCH) == 0 {
			complain("build "+build.ID, "it has to be stamped with its version, static, free of the builder's paths, and for some platforms")
		}
	}
	for _, archive := range config.Archives {
		for _, id := range archive.IDs {
			if !slices.Contains(builds, id) {
				complain("archive "+archive.ID, "there is no build "+id)
			}
		}
		for _, file := range archive.Files {
			if strings.HasPrefix(file.Src, madeByHooks) && strings.Contains(hooks, strings.TrimSuffix(madeByHooks, "/")) {
				continue
			}
			if found, err := filepath.Glob(filepath.Join(root, file.Src)); err != nil || len(found) == 0 {
				complain("archive "+archive.ID, "there is no "+file.Src)
			}
		}
	}
	// Whatever is published has its checksum, and each kind of thing its bill of materials.
	if diff := cmp.Diff(config.Release.ExtraFiles, config.Checksum.ExtraFiles); diff != "" || len(config.Release.ExtraFiles) == 0 || config.Checksum.Algorithm != "sha256" {
		complain("checksums", "they have to be sha256 sums of all that is published (-published +summed):\n"+diff)
	}
	if !strings.Contains(hooks, "make release-files ") || !slices.Contains(config.Release.ExtraFiles, extraFile{"./bin/release/*.cdx.json"}) {
		complain("bills of materials", "those of images and chart have to be made by make release-files and published")
	}
	for _, id := range builds {
		if !slices.ContainsFunc(config.SBOMs, func(s sbom) bool { return s.Artifacts == "binary" && slices.Contains(s.IDs, id) }) {
			complain("build "+id, "it has no bill of materials")
		}
	}
	report(t, "the release's configuration (.goreleaser.yaml) has to fit what is there", offenders)
}

// isCommand tells whether a folder holds a package main.
func isCommand(t *testing.T, folder string) bool {
	t.Helper()
	return slices.ContainsFunc(sources(t), func(s source) bool { return s.folder() == folder && !s.isTest() && s.ast.Name.Name == "main" })
}

// hasVariable tells whether a package declares a variable.
func hasVariable(t *testing.T, folder, name string) bool {
	t.Helper()
	return slices.ContainsFunc(sources(t), func(s source) bool {
		if s.folder() != folder || s.isTest() {
			return false
		}
		return slices.ContainsFunc(s.ast.Decls, func(declared ast.Decl) bool {
			general, is := declared.(*ast.GenDecl)
			return is && slices.ContainsFunc(general.Specs, func(spec ast.Spec) bool {
				values, is := spec.(*ast.ValueSpec)
				return is && general.Tok.String() == "var" && slices.ContainsFunc(values.Names, func(n *ast.Ident) bool { return n.Name == name })
			})
		})
	})
}
