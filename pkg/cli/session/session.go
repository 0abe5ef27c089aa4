package session

import (
	"bufio"
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// Session is one run of liqoctl.
type Session struct {
	// Streams of the process.
	Streams genericiooptions.IOStreams
	// Executable is how the user calls us: liqoctl, or kubectl liqo.
	Executable string
	// Environment looks up variables.
	Environment func(string) string
	// Clock measures how long steps take.
	Clock clock.PassiveClock
	// Local are the flags for the cluster that commands work on.
	Local *target.Flags
	// Chart that install installs unless told otherwise.
	Chart fs.FS
	// Started is set once the command line was understood.
	Started bool

	// lines is the talk if the user is a program, else nil.
	lines       *output.Lines
	verbose     bool
	skipConfirm bool
	color       string
	labels      map[string]string
	annotations map[string]string
}

// New returns a session with its defaults.
func New(streams genericiooptions.IOStreams, executable string, environment func(string) string) *Session {
	return &Session{
		Streams: streams, Executable: executable, Environment: environment, Clock: clock.RealClock{},
		Local: target.NewFlags(false), color: string(output.ColorAuto),
	}
}

// AddFlags registers the global flags.
func (s *Session) AddFlags(command *cobra.Command) {
	set := command.PersistentFlags()
	s.Local.AddTo(set)
	set.BoolVarP(&s.verbose, "verbose", "v", false, "Show more")
	set.BoolVar(&s.skipConfirm, "skip-confirm", false, "Do not ask before destructive operations")
	set.StringVar(&s.color, "color", s.color, "When to use colours: auto, always or never")
	set.StringToStringVar(&s.labels, "global-labels", nil, "Labels for every object that is created (key=value,...)")
	set.StringToStringVar(&s.annotations, "global-annotations", nil, "Annotations for every object that is created (key=value,...)")
	s.CompleteCluster(command, s.Local)
	register(command, "color", complete.Words("auto", "always", "never"))
}

// CompleteCluster offers the names in the kubeconfig for the flags that name a cluster.
func (s *Session) CompleteCluster(command *cobra.Command, flags *target.Flags) {
	prefix := ""
	if flags.Remote {
		prefix = target.RemotePrefix
	}
	register(command, prefix+"context", complete.Kubeconfig(flags, func(n complete.Names) []string { return n.Contexts }))
	register(command, prefix+"cluster", complete.Kubeconfig(flags, func(n complete.Names) []string { return n.Clusters }))
	register(command, prefix+"user", complete.Kubeconfig(flags, func(n complete.Names) []string { return n.Users }))
}

// CompletePeer offers the cluster IDs of the peers for a flag.
func (s *Session) CompletePeer(command *cobra.Command, flag string) {
	register(command, flag, complete.Flag(s.Local, complete.ClusterIDs))
}

// register offers proposals for a flag's value. It fails only for flags that do not exist, which tests would show.
func register(command *cobra.Command, flag string, function complete.Function) {
	_ = command.RegisterFlagCompletionFunc(flag, function)
}

// Complete offers proposals for the value of a command's flag.
func (s *Session) Complete(command *cobra.Command, flag string, function complete.Function) {
	register(command, flag, function)
}

// EnvironmentPrefix starts the names of the variables that stand in for flags: LIQOCTL_REMOTE_CONTEXT for --remote-context.
const EnvironmentPrefix = "LIQOCTL_"

// secret are the flags that no variable stands in for.
var secret = []string{"token", "password"}

// FromEnvironment takes the flags that were not given from the environment.
func (s *Session) FromEnvironment(command *cobra.Command) error {
	var failed error
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		variable := EnvironmentPrefix + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value := s.Environment(variable)
		if flag.Changed || value == "" || slices.Contains(secret, strings.TrimPrefix(flag.Name, target.RemotePrefix)) {
			return
		}
		if err := command.Flags().Set(flag.Name, value); err != nil && failed == nil {
			failed = failure.Misuse("correct or unset it", "the variable %s cannot be used: %w", variable, err)
		}
	})
	return failed
}

// Start checks the global flags, once the rest of the command line was understood.
func (s *Session) Start(command *cobra.Command) error {
	if err := s.FromEnvironment(command); err != nil {
		return err
	}
	switch output.ColorMode(s.color) {
	case output.ColorAuto, output.ColorAlways, output.ColorNever:
	default:
		return failure.Misuse("choose one of auto, always, never", "--color %s is unknown", s.color)
	}
	s.talkLines(command)
	s.tellOfV1(command)
	s.Started = true
	return nil
}

// talkLines has what is said on standard error said to programs, if the output that the command writes is for programs.
func (s *Session) talkLines(command *cobra.Command) {
	format := command.Flags().Lookup(outputFlag)
	if s.lines != nil || format == nil {
		return
	}
	value := format.Value.String()
	if variable := s.Environment(EnvironmentPrefix + strings.ToUpper(outputFlag)); variable != "" && !format.Changed {
		value = variable
	}
	if output.Format(value) == output.JSON {
		s.lines = output.NewLines(s.Streams.ErrOut, s.Clock)
	}
}

