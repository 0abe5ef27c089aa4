package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/servingcert"
	shadowpodwebhook "liqo.io/liqo/pkg/webhook/shadowpod"
)

// newCertificatesCommand keeps the webhooks' certificate, in a process and with an account of its own: whoever may change webhook
// configurations hears of every object of the cluster, and changes it. The controller manager must not.
func newCertificatesCommand() *cobra.Command {
	var f flags
	logging := logsapi.NewLoggingConfiguration()
	command := &cobra.Command{
		Use:           "certificates",
		Short:         "Keep the certificate of the admission webhooks, and nothing else",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return fmt.Errorf("applying the logging flags: %w", err)
			}
			ctrl.SetLogger(klog.Background())
			return keepCertificates(cmd.Context(), f, os.Getenv("POD_NAMESPACE"), os.Getenv("WEBHOOK_SERVICE"))
		},
	}
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty means the pod's ServiceAccount")
	command.Flags().IntVar(&f.healthPort, "health-port", 8081, "loopback port of the health endpoint, which 'check' asks")
	logsapi.AddFlags(logging, command.Flags())
	return command
}

// keepCertificates returns when the context ends.
func keepCertificates(ctx context.Context, f flags, namespace, service string) error {
	config, err := restConfiguration(f.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "liqo-certificates"
	direct, err := client.NewWithWatch(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return fmt.Errorf("preparing the client of the webhooks' certificates: %w", err)
	}
	keeper, err := servingcert.NewKeeper(servingcert.Options{
		Client:                direct,
		Namespace:             namespace,
		AuthorityName:         authoritySecret,
		SecretName:            webhookSecret,
		DNSNames:              servingcert.ServiceDNSNames(service, namespace),
		WebhookConfigurations: []string{webhooksName},
		SecretPaths:           []string{shadowpodwebhook.ValidatePath},
		WebhookSelector:       labels.Set{corev1beta1.WebhookLabel: "true"},
	})
	if err != nil {
		return fmt.Errorf("preparing the webhooks' certificates: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		HealthProbeBindAddress: net.JoinHostPort(loopback, strconv.Itoa(f.healthPort)),
		Metrics:                metricsserver.Options{BindAddress: disabledListening},
	})
	if err != nil {
		return fmt.Errorf("preparing to keep the webhooks' certificates: %w", err)
	}
	if err := mgr.Add(keeper); err != nil {
		return fmt.Errorf("adding the webhooks' certificates: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhook-certificates", keeper.Ready); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("keeping the webhooks' certificates: %w", err)
	}
	return nil
}
