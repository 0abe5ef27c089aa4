package offloading

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/placement"
)

var (
	podStrategies = []string{
		string(offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType), string(offloadingv1beta1.RemotePodOffloadingStrategyType),
		string(offloadingv1beta1.LocalPodOffloadingStrategyType),
	}
	mappingStrategies = []string{
		string(offloadingv1beta1.DefaultNameMappingStrategyType), string(offloadingv1beta1.EnforceSameNameMappingStrategyType),
		string(offloadingv1beta1.SelectedNameMappingStrategyType),
	}
	aliases = []string{"ns", "namespaces"}
)

// Commands returns the family's commands.
func Commands(s *session.Session) []*cobra.Command {
	over := &cobra.Command{Use: "offload", Short: "Extend something to other clusters", Args: cobra.NoArgs, RunE: missing("liqoctl offload namespace NAME")}
	over.AddCommand(newOffload(s))
	back := &cobra.Command{Use: "unoffload", Short: "Take something back from other clusters", Args: cobra.NoArgs,
		RunE: missing("liqoctl unoffload namespace NAME")}
	back.AddCommand(newUnoffload(s))
	return []*cobra.Command{over, back}
}

func missing(next string) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		return failure.Misuse(next, "say what to %s", command.Name())
	}
}

const offloadLong = `Extend namespaces to other clusters.

Pods of an offloaded namespace can be scheduled onto the virtual nodes, where they run
in a remote namespace of their own; what they need of the namespace follows them.
Pods that were created before stay where they are. With --evict those leave that run
where new ones may not: each is evicted, as far as PodDisruptionBudgets let it go within
--timeout. Whoever controls a pod makes it anew; a pod that nobody controls is lost.

Run it again to offload a namespace another way. From clusters that are not selected any
more it is taken back: the remote namespace there is deleted with everything in it. It says
what goes, and asks; --skip-confirm is for scripts. It is refused while volumes there hold
data.`

const offloadExample = `  # Extend a namespace to all providers
  {{ .Executable }} offload namespace shop

  # Run its pods at providers in Europe only
  {{ .Executable }} offload namespace shop --pod-offloading-strategy Remote --selector region=europe

  # Bring its pods home, and keep reflecting what pods of other clusters need
  {{ .Executable }} offload namespace shop --pod-offloading-strategy Local --evict

  # Show the object instead of creating it
  {{ .Executable }} offload namespace shop -o yaml`

type offloadFlags struct {
	podStrategy, mappingStrategy, remoteName, query, format string
	selectors                                               []string
	evict                                                   bool
	timeout                                                 time.Duration
}

func newOffload(s *session.Session) *cobra.Command {
	f := &offloadFlags{}
	command := &cobra.Command{
		Use: "namespace NAME...", Aliases: aliases, Short: "Extend namespaces to other clusters", Long: offloadLong, Example: offloadExample,
		ValidArgsFunction: complete.Arguments(s.Local, complete.OffloadableNamespaces, 0),
		RunE:              func(command *cobra.Command, args []string) error { return f.run(s, command, args) },
	}
	set := command.Flags()
	s.Local.AddNamespace(set)
	s.TimeoutFlag(set, &f.timeout, offload.DefaultTimeout)
	set.StringVar(&f.podStrategy, "pod-offloading-strategy", podStrategies[0], "Where pods may run: "+strings.Join(podStrategies, ", "))
	set.StringVar(&f.mappingStrategy, "namespace-mapping-strategy", mappingStrategies[0],
		"How remote namespaces are named: "+strings.Join(mappingStrategies, ", "))
	set.StringVar(&f.remoteName, "remote-namespace-name", "", "Name of the remote namespace, with the mapping strategy SelectedName")
	set.StringArrayVarP(&f.selectors, "selector", "l", nil, "Labels of the virtual nodes to use; commas mean and, repeating the flag means or")
	set.StringVar(&f.query, "ns-selector", "", "Labels of the namespaces to offload, instead of names")
	set.BoolVar(&f.evict, "evict", false, "Evict the pods that run where new ones may not")
	s.OutputFlag(command, &f.format, "Write the objects to standard output instead of creating them")
	s.Complete(command, "pod-offloading-strategy", complete.Words(podStrategies...))
	s.Complete(command, "namespace-mapping-strategy", complete.Words(mappingStrategies...))
	s.Complete(command, "selector", complete.Flag(s.Local, complete.NodeSelectors))
	s.Complete(command, "ns-selector", complete.Flag(s.Local, complete.NamespaceSelectors))
	return command
}

