package inspection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/action/info"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
)

// Commands returns the family's commands.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{newInfo(s), newVersion(s)}
}

const infoExample = `  # Is everything well?
  {{ .Executable }} info

  # Use one value in a script
  {{ .Executable }} info --get local.clusterid

  # All about one peer
  {{ .Executable }} info peer milan`

type infoFlags struct{ format, query string }

func newInfo(s *session.Session) *cobra.Command {
	f := &infoFlags{}
	command := &cobra.Command{
		Use: "info", Short: "Show the state of Liqo in this cluster", Example: infoExample, Args: cobra.NoArgs,
		Long: `Show the state of Liqo in this cluster: its ID and version, the health of its pods, and its peers.

It exits with code 4 if a pod is not ready, or something of a peering does not work.`,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(s, command) },
	}
	set := command.PersistentFlags()
	s.Local.AddNamespace(set)
	set.StringVarP(&f.format, "output", "o", "", "Write to standard output as json or yaml")
	set.StringVarP(&f.query, "get", "g", "", "Write one value only, by its path, such as local.clusterid")
	s.Complete(command, "output", complete.Words(output.Formats...))
	s.Complete(command, "get", complete.Words("clusterid", "local.clusterid", "local.version", "local.labels", "local.apiserveraddr", "health.healthy",
		"peerings.peers", "network.enabled", "network.podcidrs", "network.servicecidr", "network.externalcidr", "network.internalcidr"))
	command.AddCommand(newInfoPeer(s, f))
	return command
}

func (f *infoFlags) run(s *session.Session, command *cobra.Command) error {
	if _, err := output.ParseFormat(f.format); err != nil {
		return err
	}
	cluster, err := s.Cluster()
	if err != nil {
		return err
	}
	report, err := info.Read(command.Context(), cluster, s.Verbose() || f.query != "")
	if err != nil {
		return err
	}
	if f.query != "" {
		query := f.query
		if strings.EqualFold(query, "clusterid") {
			query = "local.clusterid"
		}
		return f.one(s, report, query)
	}
	if err := s.Show(f.format, report, func() { Render(s, report) }); err != nil {
		return err
	}
	return Verdict(report)
}

// one writes a single value: bare if it is a word or number, else structured.
func (f *infoFlags) one(s *session.Session, report any, query string) error {
	value, err := info.Query(report, query)
	if err != nil {
		return err
	}
	switch typed := value.(type) {
	case map[string]any, []any:
		format := output.Format(f.format)
		if format == output.Human {
			format = output.YAML
		}
		return output.Write(s.Streams.Out, format, typed)
	case nil:
		output.Print(s.Streams.Out, "")
	default:
		output.Print(s.Streams.Out, fmt.Sprint(typed))
	}
	return nil
}

// Verdict turns what was seen into the exit code.
func Verdict(report *info.Report) error {
	var problems []string
	if !report.Health.Healthy {
		problems = append(problems, "the installation is not healthy")
	}
	for _, peer := range report.Peerings.Peers {
		statuses := []info.Status{peer.AuthenticationStatus, peer.OffloadingStatus, peer.NetworkingStatus}
		if peer.Cause != nil || slices.Contains(statuses, info.Unhealthy) {
			problems = append(problems, "there is a problem with the peering with "+peer.ClusterID)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return failure.New(failure.Problems, nextOf(report), "%s", strings.Join(problems, "; "))
}

// nextOf is where more is said of the first that does not work.
func nextOf(report *info.Report) string {
	former := func(peer info.Peer) bool { return peer.Cause != nil && peer.Cause.Object == "Cluster "+peer.ClusterID }
	peers := report.Peerings.Peers
	switch i := slices.IndexFunc(peers, former); {
	case slices.ContainsFunc(peers, func(peer info.Peer) bool { return !former(peer) }):
		return "liqoctl info peer"
	case !report.Health.Healthy || i < 0:
		return "see why with 'kubectl describe pods -n " + report.Health.Namespace + "'"
	default:
		return "liqoctl unpeer --force " + peers[i].ClusterID
	}
}

// Render shows a report to people, on standard output.
func Render(s *session.Session, report *info.Report) {
	page := output.NewPage(s.Streams.Out, s.Style())
	page.Section("Local installation")
	page.Field("Cluster ID", report.Local.ClusterID)
	page.Field("Version", orDash(report.Local.Version))
	page.Field("Labels", orDash(pairs(report.Local.Labels)))
	page.Field("API server", orDash(report.Local.APIServerAddr))
	page.Section("Health")
	if report.Health.Healthy {
		page.Line("All pods are ready")
	}
	for _, name := range slices.Sorted(maps.Keys(report.Health.UnhealthyPods)) {
		pod := report.Health.UnhealthyPods[name]
		page.Field(name, fmt.Sprintf("%d of %d containers ready, %d restarts: %s", pod.ReadyContainers, pod.TotalContainers, pod.Restarts, pod.Status))
	}
	if !report.Health.Healthy && len(report.Health.UnhealthyPods)+len(report.Health.Lacking) == 0 {
		page.Line("There are no pods")
	}
	for _, lack := range report.Health.Lacking {
		page.Line(lack)
	}
	if report.Network != nil {
		page.Section("Network")
		page.Field("Module", map[bool]string{true: "on", false: "off"}[report.Network.Enabled])
		page.Field("Pod CIDRs", orDash(strings.Join(report.Network.PodCIDRs, ", ")))
		page.Field("Service CIDR", orDash(report.Network.ServiceCIDR))
		page.Field("External CIDR", orDash(report.Network.ExternalCIDR))
		page.Field("Internal CIDR", orDash(report.Network.InternalCIDR))
	}
	page.Section("Peerings")
	if len(report.Peerings.Peers) == 0 {
		page.Line("None")
		return
	}
	rows := make([][]string, len(report.Peerings.Peers))
	for i, peer := range report.Peerings.Peers {
		rows[i] = []string{peer.ClusterID, string(peer.Role), string(peer.NetworkingStatus), string(peer.AuthenticationStatus), string(peer.OffloadingStatus)}
	}
	page.Table([]string{"CLUSTER ID", "ROLE", "NETWORKING", "AUTHENTICATION", "OFFLOADING"}, rows)
	for _, peer := range report.Peerings.Peers {
		if peer.Cause != nil {
			page.Field(peer.ClusterID, peer.Cause.String())
		}
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func pairs(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ", ")
}
