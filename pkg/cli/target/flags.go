package target

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
)

// RemotePrefix starts the names of the flags for the second cluster.
const RemotePrefix = "remote-"

// visible are the flags that help shows; the others work all the same.
var visible = map[string]bool{"kubeconfig": true, "context": true, "cluster": true, "user": true}

// Flags say which cluster.
type Flags struct {
	// Config holds kubectl's flags.
	Config *genericclioptions.ConfigFlags
	// LiqoNamespace is where Liqo is installed.
	LiqoNamespace string
	// Remote tells that these are the flags of the second cluster.
	Remote bool
}

// NewFlags returns flags with their defaults.
func NewFlags(remote bool) *Flags {
	config := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(-1).WithDiscoveryBurst(-1)
	// What -n means differs between commands, so each registers it itself.
	config.Namespace = nil
	return &Flags{Config: config, LiqoNamespace: corev1beta1.DefaultNamespace, Remote: remote}
}

// AddTo registers kubectl's flags; those of the second cluster with the prefix remote-.
func (f *Flags) AddTo(set *pflag.FlagSet) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Config.AddFlags(own)
	own.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = !visible[flag.Name]
		if f.Remote {
			flag.Name, flag.Shorthand = RemotePrefix+flag.Name, ""
			flag.Usage = strings.TrimSuffix(flag.Usage, ".") + " (in the remote cluster)"
		}
		set.AddFlag(flag)
	})
}

// AddNamespace registers the namespace that Liqo is installed in, as -n/--namespace or --remote-namespace.
func (f *Flags) AddNamespace(set *pflag.FlagSet) {
	if f.Remote {
		set.StringVar(&f.LiqoNamespace, "remote-namespace", f.LiqoNamespace, "The namespace that Liqo is installed in (in the remote cluster)")
		return
	}
	set.StringVarP(&f.LiqoNamespace, "namespace", "n", f.LiqoNamespace, "The namespace that Liqo is installed in")
}

// AddLiqoNamespace registers the namespace that Liqo is installed in under the name --liqo-namespace or --remote-liqo-namespace, for
// commands where -n means something else.
func (f *Flags) AddLiqoNamespace(set *pflag.FlagSet) {
	if f.Remote {
		set.StringVar(&f.LiqoNamespace, "remote-liqo-namespace", f.LiqoNamespace, "The namespace that Liqo is installed in (in the remote cluster)")
		return
	}
	set.StringVar(&f.LiqoNamespace, "liqo-namespace", f.LiqoNamespace, "The namespace that Liqo is installed in")
}

// Given tells whether the user said anything about which cluster.
func (f *Flags) Given() bool {
	for _, value := range []*string{f.Config.KubeConfig, f.Config.Context, f.Config.ClusterName, f.Config.APIServer} {
		if value != nil && *value != "" {
			return true
		}
	}
	return false
}

// Open returns the cluster that the flags name, without calling it.
func (f *Flags) Open(stamp Stamp) (*Cluster, error) {
	hint := f.prefixed("--kubeconfig") + " or " + f.prefixed("--context")
	raw, err := f.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, failure.Misuse("give a readable kubeconfig with "+f.prefixed("--kubeconfig"), "reading the kubeconfig: %w", err)
	}
	name := raw.CurrentContext
	if f.Config.Context != nil && *f.Config.Context != "" {
		name = *f.Config.Context
	}
	if _, exists := raw.Contexts[name]; !exists && name != "" {
		return nil, failure.Misuse("choose one with "+f.prefixed("--context")+known(raw.Contexts), "the kubeconfig has no context %q", name)
	}
	if err := f.requireCluster(&raw, name); err != nil {
		return nil, err
	}
	config, err := f.Config.ToRESTConfig()
	if err != nil {
		return nil, failure.Misuse("correct it, or choose another with "+hint, "the kubeconfig cannot be used: %w", err)
	}
	// Without any configuration kubectl's library ends up at this address.
	if len(raw.Clusters) == 0 && config.Host == "http://localhost:8080" && *f.Config.APIServer == "" {
		return nil, failure.Misuse("say which one with "+hint, "no cluster is configured: neither flags nor a kubeconfig name one")
	}
	cluster, err := FromConfig(config, f.Config, f.LiqoNamespace)
	if err != nil {
		return nil, err
	}
	cluster.Stamp = stamp
	if name != "" {
		cluster.Name = name
	}
	cluster.Flags = f.commandLine()
	return cluster, nil
}