func (f *offloadFlags) run(s *session.Session, command *cobra.Command, args []string) error {
	spec, err := f.spec(args)
	if err != nil {
		return err
	}
	format, err := output.ParseFormat(f.format)
	if err != nil {
		return err
	}
	if format != output.Human && f.evict {
		return failure.Misuse("leave one of them out", "--evict has no meaning with --output, which writes the objects only")
	}
	for _, name := range args {
		if err := offload.WhyNever(placement.HomeNamespaces{Liqo: s.Local.LiqoNamespace}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	if format != output.Human && len(args) > 0 {
		return show(s, format, args, spec)
	}
	cluster, err := s.Cluster()
	if err != nil {
		return err
	}
	namespaces, err := choose(command.Context(), cluster, args, f.query)
	if err != nil {
		return err
	}
	if format != output.Human {
		return show(s, format, namespaces, spec)
	}
	_, err = offload.Namespace(command.Context(), offload.Options{
		Cluster: cluster, Namespaces: namespaces, Spec: spec, Evict: f.evict, Timeout: f.timeout, Confirm: s.Confirm, Observer: s.Observer(),
	})
	return err
}

// show writes the manifests; several as one list.
func show(s *session.Session, format output.Format, namespaces []string, spec offloadingv1beta1.NamespaceOffloadingSpec) error {
	items := make([]any, 0, len(namespaces))
	for _, namespace := range namespaces {
		manifest, err := offload.Render(namespace, spec, s.Stamp())
		if err != nil {
			return err
		}
		items = append(items, manifest)
	}
	if len(items) == 1 {
		return output.Write(s.Streams.Out, format, items[0])
	}
	return output.Write(s.Streams.Out, format, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

// spec reads the flags, without any cluster.
func (f *offloadFlags) spec(args []string) (offloadingv1beta1.NamespaceOffloadingSpec, error) {
	spec := offloadingv1beta1.NamespaceOffloadingSpec{
		PodOffloadingStrategy:    offloadingv1beta1.PodOffloadingStrategyType(f.podStrategy),
		NamespaceMappingStrategy: offloadingv1beta1.NamespaceMappingStrategyType(f.mappingStrategy),
		RemoteNamespaceName:      f.remoteName,
	}
	if err := session.Positive(f.timeout); err != nil {
		return spec, err
	}
	if err := checkNamespaces(args, f.query); err != nil {
		return spec, err
	}
	if !slices.Contains(podStrategies, f.podStrategy) {
		return spec, failure.Misuse("choose one of "+strings.Join(podStrategies, ", "), "--pod-offloading-strategy %s is unknown", f.podStrategy)
	}
	if !slices.Contains(mappingStrategies, f.mappingStrategy) {
		return spec, failure.Misuse("choose one of "+strings.Join(mappingStrategies, ", "), "--namespace-mapping-strategy %s is unknown", f.mappingStrategy)
	}
	if err := f.checkRemoteName(args); err != nil {
		return spec, err
	}
	selector, err := offload.Selector(f.selectors)
	if err != nil {
		return spec, failure.Misuse("write it as kubectl does, for example --selector region=europe,tier!=test", "%w", err)
	}
	spec.ClusterSelector = selector
	return spec, nil
}

func (f *offloadFlags) checkRemoteName(args []string) error {
	selected := f.mappingStrategy == string(offloadingv1beta1.SelectedNameMappingStrategyType)
	switch {
	case f.remoteName != "" && (len(args) > 1 || f.query != ""):
		return failure.Misuse("offload them one by one", "--remote-namespace-name names one namespace, and several are to be offloaded")
	case f.remoteName != "" && !selected:
		return failure.Misuse("add --namespace-mapping-strategy SelectedName",
			"--remote-namespace-name has no meaning with the mapping strategy %s", f.mappingStrategy)
	case f.remoteName == "" && selected:
		return failure.Misuse("add --remote-namespace-name NAME", "the mapping strategy SelectedName needs a name")
	case f.remoteName != "" && len(validation.IsDNS1123Label(f.remoteName)) > 0:
		return failure.Misuse("use lower-case letters, digits and '-'", "--remote-namespace-name %s cannot name a namespace", f.remoteName)
	}
	return nil
}

func checkNamespaces(args []string, query string) error {
	switch {
	case len(args) > 0 && query != "":
		return failure.Misuse("leave one of them out", "namespaces are given both by name and by --ns-selector")
	case len(args) == 0 && query == "":
		return failure.Misuse("name one, or select some with --ns-selector", "the namespace is missing")
	}
	for i, name := range args {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return failure.Misuse("use lower-case letters, digits and '-'", "%q cannot name a namespace", name)
		}
		if slices.Contains(args[:i], name) {
			return failure.Misuse("name it once", "namespace %s is given twice", name)
		}
	}
	if _, err := labels.Parse(query); err != nil {
		return failure.Misuse("write it as kubectl does, for example --ns-selector team=shop", "--ns-selector %s: %w", query, err)
	}
	return nil
}

// choose returns the namespaces that were named or selected.
func choose(ctx context.Context, cluster *target.Cluster, args []string, query string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	selector, err := labels.Parse(query)
	if err != nil {
		return nil, failure.Misuse("write it as kubectl does", "--ns-selector: %w", err)
	}
	list := &corev1.NamespaceList{}
	if err := cluster.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, failure.Unmet("list them with 'kubectl get namespaces --show-labels'", "no namespace has the labels %s (cluster %s)", query, cluster.Name)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

func newUnoffload(s *session.Session) *cobra.Command {
	var query, format string
	var timeout time.Duration
	var volumes bool
	command := &cobra.Command{
		Use: "namespace NAME...", Aliases: aliases, Short: "Take namespaces back from other clusters",
		Long: `Take namespaces back from other clusters.

The remote namespaces are deleted with everything in them. It is refused while volumes
there hold data, unless --delete-volumes is given.`,
		Example:           `  {{ .Executable }} unoffload namespace shop`,
		ValidArgsFunction: complete.Arguments(s.Local, complete.OffloadedNamespaces, 0),
		RunE: func(command *cobra.Command, args []string) error {
			if err := session.Positive(timeout); err != nil {
				return err
			}
			if err := checkNamespaces(args, query); err != nil {
				return err
			}
			if _, err := output.ParseFormat(format); err != nil {
				return err
			}
			cluster, err := s.Cluster()
			if err != nil {
				return err
			}
			namespaces, err := choose(command.Context(), cluster, args, query)
			if err != nil {
				return err
			}
			question := "The remote namespaces of " + strings.Join(namespaces, ", ") + " are deleted with everything in them."
			if err := s.Confirm(command.Context(), question); err != nil {
				return err
			}
			err = offload.Undo(command.Context(), offload.UndoOptions{
				Cluster: cluster, Namespaces: namespaces, DeleteVolumes: volumes, Timeout: timeout, Observer: s.Observer(),
			})
			if err != nil {
				return err
			}
			return s.Show(format, taken{Namespaces: namespaces}, func() {})
		},
	}
	command.Flags().BoolVar(&volumes, "delete-volumes", false, "Delete the claims whose volumes are at other clusters, with their data")
	s.OutputFlag(command, &format, "Write what was taken back to standard output")
	s.Local.AddNamespace(command.Flags())
	s.TimeoutFlag(command.Flags(), &timeout, offload.DefaultUndoTimeout)
	command.Flags().StringVar(&query, "ns-selector", "", "Labels of the namespaces to take back, instead of names")
	s.Complete(command, "ns-selector", complete.Flag(s.Local, complete.NamespaceSelectors))
	return command
}

// taken is what unoffload did.
type taken struct {
	// Namespaces that are offloaded no more.
	Namespaces []string `json:"namespaces"`
}
