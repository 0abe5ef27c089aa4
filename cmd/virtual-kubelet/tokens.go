package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
	"liqo.io/liqo/pkg/virtualkubelet/token"
)

// tokenFlags are about the identity of pods: their way to this cluster's API server, and their tokens.
type tokenFlags struct {
	enabled     bool
	host        string
	port        string
	maxLifetime time.Duration
}

func (f *tokenFlags) register(set *pflag.FlagSet) {
	set.BoolVar(&f.enabled, "enable-apiserver-support", false, "let pods at the provider talk to this cluster's API server as their ServiceAccounts")
	set.StringVar(&f.host, "home-api-server-host", "", "name or address, in this cluster's API server's certificate, by which pods at the provider reach it")
	set.StringVar(&f.port, "home-api-server-port", "", "port that goes with --home-api-server-host; empty means 443")
	set.DurationVar(&f.maxLifetime, "service-account-token-max-lifetime", reflection.MaxTokenLifetime, "how long tokens of pods at the provider live at most; between 10m and 1h")
}

func (f *tokenFlags) validate() error {
	if f.maxLifetime < reflection.MinTokenLifetime || f.maxLifetime > reflection.MaxTokenLifetime {
		return fmt.Errorf("--service-account-token-max-lifetime must be between %s and %s", reflection.MinTokenLifetime, reflection.MaxTokenLifetime)
	}
	if f.port == "" {
		return nil
	}
	if port, err := strconv.ParseUint(f.port, 10, 16); err != nil || port == 0 {
		return fmt.Errorf("--home-api-server-port %q is not a port", f.port)
	}
	if f.host == "" {
		return errors.New("--home-api-server-port needs --home-api-server-host")
	}
	return nil
}

// api is how pods reach this cluster's API server.
func (f *tokenFlags) api() reflection.HomeAPI {
	return reflection.HomeAPI{Enabled: f.enabled, Host: f.host, Port: f.port}
}

// tokenKeeper makes what keeps the pods' tokens; nil if they have none.
func (n *nodeSide) tokenKeeper(local kubernetes.Interface, events token.Recorder, pods *pod.Reconciler) (*token.Keeper, error) {
	f := n.k.flags
	if !f.tokens.api().Enabled {
		return nil, nil
	}
	return token.New(token.Options{
		Home: f.homeCluster, Remote: f.foreignCluster, Node: f.node, Local: local, API: f.tokens.api(), APIAddress: n.k.network.APIServer,
		MaxLifetime: f.tokens.maxLifetime, Workers: n.settings.Workers(settings.Tokens),
		Recorder: events, Registerer: n.k.metrics,
		Place: func(name types.NamespacedName) (token.Place, bool) {
			place, there := pods.Place(name)
			return token.Place(place), there
		},
	})
}

// placed tells the keeper of tokens that a pod came, moved or went.
func (n *nodeSide) placed(name types.NamespacedName) {
	if n.tokens != nil {
		n.tokens.Enqueue(name)
	}
}
