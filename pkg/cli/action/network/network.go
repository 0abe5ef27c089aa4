package network

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// DefaultTimeout of Init, Connect, Disconnect and Reset.
const DefaultTimeout = 2 * time.Minute

// The defaults of Settings, which are those of Liqo v1.
const (
	// DefaultServiceType of the gateway server's Service.
	DefaultServiceType = corev1.ServiceTypeLoadBalancer
	// DefaultPort of the gateway server's Service.
	DefaultPort int32 = 51840
)

// Settings say how networks are connected. What is zero or nil is as it is already, or else has its default; a pointer to zero takes back
// what was asked for earlier.
type Settings struct {
	// ServerHere puts the gateway server in the local cluster, not the remote one.
	ServerHere bool
	// ServiceType, Port, NodePort and LoadBalancerIP of the gateway server's Service.
	ServiceType    corev1.ServiceType
	Port           int32
	NodePort       *int32
	LoadBalancerIP *string
	// ServerTemplate and ClientTemplate that the gateways are rendered from; without a namespace, that of Liqo in the gateway's cluster.
	ServerTemplate, ClientTemplate types.NamespacedName
	// ClientAddress and ClientPort are where the client finds the server, if not where the server says it is.
	ClientAddress *string
	ClientPort    *int32
	// MTU of the tunnel; by default as large as the way lets it be.
	MTU *int32
	// Transit is whether both clusters take part in transit, so that each reaches other peers of the other one which do, too.
	Transit *bool
	// NoKeys leaves it to the user to give each side the other's public key.
	NoKeys bool
}

// Options of Init, Connect, Disconnect and Reset.
type Options struct {
	// Local and Remote clusters.
	Local, Remote *target.Cluster
	// Namespace and RemoteNamespace that the network's objects are to stand in. Only tenant namespaces can be; empty, or default as in Liqo
	// v1, means them.
	Namespace, RemoteNamespace string
	// Settings of Connect.
	Settings Settings
	// SkipValidation goes on with clusters of different versions, and without looking at the templates of gateways.
	SkipValidation bool
	// NoWait returns without waiting for the tunnel to be up, or for everything to be gone.
	NoWait bool
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Confirm asks whether to go on with what is destructive; nil means that nobody is asked.
	Confirm func(ctx context.Context, question string) error
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// Report says what is in place.
type Report struct {
	// Ranges of the other cluster that each cluster sees, by cluster ID.
	Ranges map[string][]Range `json:"ranges,omitempty"`
	// Server and Client are the cluster IDs of the sides with the gateway server and the gateway client.
	Server string `json:"server,omitempty"`
	Client string `json:"client,omitempty"`
	// Endpoint that the client goes to.
	Endpoint string `json:"endpoint,omitempty"`
	// Connected tells whether the tunnel was seen to be up.
	Connected bool `json:"connected"`
	// Changed tells whether anything had to be done.
	Changed bool `json:"changed"`
}

// run carries what the steps learn.
type run struct {
	local, remote side
	settings      Settings
	// unchecked tells that templates are not looked at.
	unchecked bool
	observer  progress.Observer
	report    *Report
	// server and client sides, filled by direction.
	server, client side
	// up tells whether the tunnel was up before anything was done, filled by direction.
	up bool
}

func newRun(pair *target.Pair, settings Settings, unchecked bool, observer progress.Observer) *run {
	r := &run{settings: settings, unchecked: unchecked, observer: observer, report: &Report{Ranges: map[string][]Range{}}}
	r.local = side{pair.Consumer, pair.ConsumerID, pair.ProviderID, pair.ConsumerNamespace()}
	r.remote = side{pair.Provider, pair.ProviderID, pair.ConsumerID, pair.ProviderNamespace()}
	return r
}

// do runs steps one after the other.
func (r *run) do(ctx context.Context, steps ...func(context.Context) error) (*Report, error) {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return r.report, err
		}
	}
	return r.report, nil
}

func (r *run) note(change target.Change) {
	r.report.Changed = r.report.Changed || change != target.Unchanged
}

// Init tells each cluster the ranges of the other one, and waits until both have found a place for them.
func Init(ctx context.Context, o Options) (*Report, error) {
	ctx, cancel := o.begin(ctx)
	defer cancel()
	r, err := o.prepare(ctx, initRights)
	if err != nil {
		return nil, err
	}
	return r.do(ctx, r.namespaces, r.exchange)
}

