package install

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	kubeversion "k8s.io/apimachinery/pkg/util/version"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/version"
)

// configurationMark is the annotation of our chart that says which version of the configuration (pkg/config) it writes. Charts of others have none,
// that of Liqo v1, which has the same name, among them.
const configurationMark = "liqo.io/configuration"

// loadChart reads the chart. The one that comes with this program installs this program's version, unless the user says otherwise.
func (p *Plan) loadChart(ctx context.Context) (err error) {
	o := &p.options
	switch {
	case o.RepoURL != "":
		return p.fetchChart(ctx)
	case o.ChartPath != "":
		if p.chart, err = helm.LoadPath(o.ChartPath); err != nil {
			return failure.Misuse("give the folder or archive of a chart", "--local-chart-path: %w", err)
		}
		if err := p.requireOurChart(o.ChartPath); err != nil {
			return err
		}
	case o.Chart != nil:
		if p.chart, err = helm.Load(o.Chart); err != nil {
			return err
		}
		p.chart.SetAppVersion(version.Version)
	default:
		return failure.Misuse("give the folder or archive of a chart with --local-chart-path", "this program has no chart built in")
	}
	if _, own := p.chart.Version(); o.Version != "" && o.Version != own {
		if o.ChartPath != "" {
			return failure.Misuse("leave --version out, or give the chart of that version",
				"--version %s: the chart %s is of version %s", o.Version, o.ChartPath, own)
		}
		return failure.Misuse("name the repository that has its chart with --repo-url, or use the liqoctl of that version; "+
			"other images are chosen with --set tag=TAG", "--version %s: this liqoctl has the chart of version %s", o.Version, own)
	}
	return nil
}

// fetchChart downloads the chart of a version, this program's own unless another one is given.
func (p *Plan) fetchChart(ctx context.Context) error {
	o := &p.options
	at := o.RepoURL
	if parsed, err := url.Parse(at); err == nil {
		at = parsed.Redacted()
	}
	wanted := cmp.Or(o.Version, version.Version)
	if _, err := kubeversion.ParseSemantic(wanted); err != nil {
		return failure.Misuse("give one such as 1.2.3; the chart of a commit is given with --local-chart-path", "--version %s is no version of a chart", wanted)
	}
	var err error
	p.chart, err = helm.Fetch(ctx, helm.Source{URL: o.RepoURL, Name: target.Liqo, Version: strings.TrimPrefix(wanted, "v")})
	if err != nil {
		return failure.Misuse("name a repository, or with oci:// a chart in a registry, and with --version one that it has; "+
			"or leave --repo-url out to install the built-in chart", "fetching version %s of the chart %s from --repo-url %s: %w", wanted, target.Liqo, at, err)
	}
	return p.requireOurChart(at)
}

// requireOurChart refuses the charts of others: what this program gives and checks would not be what they take.
func (p *Plan) requireOurChart(from string) error {
	if p.chart.Annotation(configurationMark) != "" {
		return nil
	}
	own, _ := p.chart.Version()
	return failure.Misuse("install it with its own program, Liqo v1 with the liqoctl of Liqo v1",
		"the chart of version %s in %s is not one of this Liqo", own, from)
}
