package version

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolve(t *testing.T) {
	type pair struct{ Version, Commit string }
	recorded := &debug.BuildInfo{
		Main:     debug.Module{Version: "v1.1.0"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}},
	}
	cases := map[string]struct {
		stamped pair
		info    *debug.BuildInfo
		want    pair
	}{
		"what the linker stamped wins over what Go recorded": {
			stamped: pair{"v1.2.3", "def"}, info: recorded, want: pair{"v1.2.3", "def"},
		},
		"an unstamped binary takes what Go recorded": {
			info: recorded, want: pair{"v1.1.0", "abc"},
		},
		"a build of a checkout is a development version": {
			info: &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, want: pair{development, ""},
		},
		"a binary without build information is a development version": {
			info: &debug.BuildInfo{}, want: pair{development, ""},
		},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			var got pair
			got.Version, got.Commit = resolve(tc.stamped.Version, tc.stamped.Commit, tc.info)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("resolve (-want +got):\n%s", diff)
			}
		})
	}
}
