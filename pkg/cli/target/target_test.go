package target

import (
	"testing"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

func TestTag(t *testing.T) {
	for image, want := range map[string]string{
		"ghcr.io/liqotech/x:v1.0.0": "v1.0.0", "localhost:5000/x": "", "localhost:5000/x:1": "1", "x@sha256:ab": "sha256:ab", "x:v2@sha256:ab": "v2",
	} {
		if got := tag(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

func TestWhyVersionsDiffer(t *testing.T) {
	cases := map[string]struct{ a, b, want string }{
		"equal":          {"v1.2.3", "v1.2.3", ""},
		"another patch":  {"v1.2.3", "v1.2.9", ""},
		"another minor":  {"v1.2.3", "v1.3.0", "peers must run the same minor version, and 1.2 is not 1.3"},
		"another major":  {"v2.2.3", "v1.2.3", "peers must run the same minor version, and 2.2 is not 1.2"},
		"not to be told": {"quickstart", "v1.2.3", ""},
		"unknown":        {"", "v1.2.3", ""},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			if got := WhyVersionsDiffer(test.a, test.b); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestRemoteFlagsAreTwins(t *testing.T) {
	local, remote := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	NewFlags(false).AddTo(local)
	NewFlags(true).AddTo(remote)
	local.VisitAll(func(flag *pflag.Flag) {
		twin := remote.Lookup(RemotePrefix + flag.Name)
		if twin == nil || twin.Hidden != flag.Hidden || twin.Shorthand != "" {
			t.Errorf("--%s has no twin", flag.Name)
		}
	})
	for _, name := range []string{"kubeconfig", "context", "cluster", "user"} {
		if flag := local.Lookup(name); flag == nil || flag.Hidden {
			t.Errorf("--%s is not shown", name)
		}
	}
	for _, name := range []string{"server", "token", "as", "insecure-skip-tls-verify"} {
		if flag := local.Lookup(name); flag == nil || !flag.Hidden {
			t.Errorf("--%s is shown, or missing", name)
		}
	}
}

func TestAbsent(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "y")
	group := func(err error) error {
		return &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "core.liqo.io"}: err}}
	}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"nothing":                      {nil, false},
		"the object":                   {missing, true},
		"the kind":                     {&meta.NoKindMatchError{}, true},
		"its whole group":              {group(missing), true},
		"a group that does not answer": {group(apierrors.NewServiceUnavailable("x")), false},
		"a refusal":                    {apierrors.NewForbidden(schema.GroupResource{}, "y", nil), false},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			if got := Absent(test.err); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestGitVersion(t *testing.T) {
	for body, want := range map[string]string{`{"gitVersion":"v1.36.3"}`: "v1.36.3", `<html>`: "", `{}`: ""} {
		if got := gitVersion([]byte(body)); got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
}
