package installation

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/cli/action/install"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/identity"
)

// Commands returns the family's commands.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{newInstall(s), newUninstall(s)}
}

const installLong = `Install Liqo in a cluster, or upgrade what is installed.

What Liqo has to know about the cluster is detected and told; flags overrule it. On a
later run the values of the present installation are kept unless they are given anew,
and the cluster ID never changes. The command ends when the installation answers.`

const installExample = `  # Detect everything
  {{ .Executable }} install

  # Give the cluster a name that people can say
  {{ .Executable }} install --cluster-id rome --cluster-labels region=europe

  # Say what cannot be detected
  {{ .Executable }} install --pod-cidr 10.244.0.0/16 --service-cidr 10.96.0.0/12 --api-server-url https://10.0.0.1:6443

  # Fetch the chart of a version from a repository, or from a registry that 'helm registry login' knows
  {{ .Executable }} install --repo-url https://charts.example.com --version 1.2.3
  {{ .Executable }} install --repo-url oci://registry.example.com/charts/liqo --version 1.2.3

  # Write the values for Helm or GitOps, and install nothing
  {{ .Executable }} install --only-output-values --dump-values-path values.yaml`

type installFlags struct {
	options                install.Options
	timeout                time.Duration
	files                  []string
	dryRun, onlyValues     bool
	dump, format           string
	noSanity               bool
	podCIDRs               []string
	serviceCIDR, apiServer string
	sharing                int32
}

const sharingFlag = "sharing-percentage"

func newInstall(s *session.Session) *cobra.Command {
	f := &installFlags{}
	command := &cobra.Command{
		Use: "install", Aliases: []string{"upgrade"}, Short: "Install or upgrade Liqo in a cluster", Long: installLong, Example: installExample,
		Args: cobra.NoArgs, RunE: func(command *cobra.Command, _ []string) error { return f.run(s, command, install.Auto) },
	}
	f.register(s, command)
	for _, provider := range []struct {
		name install.Provider
		what string
	}{
		{install.Kubeadm, "a cluster made by kubeadm: addresses are those of the kube-controller-manager"},
		{install.K3s, "a cluster of k3s: its default addresses are used where none can be detected"},
		{install.Kind, "a cluster of kind: peers reach it at the address of its control plane node"},
	} {
		command.AddCommand(&cobra.Command{
			Use: string(provider.name), Short: "Install or upgrade Liqo in " + provider.what, Args: cobra.NoArgs,
			Example: "  {{ .Executable }} install " + string(provider.name) + " --cluster-id rome",
			RunE:    func(command *cobra.Command, _ []string) error { return f.run(s, command, provider.name) },
		})
	}
	return command
}

func (f *installFlags) register(s *session.Session, command *cobra.Command) {
	set := command.PersistentFlags()
	s.Local.AddNamespace(set)
	s.TimeoutFlag(set, &f.timeout, install.DefaultTimeout)
	o := &f.options
	set.StringVar(&o.Version, "version", "", "Version of Liqo to install: of the chart in --repo-url, or else that of the chart (default: that of this program)")
	set.StringVar(&o.RepoURL, "repo-url", "",
		"Chart repository to fetch the chart from, or the chart in a registry as oci://HOST/PATH/liqo (default: the built-in chart)")
	set.StringVar(&o.ChartPath, "local-chart-path", "", "Folder or archive of a chart to install instead of the built-in one")
	set.StringVar(&o.ClusterID, "cluster-id", "", "ID of this cluster, which peers know it by (default: the present or an earlier one, or one that is made up)")
	set.StringToStringVar(&o.ClusterLabels, "cluster-labels", nil, "Labels of this cluster, which consumers see on their virtual nodes (key=value,...)")
	session.MayBeEmpty(set, "cluster-labels")
	set.StringSliceVar(&o.ReservedSubnets, "reserved-subnets", nil, "Networks that are never to be used")
	set.StringSliceVar(&f.podCIDRs, "pod-cidr", nil, "Pod CIDR of the cluster; repeat it for several (default: detected)")
	set.StringVar(&f.serviceCIDR, "service-cidr", "", "Service CIDR of the cluster (default: detected)")
	set.StringVar(&f.apiServer, "api-server-url", "", "URL by which other clusters reach this one's API server (default: that of the kubeconfig)")
	set.StringArrayVar(&o.Set, "set", nil, "Value of the chart as KEY=VALUE; can be repeated")
	set.StringArrayVar(&o.SetString, "set-string", nil, "Value of the chart that is a string as KEY=VALUE; can be repeated")
	set.StringArrayVarP(&f.files, "values", "f", nil, "File or URL with values of the chart, - for standard input; can be repeated")
	set.BoolVar(&o.ResetValues, "reset-values", false, "Forget the values of the present installation")
	set.BoolVar(&f.dryRun, "dry-run", false, "Write what would be installed to standard output, and install nothing")
	set.BoolVar(&f.onlyValues, "only-output-values", false, "Write the values of the chart to a file, and install nothing")
	set.StringVar(&f.dump, "dump-values-path", "./values.yaml", "File that --only-output-values writes, - for standard output")
	set.BoolVar(&f.noSanity, "disable-api-server-sanity-check", false, "Accept an --api-server-url other than that of the kubeconfig")
	set.BoolVar(&o.SkipValidation, "skip-validation", false, "Do not compare the CIDRs with the addresses in use")
	set.Int32Var(&f.sharing, sharingFlag, capacity.DefaultPercentage, "How much of what this cluster has free each consumer is offered, in percent")
	set.BoolVar(&o.EnableMetrics, "enable-metrics", false, "Serve metrics")
	set.StringVarP(&f.format, "output", "o", "", "Write what was installed to standard output: json or yaml")
	s.Complete(command, "output", complete.Words(output.Formats...))
	session.OfV1(set, "disable-telemetry", false, "nothing is reported to anybody")
	session.OfV1(set, "disable-kernel-version-check", false, "no kernel is refused for its version; agents say what they miss on a node")
}

