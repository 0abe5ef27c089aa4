package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // offers --logging-format=json
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/version"
)

// flags are the few settings that do not stand in the configuration file: where the process runs, not what it does.
type flags struct {
	config      string
	kubeconfig  string
	leaderElect bool
	webhookPort int
	healthPort  int
	metricsPort int
	// allowLoopback lets a provider's API server be on this machine, as in tests without a network.
	allowLoopback bool
}

// surroundings is what the pod is told about itself by its environment.
type surroundings struct {
	clusterID      string
	namespace      string
	deployment     string
	webhookService string
	// webhookToken is what API servers say at the webhooks that ask for it.
	webhookToken func() string
}

func newCommand() *cobra.Command {
	var f flags
	logging := logsapi.NewLoggingConfiguration()
	command := &cobra.Command{
		Use:           "liqo-controller-manager",
		Short:         "Run Liqo's controllers and admission webhooks in one cluster",
		Version:       version.Version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return fmt.Errorf("applying the logging flags: %w", err)
			}
			ctrl.SetLogger(klog.Background())
			config, err := v1alpha1.Load(f.config)
			if err != nil {
				return err
			}
			env, err := environment()
			if err != nil {
				return err
			}
			return runManager(cmd.Context(), config, env, f)
		},
	}
	command.Flags().StringVar(&f.config, "config", "/etc/liqo/config.yaml", "configuration file, of the shape of the chart's values")
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty means the pod's ServiceAccount")
	command.Flags().BoolVar(&f.leaderElect, "leader-elect", false, "let one of several replicas run the controllers")
	command.Flags().IntVar(&f.webhookPort, "webhook-port", 0, "port of the webhooks; 0 means the configuration's")
	command.Flags().IntVar(&f.healthPort, "health-port", 8081, "loopback port of the health endpoint, which 'check' asks")
	command.Flags().IntVar(&f.metricsPort, "metrics-port", 8082, "port of the metrics")
	command.Flags().BoolVar(&f.allowLoopback, "allow-loopback-provider", false, "accept API servers of providers on loopback addresses, for tests on one machine")
	logsapi.AddFlags(logging, command.Flags())
	command.AddCommand(newCheckCommand(), newCertificatesCommand())
	return command
}

// newCheckCommand asks the running process whether it is healthy, for the pod's probes.
func newCheckCommand() *cobra.Command {
	var port int
	command := &cobra.Command{
		Use:           "check (healthz|readyz)",
		Short:         "Ask the process in this pod whether it is healthy or ready",
		Args:          cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs:     []string{"healthz", "readyz"},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return check(cmd.Context(), port, args[0])
		},
	}
	command.Flags().IntVar(&port, "health-port", 8081, "loopback port of the health endpoint")
	return command
}

func check(ctx context.Context, port int, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	url := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + "/" + endpoint
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", endpoint, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking %s: %w", endpoint, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", endpoint, response.Status)
	}
	return nil
}

func environment() (surroundings, error) {
	s := surroundings{
		clusterID:      os.Getenv("CLUSTER_ID"),
		namespace:      os.Getenv("POD_NAMESPACE"),
		deployment:     os.Getenv("DEPLOYMENT_NAME"),
		webhookService: os.Getenv("WEBHOOK_SERVICE"),
	}
	if err := identity.ValidateClusterID(s.clusterID); err != nil {
		return s, fmt.Errorf("environment variable CLUSTER_ID: %w", err)
	}
	if s.namespace == "" {
		return s, fmt.Errorf("environment variable POD_NAMESPACE is not set: it is the namespace that Liqo runs in")
	}
	return s, nil
}