// requireCluster refuses a cluster that the kubeconfig does not have. Kubectl's library would go to localhost instead.
func (f *Flags) requireCluster(raw *api.Config, context string) error {
	cluster := ""
	if chosen := raw.Contexts[context]; chosen != nil {
		cluster = chosen.Cluster
	}
	if f.Config.ClusterName != nil && *f.Config.ClusterName != "" {
		cluster = *f.Config.ClusterName
	}
	if _, exists := raw.Clusters[cluster]; exists || cluster == "" || f.Config.APIServer != nil && *f.Config.APIServer != "" {
		return nil
	}
	return failure.Misuse("choose one with "+f.prefixed("--cluster")+known(raw.Clusters), "the kubeconfig has no cluster %q", cluster)
}

func (f *Flags) prefixed(flag string) string {
	if f.Remote {
		return "--" + RemotePrefix + strings.TrimPrefix(flag, "--")
	}
	return flag
}

// commandLine is how the user can name the same cluster, as the first cluster, in another command.
func (f *Flags) commandLine() string { return f.words(func(flag string) string { return flag }) }

// AsGiven is how the user can name the same cluster, as the one that it is in this command, in another command.
func (f *Flags) AsGiven() string { return f.words(f.prefixed) }

func (f *Flags) words(name func(string) string) string {
	var words []string
	for _, flag := range []struct {
		name  string
		value *string
	}{{"--kubeconfig", f.Config.KubeConfig}, {"--context", f.Config.Context}, {"--cluster", f.Config.ClusterName}, {"--user", f.Config.AuthInfoName}} {
		if flag.value != nil && *flag.value != "" {
			words = append(words, name(flag.name)+" "+*flag.value)
		}
	}
	return strings.Join(words, " ")
}

func known[T any](contexts map[string]T) string {
	if len(contexts) == 0 || len(contexts) > 10 {
		return ""
	}
	return ": " + strings.Join(sortedKeys(contexts), ", ")
}

// FromKubeconfig opens the cluster in a kubeconfig file; an empty context means the current one.
func FromKubeconfig(path, context string) (*Cluster, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	flags := NewFlags(false)
	*flags.Config.KubeConfig, *flags.Config.Context = path, context
	return flags.Open(Stamp{})
}

// FromConfig opens a cluster with a ready configuration. The getter serves Helm and may be nil where no chart is involved.
func FromConfig(config *rest.Config, getter genericclioptions.RESTClientGetter, liqoNamespace string) (*Cluster, error) {
	config = rest.CopyConfig(config)
	// The API server's own fairness is the limit.
	config.QPS, config.Burst = -1, -1
	config.UserAgent = "liqoctl"
	config.WarningHandler = rest.NoWarnings{}
	typed, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, failure.Misuse("correct the kubeconfig", "preparing the connection to %s: %w", config.Host, err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, failure.Misuse("correct the kubeconfig", "preparing the connection to %s: %w", config.Host, err)
	}
	if liqoNamespace == "" {
		liqoNamespace = corev1beta1.DefaultNamespace
	}
	name := config.Host
	if address, err := url.Parse(config.Host); err == nil && address.Host != "" {
		name = address.Host
	}
	return &Cluster{Name: name, Config: config, Client: Patient(typed), Kube: kube, Getter: getter, LiqoNamespace: liqoNamespace}, nil
}