func (f *installFlags) run(s *session.Session, command *cobra.Command, provider install.Provider) error {
	if err := f.check(command); err != nil {
		return err
	}
	options := f.options
	options.Timeout, options.Observer, options.Chart = f.timeout, s.Observer(), s.Chart
	if command.Flags().Changed(sharingFlag) {
		options.SharingPercentage = &f.sharing
	}
	options.Wishes = install.Wishes{
		Provider: provider, PodCIDRs: f.podCIDRs, ServiceCIDR: f.serviceCIDR, APIServerURL: f.apiServer, NoSanityCheck: f.noSanity,
	}
	var err error
	if options.Values, err = install.ReadValues(command.Context(), s.Streams.In, f.files); err != nil {
		return err
	}
	if options.Cluster, err = s.Cluster(); err != nil {
		return err
	}
	if f.dryRun || f.onlyValues {
		return f.preview(s, command, options)
	}
	report, err := install.Run(command.Context(), options)
	if err != nil {
		return err
	}
	return s.Show(f.format, report, func() {
		s.Say("")
		s.Say(installed(s, report))
	})
}

// installed says what runs; who upgrades has peers already, or knows how to get them.
func installed(s *session.Session, report *install.Report) string {
	runs := fmt.Sprintf("Liqo %s runs in cluster %s.", report.Version, report.ClusterID)
	if report.Upgraded {
		return runs
	}
	return runs + " Next: " + s.Next("peer", nil) + " --remote-kubeconfig KUBECONFIG_OF_THE_PROVIDER"
}

// check refuses what contradicts itself, without any cluster.
func (f *installFlags) check(command *cobra.Command) error {
	if err := session.Positive(f.timeout); err != nil {
		return err
	}
	if _, err := output.ParseFormat(f.format); err != nil {
		return err
	}
	if f.options.ChartPath != "" && f.options.RepoURL != "" {
		return failure.Misuse("leave one of them out", "--repo-url and --local-chart-path exclude each other")
	}
	if f.dryRun && f.onlyValues {
		return failure.Misuse("leave one of them out", "--dry-run and --only-output-values exclude each other")
	}
	if command.Flags().Changed("dump-values-path") && !f.onlyValues {
		return failure.Misuse("add --only-output-values", "--dump-values-path has no meaning without --only-output-values")
	}
	if f.options.ClusterID != "" {
		if err := identity.ValidateClusterID(f.options.ClusterID); err != nil {
			return failure.Misuse("give another one with --cluster-id", "%w", err)
		}
	}
	return session.Labels("cluster-labels", f.options.ClusterLabels)
}

// preview writes values or manifests, and installs nothing.
func (f *installFlags) preview(s *session.Session, command *cobra.Command, options install.Options) error {
	plan, err := install.Prepare(command.Context(), options)
	if err != nil {
		return err
	}
	if f.dryRun {
		manifests, err := plan.Render(command.Context())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.Streams.Out, manifests)
		return err
	}
	if f.dump == "-" {
		return output.Write(s.Streams.Out, output.YAML, plan.Values)
	}
	file, err := os.OpenFile(f.dump, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return failure.Misuse("choose another file with --dump-values-path", "writing the values: %w", err)
	}
	if err := output.Write(file, output.YAML, plan.Values); err != nil {
		_ = file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("writing the values to %s: %w", f.dump, err)
	}
	s.Say("The values are in " + f.dump + ". Next: helm install liqo CHART" +
		" --namespace " + options.Cluster.LiqoNamespace + " --create-namespace --values " + f.dump)
	return nil
}
