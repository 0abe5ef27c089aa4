package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/authentication/slicegrant"
)

// What the configuration file says of percentages holds from when it says so, and is said once; what cannot be is refused once, and the last
// percentages stay.
func TestPercentagesAreFollowed(t *testing.T) {
	file, said := filepath.Join(t.TempDir(), "config.yaml"), []string{}
	log := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})
	write := func(offloading string) {
		t.Helper()
		text := "profile: compatible\nauthentication: {enabled: true, certificateLifetime: 24h}\ncontrollerManager: {defaultLimitsEnforcement: None}\n" +
			"ipam: {podCIDRs: [10.10.0.0/16], serviceCIDR: 10.11.0.0/16}\noffloading: {twinNamespaces: {maxPerTenant: 10}, " + offloading + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sharingPercentage: 90")
	config, err := v1alpha1.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	shares, refused := slicegrant.NewShares(shared(config)), ""
	for _, step := range []struct{ offloading, want string }{
		{"sharingPercentage: 90", ""},
		{"sharingPercentage: 50", `"percentage"=50`},
		{"sharingPercentage: 50", ""},
		{"sharingPercentage: 50, sharingPercentages: {gold: 100}", `"gold"=100`},
		{"sharingPercentage: 150, sharingPercentages: {gold: 100}", "offloading.sharingPercentage: Invalid value: 150"},
		{"sharingPercentage: 150, sharingPercentages: {gold: 100}", ""},
		{"sharingPercentage: 50, sharingPercentages: {gold: 100}", ""},
		{"sharingPercentage: 0", `"percentage"=0`},
	} {
		write(step.offloading)
		said = nil
		refused = lookForShares(log, file, shares, refused)
		if all := strings.Join(said, "; "); (all == "") != (step.want == "") || !strings.Contains(all, step.want) {
			t.Errorf("%s: said is %q, want %q", step.offloading, all, step.want)
		}
	}
	if changed := shares.Set(slicegrant.Percentages{All: new(int32)}); changed {
		t.Error("the last percentage is not 0")
	}
}
