package install

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"liqo.io/liqo/pkg/cli/action/install/earlier"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/identity"
)

// DefaultTimeout of Run.
const DefaultTimeout = 10 * time.Minute

// Options of Prepare and Run.
type Options struct {
	// Cluster to install in; its LiqoNamespace is made if need be.
	Cluster *target.Cluster
	// Wishes about what is otherwise detected.
	Wishes Wishes
	// Version of the chart in RepoURL; of another chart it has to be the version. Empty means that, or this program's.
	Version string
	// Chart holds the files of the chart to install; ChartPath, if given, is a folder or archive to install instead, and RepoURL a repository, or
	// with oci:// the chart in a registry.
	Chart              fs.FS
	ChartPath, RepoURL string
	// ClusterID of the cluster; empty keeps the present one or that of an earlier installation, or makes one up.
	ClusterID string
	// ClusterLabels that consumers see on their virtual nodes.
	ClusterLabels map[string]string
	// ReservedSubnets that are never used.
	ReservedSubnets []string
	// SharingPercentage of what is free is offered to consumers; nil leaves it as it is.
	SharingPercentage *int32
	// EnableMetrics serves metrics.
	EnableMetrics bool
	// ResetValues forgets the values of the present installation.
	ResetValues bool
	// Values are parsed value files, later ones win; Set and SetString are assignments in Helm's syntax, which win over them.
	Values         []map[string]any
	Set, SetString []string
	// SkipValidation leaves out the comparison of ranges with the addresses in use.
	SkipValidation bool
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
	// Helm to install with; nil means one for Cluster.
	Helm helm.Client
}

// Report says what is installed.
type Report struct {
	// ClusterID of the cluster, and the Namespace that Liqo is in.
	ClusterID string `json:"clusterID"`
	Namespace string `json:"namespace"`
	// Version of the images, and Revision of the Helm release.
	Version  string `json:"version"`
	Revision int    `json:"revision"`
	// Upgraded tells an upgrade from a first installation.
	Upgraded bool `json:"upgraded"`
	// Settings that were detected or given.
	Settings Settings `json:"settings"`
}

// Plan is what Run would do.
type Plan struct {
	// Settings of the cluster.
	Settings Settings
	// ClusterID that the cluster will have.
	ClusterID string
	// Values that are given to the chart, without its defaults.
	Values map[string]any

	chart   *helm.Chart
	present *helm.Release
	// unknown is the ID by which a first installation that does not run called the cluster, and which is given up for another.
	unknown string
	// left is what an earlier Liqo left, and what is to be adopted.
	left    *earlier.Leftovers
	options Options
}

// Prepare finds everything out and checks it; it changes nothing.
func Prepare(ctx context.Context, o Options) (*Plan, error) {
	o = o.withDefaults()
	plan := &Plan{options: o}
	steps := []struct {
		title string
		run   func(context.Context) (string, error)
	}{
		{"Checking the cluster", plan.check},
		{"Reading the chart", plan.load},
		{"Detecting the cluster's settings", plan.detect},
		{"Checking the values", plan.decide},
	}
	for _, step := range steps {
		err := progress.Run(ctx, o.Observer, o.Cluster.Name, step.title, func(ctx context.Context, _ progress.Task) (string, error) {
			return step.run(ctx)
		})
		if err != nil {
			return nil, err
		}
	}
	return plan, nil
}

func (o Options) withDefaults() Options {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return o
}

// check reaches the cluster and asks for the rights.
func (p *Plan) check(ctx context.Context) (string, error) {
	o := &p.options
	kubernetes, err := o.Cluster.Reach(ctx)
	if err != nil {
		return "", err
	}
	namespace := o.Cluster.LiqoNamespace
	var rights []target.Right
	for _, right := range []struct{ group, resource string }{
		{"", "namespaces"}, {"rbac.authorization.k8s.io", "clusterroles"}, {"rbac.authorization.k8s.io", "clusterrolebindings"},
		{"apiextensions.k8s.io", "customresourcedefinitions"},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations"}, {"admissionregistration.k8s.io", "mutatingwebhookconfigurations"},
	} {
		rights = append(rights, target.Rights(right.group, right.resource, "", "get", "create")...)
	}
	rights = append(rights, target.Rights("", "secrets", namespace, "list", "create", "update")...)
	rights = append(rights, target.Rights("apps", "deployments", namespace, "get", "create")...)
	rights = append(rights, target.Rights("apps", "deployments", "", "list")...)
	return "Kubernetes " + kubernetes + " answers, and you may install", o.Cluster.RequireRights(ctx, rights)
}

