package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

func TestRefuseName(t *testing.T) {
	open := TwinRules{SystemNamespaces: []string{"liqo"}}
	hardened := TwinRules{SystemNamespaces: []string{"liqo"}, RequireTenantSuffix: true}
	for name, tc := range map[string]struct {
		rules TwinRules
		twin  string
		want  string
	}{
		"an ordinary name":                           {open, "shop", ""},
		"a name with the tenant's suffix":            {hardened, "shop-rome", ""},
		"V11: kube-system":                           {open, "kube-system", "reserved for Kubernetes"},
		"V11: any kube- namespace":                   {open, "kube-anything", "reserved for Kubernetes"},
		"V11: default":                               {open, "default", "reserved for Kubernetes"},
		"V11: Liqo's own namespace":                  {open, "liqo", "provider's own components"},
		"V11: another tenant's tenant namespace":     {open, "liqo-tenant-naples", "provider's own components"},
		"V11: a name of nothing":                     {open, "", "cannot name a namespace"},
		"V11: a name with a path":                    {open, "../etc", "cannot name a namespace"},
		"V11: a name that is too long":               {open, strings.Repeat("x", 64), "more than 63 characters"},
		"hardened: a name without suffix":            {hardened, "shop", "must end in -rome"},
		"hardened: somebody else's suffix":           {hardened, "shop-naples", "must end in -rome"},
		"hardened: the suffix without the separator": {hardened, "shoprome", "must end in -rome"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.rules.RefuseName("rome", tc.twin)
			if (got != nil) != (tc.want != "") {
				t.Fatalf("refusal %v, want %q", got, tc.want)
			}
			if got != nil && (!strings.Contains(got.Error(), tc.want) || got.Reason != "NamespaceNotAllowed") {
				t.Errorf("got %s: %s", got.Reason, got.Error())
			}
		})
	}
}

