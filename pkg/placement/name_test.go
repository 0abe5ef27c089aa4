package placement

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestRemoteNamespaceName(t *testing.T) {
	type strategy = offloadingv1beta1.NamespaceMappingStrategyType
	long := strings.Repeat("a", 63)
	for name, tc := range map[string]struct {
		strategy                 strategy
		namespace, home, chosen  string
		want, wantErrorToContain string
	}{
		"the same name":                         {offloadingv1beta1.EnforceSameNameMappingStrategyType, "shop", "rome", "", "shop", ""},
		"the default name has the home cluster": {offloadingv1beta1.DefaultNameMappingStrategyType, "shop", "rome", "", "shop-rome", ""},
		"no strategy is the default one":        {"", "shop", "rome", "", "shop-rome", ""},
		"a chosen name":                         {offloadingv1beta1.SelectedNameMappingStrategyType, "shop", "rome", "store", "store", ""},
		"a long default name keeps its suffix":  {offloadingv1beta1.DefaultNameMappingStrategyType, long, "rome", "", strings.Repeat("a", 49) + "-6b18ad7d-rome", ""},
		"a cluster ID that fills everything":    {offloadingv1beta1.DefaultNameMappingStrategyType, "shop", strings.Repeat("r", 63), "", "", ""},
		"a choice without a name is an error":   {offloadingv1beta1.SelectedNameMappingStrategyType, "shop", "rome", "", "", "remoteNamespaceName is required"},
		"a choice that cannot be a namespace":   {offloadingv1beta1.SelectedNameMappingStrategyType, "shop", "rome", "Über", "", "cannot name a namespace"},
		"an unknown strategy is an error":       {"Sideways", "shop", "rome", "", "", "is unknown: use DefaultName"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := RemoteNamespaceName(tc.strategy, tc.namespace, tc.home, tc.chosen)
			if (err != nil) != (tc.wantErrorToContain != "") || err != nil && !strings.Contains(err.Error(), tc.wantErrorToContain) {
				t.Fatalf("error %v, want one that contains %q", err, tc.wantErrorToContain)
			}
			if tc.want != "" && got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if err == nil && len(validation.IsDNS1123Label(got)) > 0 {
				t.Errorf("%q cannot name a namespace", got)
			}
		})
	}
}

func label(max int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(1, max).Draw(t, "length")
		middle := rapid.StringOfN(rapid.RuneFrom([]rune("abcdefghijklmnopqrstuvwxyz0123456789-")), n, n, -1).Draw(t, "text")
		return strings.TrimLeft(strings.TrimRight("x"+middle[1:], "-"), "-")
	})
}

// D3: every default name is valid, keeps the suffix by which a provider tells its tenants apart, and two namespaces never share one.
func TestDefaultNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		home := label(51).Draw(t, "home")
		a, b := label(63).Draw(t, "a"), label(63).Draw(t, "b")
		nameA, err := RemoteNamespaceName("", a, home, "")
		if err != nil {
			t.Fatal(err)
		}
		nameB, _ := RemoteNamespaceName("", b, home, "")
		if problems := validation.IsDNS1123Label(nameA); len(problems) > 0 {
			t.Fatalf("%q: %v", nameA, problems)
		}
		if !strings.HasSuffix(nameA, "-"+home) {
			t.Fatalf("%q lost its suffix -%s", nameA, home)
		}
		if (a == b) != (nameA == nameB) {
			t.Fatalf("%q and %q became %q and %q", a, b, nameA, nameB)
		}
	})
}
