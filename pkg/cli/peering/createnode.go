package peering

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
)

const createNodeLong = `Make a virtual node of what a provider granted, and wait until it takes pods.

Of a ResourceSlice, with --resource-slice-name, its size and its classes are those that
the provider granted, and follow them. Under the slice's own name it is the node that
'{{ .Executable }} create resourceslice --no-virtual-node' left out. Nodes of other names share
the grant with it: each shows all of it, and the provider takes pods up to the grant.

With --kubeconfig-secret-name it is what the flags say, and the Secret in the tenant namespace
says how the provider is reached. A virtual node of the name that is otherwise is not
changed, but refused.`

const createNodeExample = `  # The virtual node of a slice that was made without
  {{ .Executable }} create virtualnode gpus --remote-cluster-id milan --resource-slice-name gpus

  # Another one of the same slice, for pods that run in a certain way there
  {{ .Executable }} create virtualnode gpus-kata --remote-cluster-id milan --resource-slice-name gpus \
    --runtime-class-name kata --labels runtime=kata

  # One by a kubeconfig for the provider
  {{ .Executable }} create virtualnode small --remote-cluster-id milan --kubeconfig-secret-name milan-small --cpu 1

  # Show the object instead of creating it
  {{ .Executable }} create virtualnode gpus --remote-cluster-id milan --resource-slice-name gpus -o yaml`

type createNodeFlags struct {
	*place
	slice, secret                  string
	create, noCheck                bool
	template, runtime, format      string
	resources                      resourceFlags
	labels, selector               map[string]string
	storage, ingress, loadBalancer []string
	timeout                        time.Duration
}

// namesOfClasses are the flags for classes.
var namesOfClasses = []string{"storage-classes", "ingress-classes", "load-balancer-classes"}

func newCreateNode(s *session.Session, where *place) *cobra.Command {
	f := &createNodeFlags{place: where}
	command := &cobra.Command{
		Use: "virtualnode NAME", Aliases: aliasesOfNode, Short: "Make a virtual node of what a provider granted",
		Long: createNodeLong, Example: createNodeExample, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return f.run(s, command, args[0]) },
	}
	f.addPeer(s, command, "Cluster ID of the provider")
	set := command.Flags()
	set.StringVar(&f.slice, "resource-slice-name", "", "ResourceSlice that it is made of")
	set.StringVar(&f.secret, "kubeconfig-secret-name", "", "Secret with the kubeconfig for the provider, if it is made of no ResourceSlice")
	set.BoolVar(&f.create, "create-node", true, "Register a Node; without one only objects are reflected")
	set.BoolVar(&f.noCheck, "disable-network-check", false, "Leave the state of the network out of whether the Node is ready")
	set.StringVar(&f.template, "vk-options-template", "", "VkOptionsTemplate of the virtual kubelet, as NAMESPACE/NAME")
	f.resources.ofNode(set)
	set.StringToStringVar(&f.labels, "labels", nil, "Labels of the Node")
	set.StringToStringVar(&f.selector, "node-selector", nil, "Labels of the provider's nodes that the pods run on")
	set.StringVar(&f.runtime, "runtime-class-name", "", "RuntimeClass that the pods get at the provider, unless they name one")
	set.StringSliceVar(&f.storage, "storage-classes", nil, "Storage classes that the provider offers, the default first")
	set.StringSliceVar(&f.ingress, "ingress-classes", nil, "Ingress classes that the provider offers, the default first")
	set.StringSliceVar(&f.loadBalancer, "load-balancer-classes", nil, "Load balancer classes that the provider offers, the default first")
	s.TimeoutFlag(set, &f.timeout, share.DefaultTimeout)
	s.OutputFlag(command, &f.format, "Write the object to standard output instead of creating it")
	s.Complete(command, "resource-slice-name", complete.Flag(s.Local, complete.OwnSlices))
	return command
}

