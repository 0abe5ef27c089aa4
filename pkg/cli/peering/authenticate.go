package peering

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/action/authenticate"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
)

func newAuthenticate(s *session.Session) *cobra.Command {
	remote := target.NewFlags(true)
	var timeout time.Duration
	var proxyURL, format string
	var skipValidation bool
	command := &cobra.Command{
		Use: "authenticate", Aliases: []string{"auth"}, Short: "Introduce this cluster to a provider",
		Long: `Introduce this cluster to a provider, as the first step of peering.

The provider issues a certificate that allows this cluster to ask for resources, and nothing else.`,
		Example: `  {{ .Executable }} authenticate --remote-kubeconfig ~/.kube/milan.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := session.Positive(timeout); err != nil {
				return err
			}
			if err := checkProxy(proxyURL); err != nil {
				return err
			}
			consumer, provider, err := s.Clusters(remote)
			if err != nil {
				return err
			}
			report, err := authenticate.Run(command.Context(), authenticate.Options{
				Consumer: consumer, Provider: provider, ProxyURL: session.Given(command.Flags(), "proxy-url", proxyURL),
				SkipValidation: skipValidation, Timeout: timeout, Observer: s.Observer(),
			})
			if err != nil {
				return err
			}
			return s.Show(format, report, func() {
				s.Say(fmt.Sprintf("%s is authenticated with %s. Next: %s", report.ConsumerID, report.ProviderID, s.Next("peer", remote)))
			})
		},
	}
	pairFlags(s, command, remote)
	s.TimeoutFlag(command.Flags(), &timeout, authenticate.DefaultTimeout)
	s.OutputFlag(command, &format, "Write what is in place to standard output")
	command.Flags().StringVar(&proxyURL, "proxy-url", "", "Proxy through which this cluster reaches the provider's API server")
	command.Flags().BoolVar(&skipValidation, "skip-validation", false, "Authenticate although the versions of Liqo differ")
	return command
}

// pairFlags registers what commands on two clusters have in common.
func pairFlags(s *session.Session, command *cobra.Command, remote *target.Flags) {
	s.Local.AddNamespace(command.Flags())
	remote.AddNamespace(command.Flags())
	remote.AddTo(command.Flags())
	s.CompleteCluster(command, remote)
}

func newUnauthenticate(s *session.Session) *cobra.Command {
	remote := target.NewFlags(true)
	var timeout time.Duration
	var wait bool
	command := &cobra.Command{
		Use: "unauthenticate", Aliases: []string{"unauth"}, Short: "Take back the introduction to a provider",
		Long: `Take back the introduction to a provider. It is refused as long as this cluster has resource slices
there; '{{ .Executable }} unpeer' removes those too.`,
		Example: `  {{ .Executable }} unauthenticate --remote-kubeconfig ~/.kube/milan.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := session.Positive(timeout); err != nil {
				return err
			}
			consumer, provider, err := s.Clusters(remote)
			if err != nil {
				return err
			}
			return authenticate.Undo(command.Context(), authenticate.UndoOptions{
				Consumer: consumer, Provider: provider, NoWait: !wait, Timeout: timeout, Observer: s.Observer(),
			})
		},
	}
	pairFlags(s, command, remote)
	s.TimeoutFlag(command.Flags(), &timeout, authenticate.DefaultTimeout)
	command.Flags().BoolVar(&wait, "wait", true, "Wait until everything is gone")
	return command
}
