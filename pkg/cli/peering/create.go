package peering

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/identity"
)

const createSliceLong = `Ask a provider, which this cluster has peered with, for a share of its resources beside
the one that '{{ .Executable }} peer' asked for. It is a ResourceSlice in the tenant namespace of
the provider. The command waits until the provider has granted it, and until the virtual
node that is made of it takes pods. The virtual node and its Node have the name of the slice.

What is not asked for is for the provider to decide. A slice of the name that asks for
something else is not changed, but refused.`

const createSliceExample = `  # A second virtual node of the provider milan
  {{ .Executable }} create resourceslice gpus --remote-cluster-id milan --cpu 8 --resource nvidia.com/gpu=2

  # A virtual node of the provider's arm64 nodes
  {{ .Executable }} create resourceslice milan-arm --remote-cluster-id milan --node-selector kubernetes.io/arch=arm64

  # Ask only; make a virtual node later with '{{ .Executable }} create virtualnode'
  {{ .Executable }} create resourceslice gpus --remote-cluster-id milan --no-virtual-node

  # Show the object instead of creating it
  {{ .Executable }} create resourceslice gpus --remote-cluster-id milan -o yaml`

// maxNodeName is how long the name of a virtual node may be: it is also the value of labels.
const maxNodeName = validation.LabelValueMaxLength

// place says of which peer objects are, by its ID or by the tenant namespace.
type place struct{ peerID, namespace string }

// addNamespace registers the namespace on a verb, for all its kinds, and where Liqo is installed.
func (p *place) addNamespace(s *session.Session, verb *cobra.Command) {
	set := verb.PersistentFlags()
	set.StringVarP(&p.namespace, "namespace", "n", "", "The tenant namespace, liqo-tenant-CLUSTER_ID, instead of --remote-cluster-id")
	s.Local.AddLiqoNamespace(set)
}

// addPeer registers the peer on one kind.
func (p *place) addPeer(s *session.Session, command *cobra.Command, usage string) {
	command.Flags().StringVar(&p.peerID, "remote-cluster-id", "", usage)
	s.CompletePeer(command, "remote-cluster-id")
}

// peer is the ID of the peer; empty if the user named none.
func (p *place) peer() (string, error) {
	id, tenant := strings.CutPrefix(p.namespace, corev1beta1.TenantNamespacePrefix)
	switch {
	case p.namespace == "":
		id = p.peerID
	case !tenant:
		return "", failure.Misuse("name the peer with --remote-cluster-id, or where Liqo is installed with --liqo-namespace",
			"--namespace %s is no tenant namespace", p.namespace)
	case p.peerID != "" && p.peerID != id:
		return "", failure.Misuse("leave --namespace out", "what is of %s is in namespace %s%s, and not in %s",
			p.peerID, corev1beta1.TenantNamespacePrefix, p.peerID, p.namespace)
	}
	if id == "" {
		return "", nil
	}
	if err := identity.ValidateClusterID(id); err != nil {
		return "", failure.Misuse("list the peers with 'liqoctl info'", "%w", err)
	}
	return id, nil
}

// provider is the ID of the provider, which the user has to name.
func (p *place) provider() (string, error) {
	id, err := p.peer()
	if err == nil && id == "" {
		err = failure.Misuse("name it with --remote-cluster-id", "the provider is missing")
	}
	return id, err
}

// checkNodeName refuses a name that no virtual node can have.
func checkNodeName(name string) error {
	if len(name) > maxNodeName || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return failure.Misuse("use at most 63 lower-case letters, digits, '-' and '.'", "%q cannot name a virtual node", name)
	}
	return nil
}

func newCreate(s *session.Session) *cobra.Command {
	where := &place{}
	parent := verb("create", "Create a ResourceSlice or a virtual node", "resourceslice|virtualnode", newCreateSlice(s, where), newCreateNode(s, where))
	where.addNamespace(s, parent)
	return parent
}

type createSliceFlags struct {
	*place
	class, format string
	resources     resourceFlags
	selector      map[string]string
	noNode        bool
	timeout       time.Duration
}

func newCreateSlice(s *session.Session, where *place) *cobra.Command {
	f := &createSliceFlags{place: where}
	command := &cobra.Command{
		Use: "resourceslice NAME", Aliases: aliasesOfSlice, Short: "Ask a provider for a share of its resources",
		Long: createSliceLong, Example: createSliceExample, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return f.run(s, command, args[0]) },
	}
	f.addPeer(s, command, "Cluster ID of the provider")
	set := command.Flags()
	set.StringVar(&f.class, "class", string(authv1beta1.DefaultResourceSliceClass), "Class of the resource slice")
	f.resources.askedFor(set)
	set.StringToStringVar(&f.selector, "node-selector", nil, "Labels of the provider's nodes that it is for, whose resources it gets a share of")
	set.BoolVar(&f.noNode, "no-virtual-node", false, "Do not make a virtual node of the granted resources")
	s.TimeoutFlag(set, &f.timeout, share.DefaultTimeout)
	s.OutputFlag(command, &f.format, "Write the object to standard output instead of creating it")
	return command
}

func (f *createSliceFlags) run(s *session.Session, command *cobra.Command, name string) error {
	format, options, err := f.options(name)
	if err != nil {
		return err
	}
	if format != output.Human {
		manifest, err := options.Manifest(s.Stamp())
		if err != nil {
			return err
		}
		return output.Write(s.Streams.Out, format, manifest)
	}
	if options.Cluster, err = s.Cluster(); err != nil {
		return err
	}
	options.Observer = s.Observer()
	return share.Create(command.Context(), options)
}

// options reads the flags, without any cluster.
func (f *createSliceFlags) options(name string) (format output.Format, options share.CreateOptions, err error) {
	if err = session.Positive(f.timeout); err != nil {
		return "", options, err
	}
	if format, err = output.ParseFormat(f.format); err != nil {
		return "", options, err
	}
	if err = checkNodeName(name); err != nil {
		return "", options, err
	}
	nodes, err := capacity.ParseNodes(labels.Set(f.selector).String())
	if err != nil {
		return "", options, failure.Misuse("correct --node-selector", "%w", err)
	}
	options = share.CreateOptions{Name: name, Class: f.class, Nodes: nodes, NoVirtualNode: f.noNode, Timeout: f.timeout}
	if options.ProviderID, err = f.provider(); err != nil {
		return "", options, err
	}
	options.Resources, err = f.resources.list()
	return format, options, err
}
