package cli

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/inspection"
	"liqo.io/liqo/pkg/cli/installation"
	"liqo.io/liqo/pkg/cli/moving"
	"liqo.io/liqo/pkg/cli/networking"
	"liqo.io/liqo/pkg/cli/offloading"
	"liqo.io/liqo/pkg/cli/peering"
	"liqo.io/liqo/pkg/cli/session"
)

const rootLong = `Make several Kubernetes clusters work as one.

  1. Install Liqo in each cluster:            {{ .Executable }} install
  2. Use the resources of another cluster:    {{ .Executable }} peer --remote-kubeconfig FILE
  3. Let a namespace's pods run there:        {{ .Executable }} offload namespace NAME
  4. See how it goes:                         {{ .Executable }} info

It also works as a plugin: call the program kubectl-liqo, and it becomes 'kubectl liqo'.
For completion there, put kubectl_complete-liqo, which the release archives hold, on the PATH: an
executable script that runs 'kubectl liqo __complete "$@"'.

A flag that is not given is taken from the environment, --remote-context for example from
LIQOCTL_REMOTE_CONTEXT.

With -o json the answer on standard output is JSON, and so is what is told on standard error meanwhile:
one object a line, of type begin, waiting, done, warned or failed for a step, info, warning or error.

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 a cluster is not ready for it,
4 problems were found, 5 timed out, 130 interrupted.`

const (
	groupStart   = "start"
	groupPeering = "peering"
	groupInspect = "inspect"
)

// Executable returns how the user calls a program with that first argument: `kubectl liqo` for kubectl-liqo.
func Executable(arg0 string) string {
	name := strings.TrimSuffix(filepath.Base(arg0), ".exe")
	if strings.HasPrefix(name, "kubectl-") {
		return strings.NewReplacer("-", " ", "_", "-").Replace(name)
	}
	return "liqoctl"
}

// New returns the root command of a session.
func New(s *session.Session) *cobra.Command {
	root := &cobra.Command{
		Use: "liqoctl", Short: "Make several Kubernetes clusters work as one", Long: rootLong,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error { return s.Start(command) },
		Args:              cobra.NoArgs,
		RunE:              func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: s.Executable}
	root.SetIn(s.Streams.In)
	root.SetOut(s.Streams.Out)
	root.SetErr(s.Streams.ErrOut)
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Installation:"}, &cobra.Group{ID: groupPeering, Title: "Peering and offloading:"},
		&cobra.Group{ID: groupInspect, Title: "Looking at it:"})
	root.SetHelpCommandGroupID(groupInspect)
	root.SetCompletionCommandGroupID(groupInspect)
	for _, family := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{groupStart, installation.Commands(s)}, {groupPeering, peering.Commands(s)}, {groupPeering, networking.Commands(s)},
		{groupPeering, offloading.Commands(s)}, {groupPeering, moving.Commands(s)}, {groupInspect, inspection.Commands(s)},
	} {
		for _, command := range family.commands {
			command.GroupID = family.id
			root.AddCommand(command)
		}
	}
	s.AddFlags(root)
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return failure.Misuse(insteadOf(command, err), "%w", err)
	})
	template(root, s)
	return root
}

const (
	singleSteps = "peer, authenticate and network connect do these steps, and kubectl shows and deletes the objects"
	byFlags     = "'liqoctl install' detects what it can, and takes the rest by flags such as --pod-cidr, --service-cidr and --api-server-url"
)

// ofV1 are the verbs that only Liqo v1 has, with what does their work here.
var ofV1 = map[string]string{"generate": singleSteps}

// kindsOfV1 are the kinds that only Liqo v1 creates, deletes or gets, each with its aliases.
var kindsOfV1 = map[string][]string{
	"configuration": {"config", "configurations"}, "gatewayserver": {"gatewayservers", "server", "servers", "gws"},
	"gatewayclient": {"gatewayclients", "client", "clients", "gwc"}, "publickey": {"publickeys", "publickeies"}, "nonce": nil,
	"peering-user": nil, "kubeconfig": {"kc"},
}