// load reads the chart and what is installed.
func (p *Plan) load(ctx context.Context) (string, error) {
	o := &p.options
	var err error
	if err = p.loadChart(ctx); err != nil {
		return "", err
	}
	if o.Helm == nil {
		if o.Helm, err = helm.New(o.Cluster.Getter, o.Cluster.LiqoNamespace, nil); err != nil {
			return "", err
		}
	}
	if p.present, err = o.Helm.Get(ctx, target.Liqo); err != nil {
		return "", err
	}
	if err := earlier.RequireAlone(ctx, o.Cluster, p.present); err != nil {
		return "", err
	}
	_, app := p.chart.Version()
	if p.present == nil {
		return "Liqo " + app + " is to be installed", nil
	}
	return fmt.Sprintf("Liqo %s is installed, and is to be brought to %s", p.present.AppVersion, app), nil
}

// detect finds out the settings and the cluster ID.
func (p *Plan) detect(ctx context.Context) (string, error) {
	o := &p.options
	facts, err := Gather(ctx, o.Cluster)
	if err != nil {
		return "", err
	}
	given, err := p.given()
	if err != nil {
		return "", err
	}
	wishes := o.Wishes
	wishes.AddressElsewhere = text(given, "apiServer", "address") != ""
	wishes.PodCIDRsElsewhere = len(list(given, "ipam", "podCIDRs")) > 0 || text(given, "ipam", "podCIDR") != ""
	wishes.ServiceCIDRElsewhere = text(given, "ipam", "serviceCIDR") != ""
	if p.Settings, err = Detect(wishes, facts); err != nil {
		return "", err
	}
	if err := p.identify(ctx, text(given, "discovery", "config", "clusterID")); err != nil {
		return "", err
	}
	p.Values = p.merge(given)
	p.read()
	if !o.SkipValidation {
		if err := CheckRanges(p.Settings, o.ReservedSubnets, facts); err != nil {
			return "", err
		}
	}
	if !o.SkipValidation && p.networking() {
		if err := CheckFamily(p.Settings.PodCIDRs); err != nil {
			return "", err
		}
		if err := CheckNetwork(p.ranges(), p.Settings, facts); err != nil {
			return "", err
		}
	}
	return p.Settings.String(), nil
}

// identify decides the cluster ID: the present one, the given one, that of an earlier installation, or one that is made up.
func (p *Plan) identify(ctx context.Context, inValues string) error {
	o := &p.options
	installed, err := o.Cluster.Installed(ctx)
	if err != nil {
		return err
	}
	wanted := o.ClusterID
	if wanted == "" {
		wanted = inValues
	}
	switch {
	case installed != nil && installed.ClusterID != "":
		p.ClusterID = installed.ClusterID
		if wanted == "" || wanted == p.ClusterID {
			break
		}
		if err := p.requireNobody(ctx, installed, wanted); err != nil {
			return err
		}
		p.ClusterID, p.unknown = wanted, p.ClusterID
	default:
		if p.ClusterID, err = p.choose(ctx, wanted); err != nil {
			return err
		}
	}
	if err := identity.ValidateClusterID(p.ClusterID); err != nil {
		return failure.Misuse("give another one with --cluster-id", "%w", err)
	}
	return nil
}

// choose finds an ID for a cluster that has none: what is left of an earlier installation knows it by one already.
func (p *Plan) choose(ctx context.Context, wanted string) (string, error) {
	cluster := p.options.Cluster
	earlier, where, err := earlierID(ctx, cluster)
	switch {
	case err != nil:
		return "", err
	case earlier != "" && wanted != "" && wanted != earlier:
		return "", failure.Unmet("install with --cluster-id "+earlier+", and end the peerings with 'liqoctl unpeer' if you want another one",
			"peers know this cluster as %s, says %s", earlier, where)
	case earlier != "":
		return earlier, nil
	case wanted != "":
		return wanted, nil
	}
	uid, err := cluster.UID(ctx)
	if err != nil {
		return "", err
	}
	return MadeUpID(string(uid)), nil
}