// Connect does what Init does, and makes a tunnel between the two clusters.
func Connect(ctx context.Context, o Options) (*Report, error) {
	ctx, cancel := o.begin(ctx)
	defer cancel()
	r, err := o.prepare(ctx, connectRights)
	if err != nil {
		return nil, err
	}
	steps := []func(context.Context) error{r.namespaces, r.exchange, r.gateways, r.keys}
	if !o.NoWait {
		steps = append(steps, r.connected)
	}
	return r.do(ctx, steps...)
}

// Joining is a connection of networks that was begun.
type Joining struct{ run *run }

// Join begins to connect the networks of a pair whose preconditions were checked, RequireEnabled and Rights among them: both sides have all
// that they need. RequireNodePort is one of them. The report is filled further by Connected.
func Join(ctx context.Context, pair *target.Pair, settings Settings, skipValidation bool, observer progress.Observer) (*Joining, *Report, error) {
	r := newRun(pair, settings, skipValidation, observer)
	report, err := r.do(ctx, r.namespaces, r.exchange, r.gateways, r.keys)
	return &Joining{r}, report, err
}

// Connected waits until the tunnel is up.
func (j *Joining) Connected(ctx context.Context) error { return j.run.connected(ctx) }

// Rights are what a user needs in one of the clusters for Join.
func Rights(cluster *target.Cluster, namespace string) []target.Right {
	return connectRights(cluster, namespace)
}

// begin fills what was left out, and bounds the time.
func (o *Options) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return context.WithTimeout(ctx, o.Timeout)
}

// prepare checks what has to hold before networks are connected.
func (o *Options) prepare(ctx context.Context, rights func(cluster *target.Cluster, namespace string) []target.Right) (*run, error) {
	pair, err := o.check(ctx, o.SkipValidation, func(ctx context.Context, pair *target.Pair) error {
		if err := RequireEnabled(pair); err != nil {
			return err
		}
		if err := pair.Consumer.RequireRights(ctx, rights(pair.Consumer, pair.ConsumerNamespace())); err != nil {
			return err
		}
		if err := pair.Provider.RequireRights(ctx, rights(pair.Provider, pair.ProviderNamespace())); err != nil {
			return err
		}
		if err := pair.Consumer.RequireNotCutOff(ctx, pair.ProviderID); err != nil {
			return err
		}
		if err := pair.Provider.RequireNotCutOff(ctx, pair.ConsumerID); err != nil {
			return err
		}
		return RequireNodePort(ctx, pair, o.Settings)
	})
	if err != nil {
		return nil, err
	}
	return newRun(pair, o.Settings, o.SkipValidation, o.Observer), nil
}

// check finds the pair, and checks what more has to hold before anything is changed.
func (o *Options) check(ctx context.Context, anyVersion bool, more func(ctx context.Context, pair *target.Pair) error) (pair *target.Pair, err error) {
	err = progress.Run(ctx, o.Observer, "", "Checking preconditions", func(ctx context.Context, _ progress.Task) (string, error) {
		var err error
		if pair, err = target.RequirePair(ctx, o.Local, o.Remote, anyVersion); err != nil {
			return "", err
		}
		if err := o.requireTenantNamespaces(pair); err != nil {
			return "", err
		}
		return "Preconditions hold", more(ctx, pair)
	})
	return pair, err
}

// requireTenantNamespaces refuses other namespaces for the network's objects.
func (o *Options) requireTenantNamespaces(pair *target.Pair) error {
	for _, place := range []struct{ flag, given, tenant string }{
		{"--namespace", o.Namespace, pair.ConsumerNamespace()}, {"--remote-namespace", o.RemoteNamespace, pair.ProviderNamespace()},
	} {
		if place.given != "" && place.given != metav1.NamespaceDefault && place.given != place.tenant {
			return failure.Misuse("leave it out; where Liqo is installed is said by --liqo-namespace and --remote-liqo-namespace",
				"%s %s: the objects of this network stand in namespace %s", place.flag, place.given, place.tenant)
		}
	}
	return nil
}

// RequireEnabled is an unmet precondition unless both clusters have the network module.
func RequireEnabled(pair *target.Pair) error {
	for _, side := range []struct {
		cluster *target.Cluster
		enabled bool
	}{{pair.Consumer, pair.ConsumerHas.Networking()}, {pair.Provider, pair.ProviderHas.Networking()}} {
		if !side.enabled {
			return failure.Unmet("turn it on with '"+side.cluster.Command("liqoctl install --set networking.enabled=true")+"'",
				"the network module is off in cluster %s", side.cluster.Name)
		}
	}
	return nil
}