// insteadOfV1 is what does the work here of a command of Liqo v1 that is not there; empty if v1 has none either.
func insteadOfV1(command *cobra.Command, word string) string {
	if !command.HasParent() {
		return ofV1[word]
	}
	if slices.Contains([]string{"create", "delete", "get"}, command.Name()) {
		for kind, aliases := range kindsOfV1 {
			if kind == word || slices.Contains(aliases, word) {
				return singleSteps
			}
		}
	}
	if command.Name() == "install" && slices.Contains(providersOfV1, word) {
		return byFlags
	}
	return ""
}

// providersOfV1 are the clusters for which Liqo v1 has an install of its own, and which have none here.
var providersOfV1 = []string{"aks", "eks", "gke", "openshift"}

// unknownCommand is the error for a command line that names a command that there is not, whatever flags follow: nobody knows them either.
func unknownCommand(root *cobra.Command, args []string) error {
	command, rest, err := root.Find(args)
	if err != nil || !command.HasSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil
	}
	var known []string
	for _, child := range command.Commands() {
		if child.IsAvailableCommand() {
			known = append(append(known, child.Name()), child.Aliases...)
		}
	}
	next := command.CommandPath() + " --help"
	if instead := insteadOfV1(command, rest[0]); instead != "" {
		next = "Liqo v1 has it, and here it is not there yet: " + instead
	} else if likely := failure.Nearest(rest[0], known); len(likely) > 0 {
		next = "did you mean " + command.CommandPath() + " " + likely[0] + "?"
	}
	return failure.Misuse(next, "unknown command %q for %q", rest[0], command.CommandPath())
}

// insteadOf is the way out of an error in flags: the flag that is spelt like one that is not there, or the help.
func insteadOf(command *cobra.Command, err error) string {
	var missing *pflag.NotExistError
	if errors.As(err, &missing) && missing.GetSpecifiedShortnames() == "" {
		var known []string
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden {
				known = append(known, flag.Name)
			}
		})
		if likely := failure.Nearest(missing.GetSpecifiedName(), known); len(likely) > 0 {
			return "did you mean --" + likely[0] + "? See " + command.CommandPath() + " --help"
		}
	}
	return command.CommandPath() + " --help"
}

// template puts the name that the user calls us by into all help texts.
func template(command *cobra.Command, s *session.Session) {
	for _, text := range []*string{&command.Short, &command.Long, &command.Example} {
		*text = s.Text(*text)
	}
	for _, child := range command.Commands() {
		template(child, s)
	}
}

// Program is what liqoctl needs of the process that it runs in.
type Program struct {
	// Streams of the process.
	Streams genericiooptions.IOStreams
	// Environment looks up variables.
	Environment func(string) string
	// Chart that install installs unless told otherwise.
	Chart fs.FS
}

// Run executes a command line, arg0 included, and returns the exit code.
func Run(ctx context.Context, args []string, p Program) failure.Code {
	s := session.New(p.Streams, Executable(args[0]), p.Environment)
	s.Chart = p.Chart
	root := New(s)
	root.SetArgs(args[1:])
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return failure.OK
	}
	if !s.Started && failure.CodeOf(err) == failure.Failed {
		// Cobra refused the command line before any command began.
		err = failure.Misuse(command.CommandPath()+" --help", "%w", err)
	}
	if !s.Started {
		if unknown := unknownCommand(root, args[1:]); unknown != nil {
			err = unknown
		}
	}
	if ctx.Err() != nil || failure.CodeOf(err) == failure.Interrupted {
		err = failure.New(failure.Interrupted, "run the same command again to continue", "interrupted: what is told to be done above stays as it is")
	}
	s.Fail(command, err)
	return failure.CodeOf(err)
}