func (f *createNodeFlags) run(s *session.Session, command *cobra.Command, name string) error {
	format, options, err := f.options(command.Flags(), name)
	if err != nil {
		return err
	}
	if format == output.Human || options.SliceName != "" {
		if options.Cluster, err = s.Cluster(); err != nil {
			return err
		}
	}
	options.Observer = s.Observer()
	if format == output.Human {
		return share.CreateNode(command.Context(), options)
	}
	manifest, err := options.Manifest(command.Context(), s.Stamp())
	if err != nil {
		return err
	}
	return output.Write(s.Streams.Out, format, manifest)
}

// options reads the flags, without any cluster.
func (f *createNodeFlags) options(set *pflag.FlagSet, name string) (format output.Format, options share.NodeOptions, err error) {
	options = share.NodeOptions{Name: name, SliceName: f.slice, SecretName: f.secret, Timeout: f.timeout}
	checks := []func() error{
		func() error { return session.Positive(f.timeout) },
		func() error { format, err = output.ParseFormat(f.format); return err },
		func() error { return checkNodeName(name) },
		func() error { options.ProviderID, err = f.provider(); return err },
		func() error { return f.checkSource(set) },
		func() error { return session.Labels("labels", f.labels) },
		func() error { return session.Labels("node-selector", f.selector) },
		func() error { options.Wish, err = f.wish(set); return err },
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return "", options, err
		}
	}
	return format, options, nil
}

// checkSource wants to know what the node is made of, and takes nothing that a slice says itself.
func (f *createNodeFlags) checkSource(set *pflag.FlagSet) error {
	switch {
	case f.slice != "" && f.secret != "":
		return failure.Misuse("leave one of them out", "--resource-slice-name and --kubeconfig-secret-name exclude each other")
	case f.slice == "" && f.secret == "":
		return failure.Misuse("name a ResourceSlice with --resource-slice-name, or a Secret with --kubeconfig-secret-name",
			"what the virtual node is made of is missing")
	case f.slice == "":
		return nil
	}
	given := givenResource(set)
	if i := slices.IndexFunc(namesOfClasses, set.Changed); i >= 0 {
		given = namesOfClasses[i]
	}
	if given != "" {
		return failure.Misuse("leave it out: what the provider granted to the slice counts", "--%s has no meaning with --resource-slice-name", given)
	}
	return nil
}

// wish is what the flags say of the VirtualNode. What the user left out is for the chart to decide, or for the slice.
func (f *createNodeFlags) wish(set *pflag.FlagSet) (wish offloadingv1beta1.VirtualNodeSpec, err error) {
	wish.Labels = f.labels
	wish.CreateNode = session.Given(set, "create-node", f.create)
	wish.DisableNetworkCheck = session.Given(set, "disable-network-check", f.noCheck)
	if len(f.selector) > 0 || f.runtime != "" {
		wish.OffloadingPatch = &offloadingv1beta1.OffloadingPatch{NodeSelector: f.selector}
	}
	if f.runtime != "" {
		if len(validation.IsDNS1123Subdomain(f.runtime)) > 0 {
			return wish, failure.Misuse("use lower-case letters, digits, '-' and '.'", "--runtime-class-name %s cannot name a RuntimeClass", f.runtime)
		}
		wish.OffloadingPatch.RuntimeClassName = ptr.To(f.runtime)
	}
	if f.template != "" {
		namespace, name, found := strings.Cut(f.template, "/")
		if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return wish, failure.Misuse("write it as NAMESPACE/NAME", "--vk-options-template %s names no VkOptionsTemplate", f.template)
		}
		wish.VkOptionsTemplateRef = &corev1.ObjectReference{Namespace: namespace, Name: name}
	}
	if f.slice != "" {
		return wish, nil
	}
	for i, name := range f.storage {
		wish.StorageClasses = append(wish.StorageClasses, authv1beta1.StorageType{StorageClassName: name, Default: i == 0})
	}
	for i, name := range f.ingress {
		wish.IngressClasses = append(wish.IngressClasses, authv1beta1.IngressType{IngressClassName: name, Default: i == 0})
	}
	for i, name := range f.loadBalancer {
		wish.LoadBalancerClasses = append(wish.LoadBalancerClasses, authv1beta1.LoadBalancerType{LoadBalancerClassName: name, Default: i == 0})
	}
	wish.ResourceQuota.Hard, err = f.resources.list()
	return wish, err
}
