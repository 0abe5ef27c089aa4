package inspection

import (
	"github.com/spf13/cobra"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/version"
)

// versions are what the command shows.
type versions struct {
	Client string `json:"client"`
	Server string `json:"server,omitempty"`
}

func newVersion(s *session.Session) *cobra.Command {
	var clientOnly bool
	var format string
	command := &cobra.Command{
		Use: "version", Short: "Show the versions of this program and of Liqo in the cluster", Args: cobra.NoArgs,
		Example: `  {{ .Executable }} version
  {{ .Executable }} version --client`,
		RunE: func(command *cobra.Command, _ []string) error {
			found := versions{Client: version.Version}
			var err error
			if !clientOnly {
				found.Server, err = serverVersion(s, command)
			}
			shown := s.Show(format, found, func() {
				output.Print(s.Streams.Out, "Client version: "+found.Client)
				if found.Server != "" {
					output.Print(s.Streams.Out, "Server version: "+found.Server)
				}
			})
			if err != nil {
				return err
			}
			if why := target.WhyVersionsDiffer(found.Client, found.Server); why != "" {
				s.Observer().Note(progress.Warning, "", "this program and the cluster have different versions: "+why)
			}
			return shown
		},
	}
	s.Local.AddNamespace(command.Flags())
	s.OutputFlag(command, &format, "Write to standard output")
	command.Flags().BoolVar(&clientOnly, "client", false, "Show the version of this program only")
	return command
}

func serverVersion(s *session.Session, command *cobra.Command) (string, error) {
	cluster, err := s.Cluster()
	if err != nil {
		return "", err
	}
	installation, err := cluster.RequireInstalled(command.Context())
	if err != nil {
		return "", err
	}
	if installation.Version == "" {
		return "", failure.New(failure.Problems, "install it again with 'liqoctl install'", "the controller manager is missing (cluster %s)", cluster.Name)
	}
	return installation.Version, nil
}