// outputFlag chooses the format of data on standard output, and of the talk with it.
const outputFlag = "output"

// Verbose tells whether the user wants more.
func (s *Session) Verbose() bool { return s.verbose }

// Stamp is what every created object gets.
func (s *Session) Stamp() target.Stamp {
	return target.Stamp{Labels: s.labels, Annotations: s.annotations}
}

// Style of the streams.
func (s *Session) Style() output.Style {
	return output.Detect(s.Streams, output.ColorMode(s.color), s.Environment)
}

// Observer shows progress on standard error.
func (s *Session) Observer() progress.Observer {
	if s.lines != nil {
		return s.lines
	}
	return output.NewObserver(s.Streams.ErrOut, s.Style(), s.Clock)
}

// Fail tells on standard error why the command ends. The command may have been refused before it
// began, with a command line that was read up to the mistake.
func (s *Session) Fail(command *cobra.Command, err error) {
	s.talkLines(command)
	if s.lines != nil {
		s.lines.Error(s.Executable, err)
		return
	}
	output.Error(s.Streams.ErrOut, s.Style(), s.Executable, err)
}

// Cluster opens the cluster that the command works on.
func (s *Session) Cluster() (*target.Cluster, error) { return s.Local.Open(s.Stamp()) }

// Clusters opens the two clusters of a command that needs both.
func (s *Session) Clusters(remote *target.Flags) (local, other *target.Cluster, err error) {
	if !remote.Given() {
		return nil, nil, failure.Misuse("name it with --remote-kubeconfig or --remote-context", "the remote cluster is missing")
	}
	if local, err = s.Cluster(); err != nil {
		return nil, nil, err
	}
	other, err = remote.Open(s.Stamp())
	return local, other, err
}

// Confirm asks whether to go on with something destructive.
func (s *Session) Confirm(ctx context.Context, question string) error {
	if s.skipConfirm {
		return nil
	}
	if !output.IsTerminal(s.Streams.In) {
		return failure.Misuse("add --skip-confirm", "%s This has to be confirmed, and there is nobody to ask", question)
	}
	output.Print(s.Streams.ErrOut, question+" Type yes to go on:")
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(s.Streams.In).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-answers:
		if answer == "yes" || answer == "y" {
			return nil
		}
		return failure.New(failure.Failed, "", "not confirmed: nothing was changed")
	}
}

// Show writes a report: as JSON or YAML if the user asked for it, else as the function does.
func (s *Session) Show(format string, report any, human func()) error {
	parsed, err := output.ParseFormat(format)
	if err != nil {
		return err
	}
	if parsed == output.Human {
		human()
		return nil
	}
	return output.Write(s.Streams.Out, parsed, report)
}

// Say writes a line of talk.
func (s *Session) Say(line string) {
	if s.lines != nil {
		s.lines.Note(progress.Info, "", s.Text(line))
		return
	}
	output.Print(s.Streams.ErrOut, s.Text(line))
}

// Next is a command on the same clusters as this one, for suggestions; remote is nil if it needs no other cluster.
func (s *Session) Next(command string, remote *target.Flags) string {
	words := []string{"{{ .Executable }}", command}
	for _, flags := range []*target.Flags{s.Local, remote} {
		if flags != nil && flags.AsGiven() != "" {
			words = append(words, flags.AsGiven())
		}
	}
	return s.Text(strings.Join(words, " "))
}

// Text puts the name that the user calls us by into a text that names us as {{ .Executable }}.
func (s *Session) Text(text string) string {
	return strings.ReplaceAll(text, "{{ .Executable }}", s.Executable)
}

// OutputFlag registers -o on a command.
func (s *Session) OutputFlag(command *cobra.Command, format *string, usage string) {
	command.Flags().StringVarP(format, outputFlag, "o", "", usage+": json or yaml")
	register(command, outputFlag, complete.Words(output.Formats...))
}

// TimeoutFlag registers --timeout on a command.
func (s *Session) TimeoutFlag(set *pflag.FlagSet, timeout *time.Duration, value time.Duration) {
	set.DurationVar(timeout, "timeout", value, "How long to wait for everything to be done")
}

// Positive refuses durations that end before they begin.
func Positive(timeout time.Duration) error {
	if timeout <= 0 {
		return failure.Misuse("give a duration such as 5m", "--timeout %s is not positive", timeout)
	}
	return nil
}

// Labels refuses what is no label among the values of a flag.
func Labels(flag string, labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(labels[key])) > 0 {
			return failure.Misuse("write it as KEY=VALUE, as kubectl label takes it", "--%s %s=%s is not a label", flag, key, labels[key])
		}
	}
	return nil
}

// Given is the value of a flag that the user gave, be it zero, and else nil: a default that nobody asked for changes nothing that is there.
func Given[T any](set *pflag.FlagSet, flag string, value T) *T {
	if !set.Changed(flag) {
		return nil
	}
	return &value
}
