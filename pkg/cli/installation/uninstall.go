package installation

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/action/uninstall"
	"liqo.io/liqo/pkg/cli/session"
)

const uninstallLong = `Remove Liqo from a cluster.

It is refused as long as the cluster has peerings or offloaded namespaces; the message
names the command that ends them. The definitions of Liqo's kinds, and the tenant
namespaces, stay unless --purge is given. What is left in the end is listed.`

func newUninstall(s *session.Session) *cobra.Command {
	var timeout time.Duration
	var purge bool
	var format string
	command := &cobra.Command{
		Use: "uninstall", Short: "Remove Liqo from a cluster", Long: uninstallLong,
		Example: `  {{ .Executable }} uninstall

  # Leave nothing behind, and do not ask
  {{ .Executable }} uninstall --purge --skip-confirm`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := session.Positive(timeout); err != nil {
				return err
			}
			cluster, err := s.Cluster()
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Liqo is removed from %s.", cluster.Name)
			if purge {
				question = fmt.Sprintf("Liqo is removed from %s, with its namespace, its definitions and all their objects.", cluster.Name)
			}
			if err := s.Confirm(command.Context(), question); err != nil {
				return err
			}
			report, err := uninstall.Run(command.Context(), uninstall.Options{Cluster: cluster, Purge: purge, Timeout: timeout, Observer: s.Observer()})
			if err != nil {
				if report != nil {
					err = errors.Join(err, s.Show(format, report, func() {}))
				}
				return err
			}
			return s.Show(format, report, func() { s.Say("Liqo is removed from " + cluster.Name + ".") })
		},
	}
	s.Local.AddNamespace(command.Flags())
	s.TimeoutFlag(command.Flags(), &timeout, uninstall.DefaultTimeout)
	s.OutputFlag(command, &format, "Write what is left to standard output")
	command.Flags().BoolVar(&purge, "purge", false, "Also remove Liqo's definitions, tenant namespaces and namespace")
	return command
}
