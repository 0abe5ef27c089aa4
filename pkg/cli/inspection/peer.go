package inspection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/cli/action/info"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
)

func newInfoPeer(s *session.Session, f *infoFlags) *cobra.Command {
	return &cobra.Command{
		Use: "peer [CLUSTER_ID...]", Short: "Show the state of peerings",
		Long: `Show the state of the peerings with the given clusters, or of all peerings.

What does not work is named on top, the first cause first, and the conditions of all
objects that a peering consists of are shown; with --verbose also if all is well. It exits
with code 4 if something does not work.`,
		Example: `  {{ .Executable }} info peer
  {{ .Executable }} info peer milan --get authentication.status`,
		ValidArgsFunction: complete.Arguments(s.Local, complete.ClusterIDs, 0),
		RunE:              func(command *cobra.Command, args []string) error { return f.peers(s, command, args) },
	}
}

func (f *infoFlags) peers(s *session.Session, command *cobra.Command, ids []string) error {
	if _, err := output.ParseFormat(f.format); err != nil {
		return err
	}
	cluster, err := s.Cluster()
	if err != nil {
		return err
	}
	reports, err := info.ReadPeers(command.Context(), cluster, ids)
	if err != nil {
		return err
	}
	if f.query != "" {
		return f.onePeer(s, reports)
	}
	err = s.Show(f.format, reports, func() {
		if len(reports) == 0 {
			s.Say("This cluster has no peers. Next: {{ .Executable }} peer --remote-kubeconfig KUBECONFIG_OF_THE_PROVIDER")
		}
		for _, id := range slices.Sorted(maps.Keys(reports)) {
			RenderPeer(s, reports[id])
		}
	})
	if err != nil {
		return err
	}
	return PeersVerdict(reports)
}

// onePeer queries below the peer's ID, which may be left out if there is one peer only.
func (f *infoFlags) onePeer(s *session.Session, reports map[string]*info.PeerReport) error {
	if len(reports) == 1 {
		for id, report := range reports {
			if first, _, _ := strings.Cut(f.query, "."); !strings.EqualFold(first, id) {
				return f.one(s, report, f.query)
			}
		}
	}
	return f.one(s, reports, f.query)
}

// PeersVerdict turns what was seen of peerings into the exit code, and names the first cause of each that does not work.
func PeersVerdict(reports map[string]*info.PeerReport) error {
	var broken, ways []string
	for _, id := range slices.Sorted(maps.Keys(reports)) {
		report := reports[id]
		statuses := []info.Status{report.Network.Status, report.Authentication.Status, report.Offloading.Status}
		switch {
		case len(report.Causes) > 0:
			broken, ways = append(broken, id+" ("+report.Causes[0].String()+")"), append(ways, report.Cure())
		case slices.Contains(statuses, info.Unhealthy):
			broken, ways = append(broken, id), append(ways, "")
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return failure.New(failure.Problems, failure.WayOut(ways), "there is a problem with the peering with %s", strings.Join(broken, ", "))
}

// RenderPeer shows one peering to people, on standard output.
func RenderPeer(s *session.Session, report *info.PeerReport) {
	page := output.NewPage(s.Streams.Out, s.Style())
	page.Section("Peer " + report.Info.ClusterID)
	for i, cause := range report.Causes {
		name := "First cause"
		if i > 0 {
			name = "And"
		}
		page.Field(name, cause.String())
	}
	tell := teller(func(about string, texts []string) { alerts(page, report.Causes, about, texts) })
	for _, unseen := range report.Unseen {
		page.Field("Not seen", unseen+": you are not allowed to list them")
	}
	page.Field("Role", string(report.Info.Role))
	if report.Hosted != nil {
		page.Field("Has here", report.Hosted.String())
	}
	networkOf(page, &report.Network, tell)
	module(page, "Authentication", report.Authentication.Module, tell)
	if report.Authentication.APIServerAddr != "" {
		page.Field("  API server", report.Authentication.APIServerAddr)
	}
	for _, slice := range report.Authentication.ResourceSlices {
		state := "not accepted yet"
		if slice.Accepted {
			state = "accepted: " + amounts(slice.Resources)
			if less := share.Shortfall(slice.Resources, slice.Asked); less != "" {
				state += "; less than asked for: " + less
			}
		}
		page.Field("  Resource slice", fmt.Sprintf("%s (%s), %s", slice.Name, strings.ToLower(slice.Action), state))
		tell("ResourceSlice "+slice.Name+":", slice.Alerts)
	}
	module(page, "Offloading", report.Offloading.Module, tell)
	for _, node := range report.Offloading.VirtualNodes {
		page.Field("  Virtual node", fmt.Sprintf("%s, %s: %s", node.Name, node.Status, amounts(node.Resources)))
		tell("ResourceSlice "+node.ResourceSlice+":", node.Alerts)
	}
	if len(report.Causes) > 0 || s.Verbose() {
		conditions(page, report.Conditions)
	}
}

// conditions shows what every object says of itself.
func conditions(page *output.Page, list []info.Condition) {
	rows := make([][]string, len(list))
	for i, c := range list {
		rows[i] = []string{c.Object, c.Type, c.Status, c.Reason, c.Message}
	}
	page.Section("Conditions")
	page.Table([]string{"OBJECT", "CONDITION", "STATUS", "REASON", "MESSAGE"}, rows)
}

func amounts(resources corev1.ResourceList) string { return share.Amounts(resources) }

// teller shows the alerts about something; about nothing, they are of conditions of the ForeignCluster, or begin with what they are about.
type teller func(about string, alerts []string)

func module(page *output.Page, name string, state info.Module, tell teller) {
	page.Field(name, string(state.Status))
	tell("", state.Alerts)
}

// networkOf shows the network to a peer.
func networkOf(page *output.Page, network *info.Networking, tell teller) {
	module(page, "Network", network.Module, tell)
	if gateway := network.Gateway; gateway != nil {
		tunnel := network.State
		if network.Latency != "" {
			tunnel += ", latency " + network.Latency
		}
		if network.MTU != 0 {
			tunnel += fmt.Sprintf(", MTU %d", network.MTU)
		}
		page.Field("  Tunnel", tunnel)
		where := fmt.Sprintf("%s, port %d", orDash(strings.Join(gateway.Address, ", ")), gateway.Port)
		page.Field("  Gateway server", map[string]string{info.Server: "of the peer, at ", info.Client: "here, at "}[gateway.Role]+where)
	}
	for _, r := range network.Ranges {
		page.Field("  Range", r.String())
	}
}

// alerts shows what is said about something, but for what a cause that names it has said in the same words.
func alerts(page *output.Page, causes []info.Cause, about string, texts []string) {
	for _, text := range texts {
		first, words, _ := strings.Cut(text, ": ")
		said := func(c info.Cause) bool {
			return strings.Contains(c.Message, words) && (c.Object == first || strings.Contains(c.String(), cmp.Or(about, ": "+first+" is ")))
		}
		if !slices.ContainsFunc(causes, said) {
			page.Field("  Alert", text)
		}
	}
}