// decide checks the values against the chart, and asks for the rights that not every installation needs.
func (p *Plan) decide(ctx context.Context) (string, error) {
	err := p.chart.Validate(p.Values)
	manifests := ""
	if err == nil {
		manifests, err = p.inspect()
	}
	if err != nil {
		return "", failure.Misuse("correct the values; docs/reference/values.md lists them, and --reset-values forgets those of the present installation", "%w", err)
	}
	if p.networking() {
		cluster := p.options.Cluster
		if err := cluster.RequireRights(ctx, target.Rights("apps", "daemonsets", cluster.LiqoNamespace, "get", "create")); err != nil {
			return "", err
		}
	}
	if p.left, err = earlier.Survey(ctx, p.options.Cluster, p.present, manifests); err != nil {
		return "", err
	}
	if n := p.left.Count(); n > 0 {
		return fmt.Sprintf("The values fit the chart; what an earlier Liqo left is taken over, with its objects: %d definitions and namespaces", n), nil
	}
	return "The values fit the chart", nil
}

// String says the settings in one line.
func (s Settings) String() string {
	parts := []string{"provider " + string(s.Provider)}
	if len(s.PodCIDRs) > 0 {
		parts = append(parts, fmt.Sprintf("pod CIDR %s (%s)", strings.Join(s.PodCIDRs, ", "), s.Sources["podCIDRs"]))
	}
	if s.ServiceCIDR != "" {
		parts = append(parts, fmt.Sprintf("service CIDR %s (%s)", s.ServiceCIDR, s.Sources["serviceCIDR"]))
	}
	if s.APIServerURL != "" {
		parts = append(parts, fmt.Sprintf("API server %s (%s)", s.APIServerURL, s.Sources["apiServerURL"]))
	}
	return strings.Join(parts, ", ")
}

// Render returns the manifests that Run would apply.
func (p *Plan) Render(ctx context.Context) (string, error) {
	return p.options.Helm.Template(ctx, p.request())
}

func (p *Plan) request() helm.Request {
	return helm.Request{Name: target.Liqo, Chart: p.chart, Values: p.Values, Timeout: p.options.Timeout, Adopts: p.left.Count() > 0}
}

// Run installs or upgrades, and waits until the installation answers.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	plan, err := Prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	return plan.Apply(ctx)
}

// Apply does what was planned.
func (p *Plan) Apply(ctx context.Context) (*Report, error) {
	o := &p.options
	_, app := p.chart.Version()
	report := &Report{ClusterID: p.ClusterID, Namespace: o.Cluster.LiqoNamespace, Version: app, Upgraded: p.present != nil, Settings: p.Settings}
	title, done := "Installing Liqo "+app, "Liqo "+app+" installed"
	if p.present != nil {
		title, done = "Upgrading Liqo to "+app, "Liqo upgraded to "+app
	}
	err := progress.Run(ctx, o.Observer, o.Cluster.Name, title, func(ctx context.Context, task progress.Task) (string, error) {
		release, err := p.put(ctx, task)
		if err != nil {
			return "", err
		}
		report.Revision = release.Revision
		return done, nil
	})
	if err != nil {
		return report, err
	}
	o.Cluster.Name = p.ClusterID
	return report, Wait(ctx, o.Cluster, o.Observer)
}

// put has Helm do it. A release that was left half removed is removed first.
func (p *Plan) put(ctx context.Context, task progress.Task) (*helm.Release, error) {
	o := &p.options
	if p.present != nil && (p.present.Status == "uninstalling" || p.unknown != "") {
		what := "an interrupted removal to be finished"
		if p.unknown != "" {
			what = "the first installation, which failed, to be removed: no peer knows the cluster as " + p.unknown
		}
		task.Waiting(what)
		if err := o.Helm.Uninstall(ctx, target.Liqo, o.Timeout); err != nil {
			return nil, err
		}
		p.present = nil
	}
	if err := p.left.Adopt(ctx); err != nil {
		return nil, err
	}
	if p.present == nil {
		return o.Helm.Install(ctx, p.request())
	}
	if err := p.unselect(ctx); err != nil {
		return nil, err
	}
	return o.Helm.Upgrade(ctx, p.request())
}
