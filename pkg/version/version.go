package version

import "runtime/debug"

// development is the version of a binary that nobody stamped: a plain `go build` or `go run` of a checkout.
const development = "v0.0.0-dev"

// Version is the release this binary belongs to, such as "v1.2.3". The linker sets it; an unstamped binary
// takes the module version that Go recorded, and "v0.0.0-dev" when there is none.
var Version string

// Commit is the Git commit this binary was built from, empty when unknown. The linker sets it; an unstamped
// binary takes the revision that Go recorded.
var Commit string

func init() {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	Version, Commit = resolve(Version, Commit, info)
}

// resolve fills what the linker left empty from the build information.
func resolve(version, commit string, info *debug.BuildInfo) (resolvedVersion, resolvedCommit string) {
	if version == "" {
		version = info.Main.Version
	}
	if version == "" || version == "(devel)" {
		version = development
	}
	if commit == "" {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = setting.Value
			}
		}
	}
	return version, commit
}
