package flags

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"liqo.io/liqo/pkg/reflection"
)

// Tokens are about the identity of pods: their way to this cluster's API server, and their tokens.
type Tokens struct {
	Enabled     bool
	Host        string
	Port        string
	MaxLifetime time.Duration
}

func (f *Tokens) register(set *pflag.FlagSet) {
	set.BoolVar(&f.Enabled, "enable-apiserver-support", false, "let pods at the provider talk to this cluster's API server as their ServiceAccounts")
	set.StringVar(&f.Host, "home-api-server-host", "", "name or address, in this cluster's API server's certificate, by which pods at the provider reach it")
	set.StringVar(&f.Port, "home-api-server-port", "", "port that goes with --home-api-server-host; empty means 443")
	set.DurationVar(&f.MaxLifetime, "service-account-token-max-lifetime", reflection.MaxTokenLifetime,
		"how long tokens of pods at the provider live at most; between 10m and 1h")
}

func (f *Tokens) validate() error {
	if f.MaxLifetime < reflection.MinTokenLifetime || f.MaxLifetime > reflection.MaxTokenLifetime {
		return fmt.Errorf("--service-account-token-max-lifetime must be between %s and %s", reflection.MinTokenLifetime, reflection.MaxTokenLifetime)
	}
	if f.Port == "" {
		return nil
	}
	if port, err := strconv.ParseUint(f.Port, 10, 16); err != nil || port == 0 {
		return fmt.Errorf("--home-api-server-port %q is not a port", f.Port)
	}
	if f.Host == "" {
		return errors.New("--home-api-server-port needs --home-api-server-host")
	}
	return nil
}

// API is how pods reach this cluster's API server.
func (f *Tokens) API() reflection.HomeAPI {
	return reflection.HomeAPI{Enabled: f.Enabled, Host: f.Host, Port: f.Port}
}
