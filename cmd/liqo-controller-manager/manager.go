package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/offloading/ingressstatus"
	"liqo.io/liqo/pkg/kube/caller"
	"liqo.io/liqo/pkg/kube/freshness"
	"liqo.io/liqo/pkg/kube/servingcert"
	"liqo.io/liqo/pkg/webhook/weight"
)

// Names that the chart fixes.
const (
	leaderElectionID  = "66cf253f.ctrlmgr.liqo.io"
	webhookSecret     = "liqo-webhook-certs"
	authoritySecret   = "liqo-webhook-authority"
	webhooksName      = "liqo-webhook"
	serviceAccount    = "liqo-controller-manager"
	userAgent         = "liqo-controller-manager"
	loopback          = "127.0.0.1"
	disabledListening = "0"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// runManager starts everything and returns when the context ends.
func runManager(ctx context.Context, config *v1alpha1.ControllerManager, env surroundings, f flags) error {
	restConfig, err := restConfiguration(f.kubeconfig)
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	certificates, err := servingCertificates(restConfig, scheme, env)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(restConfig, managerOptions(config, env, f, scheme, certificates))
	if err != nil {
		return fmt.Errorf("preparing the controller manager: %w", err)
	}
	env.webhookToken = certificates.Token
	if err := mgr.Add(certificates); err != nil {
		return fmt.Errorf("adding the webhooks' certificates: %w", err)
	}
	m, err := measure(mgr, ctrlmetrics.Registry, config, certificates)
	if err != nil {
		return err
	}
	if err := register(ctx, mgr, config, env, f, m); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhook-certificates", certificates.Ready); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controller manager: %w", err)
	}
	return nil
}

// restConfiguration connects to the cluster; the server's priority and fairness protects it, not a limit of ours.
func restConfiguration(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	config.QPS = -1
	config.UserAgent = userAgent
	return config, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, authv1beta1.AddToScheme,
		offloadingv1beta1.AddToScheme, networkingv1beta1.AddToScheme, ipamv1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering API types: %w", err)
	}
	return scheme, nil
}

// servingCertificates follows the webhooks' certificate. It reads past every cache: it has rights to one Secret only.
func servingCertificates(config *rest.Config, scheme *runtime.Scheme, env surroundings) (*servingcert.Follower, error) {
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("preparing the client of the webhooks' certificates: %w", err)
	}
	return servingcert.NewFollower(direct, client.ObjectKey{Namespace: env.namespace, Name: webhookSecret}, clock.RealClock{}), nil
}

// reconcileTimeout bounds one pass of a controller. A pass makes a few calls, which take milliseconds; one that is cut off is made again.
const reconcileTimeout = 2 * time.Minute

func managerOptions(config *v1alpha1.ControllerManager, env surroundings, f flags, scheme *runtime.Scheme, certificates *servingcert.Follower) ctrl.Options {
	port := config.Webhook.Port
	if f.webhookPort != 0 {
		port = f.webhookPort
	}
	metrics := metricsserver.Options{BindAddress: disabledListening}
	if config.Metrics.Enabled {
		metrics = caller.Serving(net.JoinHostPort("", strconv.Itoa(f.metricsPort)), config.Metrics.PlainHTTP, serveWith(certificates))
	}
	return ctrl.Options{
		Scheme: scheme,
		Cache:  cacheOptions(),
		Client: client.Options{Cache: &client.CacheOptions{
			// Rights to these are namespaced, or they are read too rarely to be worth a watch over the cluster.
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}, &corev1.ResourceQuota{}, &rbacv1.Role{}},
		}},
		// No call waits for ever, also not those that are made while others wait for what is locked.
		Controller:                    controllerconfig.Controller{ReconciliationTimeout: reconcileTimeout},
		HealthProbeBindAddress:        net.JoinHostPort(loopback, strconv.Itoa(f.healthPort)),
		Metrics:                       metrics,
		WebhookServer:                 weight.Bounded(webhook.NewServer(webhook.Options{Port: port, TLSOpts: []func(*tls.Config){serveWith(certificates)}})),
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       env.namespace,
		LeaderElectionReleaseOnCancel: true,
	}
}

func serveWith(certificates *servingcert.Follower) func(*tls.Config) {
	return func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		c.GetCertificate = certificates.GetCertificate
	}
}

// cacheOptions keep out of memory what no controller looks at: foreign Pods and Deployments, managed fields. No cache begins in the past.
func cacheOptions() cache.Options {
	virtualKubelets := labels.SelectorFromSet(labels.Set{offloadingv1beta1.ComponentLabel: offloadingv1beta1.VirtualKubeletComponent})
	shadowPods := labels.SelectorFromSet(labels.Set{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod})
	shadowEndpointSlices := labels.SelectorFromSet(labels.Set{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowEndpointSlice})
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		NewInformer:      freshness.NewInformer,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                {Label: shadowPods},
			&discoveryv1.EndpointSlice{}: {Label: shadowEndpointSlices},
			&appsv1.Deployment{}:         {Label: virtualKubelets},
			&networkingv1.Ingress{}:      {Transform: ingressstatus.Strip},
		},
	}
}