func TestAdmit(t *testing.T) {
	for name, tc := range map[string]struct {
		rules             TwinRules
		desired, existing map[string]string
		admitted          map[string]string
		refused           map[string]string
		others            int
	}{
		"all that is allowed":                         {TwinRules{}, map[string]string{"a": "x", "b": "y"}, nil, map[string]string{"a": "x", "b": "y"}, map[string]string{}, 0},
		"two namespaces cannot share a twin":          {TwinRules{}, map[string]string{"a": "x", "b": "x"}, nil, map[string]string{"a": "x"}, map[string]string{"b": "NamespaceConflict"}, 0},
		"who has the twin keeps it":                   {TwinRules{}, map[string]string{"a": "x", "b": "x"}, map[string]string{"b": "x"}, map[string]string{"b": "x"}, map[string]string{"a": "NamespaceConflict"}, 0},
		"no more than the limit, existing ones first": {TwinRules{MaxNamespaces: 2}, map[string]string{"a": "x", "b": "y", "c": "z"}, map[string]string{"c": "z"}, map[string]string{"a": "x", "c": "z"}, map[string]string{"b": "NamespaceLimitReached"}, 0},
		"those of other maps, and those that leave":   {TwinRules{MaxNamespaces: 3}, map[string]string{"a": "x", "b": "y", "c": "z"}, map[string]string{"c": "z"}, map[string]string{"a": "x", "c": "z"}, map[string]string{"b": "NamespaceLimitReached"}, 1},
		"others alone reach the limit":                {TwinRules{MaxNamespaces: 3}, map[string]string{"a": "x"}, nil, map[string]string{}, map[string]string{"a": "NamespaceLimitReached"}, 3},
		"a lowered limit takes nothing away":          {TwinRules{MaxNamespaces: 1}, map[string]string{"a": "x", "b": "y"}, map[string]string{"a": "x", "b": "y"}, map[string]string{"a": "x", "b": "y"}, map[string]string{}, 0},
		"namespaces that never leave their cluster": {TwinRules{}, map[string]string{"a": "x", "kube-system": "y", "liqo-tenant-milan": "z", "liqo-storage": "s"}, nil,
			map[string]string{"a": "x"}, map[string]string{"kube-system": "NamespaceNeverOffloaded", "liqo-tenant-milan": "NamespaceNeverOffloaded", "liqo-storage": "NamespaceNeverOffloaded"}, 0},
		"one of those that has its twin from before": {TwinRules{}, map[string]string{"kube-a": "x"}, map[string]string{"kube-a": "x"}, map[string]string{"kube-a": "x"}, map[string]string{}, 0},
		"a stricter rule takes nothing away":         {TwinRules{RequireTenantSuffix: true}, map[string]string{"a": "x", "b": "y"}, map[string]string{"a": "x"}, map[string]string{"a": "x"}, map[string]string{"b": "NamespaceNotAllowed"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			admitted, refusals := tc.rules.Admit("rome", tc.desired, tc.existing, tc.others)
			refused := map[string]string{}
			for local, refusal := range refusals {
				refused[local] = refusal.Reason
			}
			if diff := cmp.Diff([]any{tc.admitted, tc.refused}, []any{admitted, refused}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every wish is either granted as it is or refused with a reason; no twin is given twice; what exists and is wanted stays.
func TestAdmitIsFair(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c", "d", "default", "kube-system", "x-rome", ""})
	rapid.Check(t, func(t *rapid.T) {
		rules := TwinRules{MaxNamespaces: rapid.IntRange(0, 3).Draw(t, "max"), RequireTenantSuffix: rapid.Bool().Draw(t, "suffix")}
		desired := rapid.MapOf(names, names).Draw(t, "desired")
		existing := map[string]string{}
		taken := map[string]bool{}
		for local, twin := range desired {
			if twin != "" && !taken[twin] && rapid.Bool().Draw(t, "exists "+local) {
				existing[local], taken[twin] = twin, true
			}
		}
		admitted, refused := rules.Admit("rome", desired, existing, 0)
		seen := map[string]bool{}
		for local, twin := range desired {
			got, in := admitted[local]
			if (refused[local] != nil) == in || in && (got != twin || seen[twin]) {
				t.Fatalf("%q -> %q: admitted %q %v, refused %v", local, twin, got, in, refused[local])
			}
			if in {
				seen[twin] = true
			}
			if existing[local] == twin && twin != "" && !in {
				t.Fatalf("the existing twin %q is taken away", twin)
			}
		}
		if rules.MaxNamespaces > 0 && len(admitted) > max(rules.MaxNamespaces, len(existing)) {
			t.Fatalf("%d namespaces of %d", len(admitted), rules.MaxNamespaces)
		}
	})
}

// V11: with required suffixes a tenant still took the default names of one whose ID ends like its own.
func TestSuffixesOverlap(t *testing.T) {
	rules := TwinRules{RequireTenantSuffix: true, Tenants: []corev1beta1.ClusterID{"prod", "eu-prod", "west-eu-prod", "rome"}}
	long := strings.Repeat("x", 60)
	for name, tc := range map[string]struct {
		namespace string
		of, taker corev1beta1.ClusterID
	}{
		"the default name of another":              {"shop", "eu-prod", "prod"},
		"one that was shortened":                   {long, "eu-prod", "prod"},
		"of one whose ID is longer still":          {"shop", "west-eu-prod", "prod"},
		"taken by the one in between":              {"shop", "west-eu-prod", "eu-prod"},
		"a namespace whose own name looks like it": {"shop-west", "eu-prod", "prod"},
	} {
		t.Run(name, func(t *testing.T) {
			twin, err := RemoteNamespaceName("DefaultName", tc.namespace, string(tc.of), "")
			if err != nil {
				t.Fatal(err)
			}
			if refusal := rules.RefuseName(tc.taker, twin); refusal == nil {
				t.Errorf("tenant %s may take %q, the default name of namespace %s of tenant %s", tc.taker, twin, tc.namespace, tc.of)
			}
			if _, refused := rules.Admit(tc.taker, map[string]string{"mine": twin}, nil, 0); refused["mine"] == nil {
				t.Errorf("tenant %s gets %q by its NamespaceMap", tc.taker, twin)
			}
		})
	}
	for name, tenant := range map[string]corev1beta1.ClusterID{"shop-eu-prod": "eu-prod", "shop-prod": "prod", "shop-us-prod": "prod", "my-shop-rome": "rome"} {
		if refusal := rules.RefuseName(tenant, name); refusal != nil {
			t.Errorf("tenant %s may not take its own %q: %s", tenant, name, refusal)
		}
	}
	for _, name := range []string{"liqo-storage", "liqo"} {
		if refusal := (TwinRules{}).RefuseName("prod", name); refusal == nil {
			t.Errorf("tenant prod may take %q, a namespace of the provider's own, where it does not exist yet", name)
		}
	}
}
