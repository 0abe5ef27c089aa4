package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"liqo.io/liqo/pkg/kube/caller"
	"liqo.io/liqo/pkg/virtualkubelet/api"
	"liqo.io/liqo/pkg/virtualkubelet/usage"
)

// clientCARetry is the wait between two tries to read the CA of the cluster's clients.
const clientCARetry = 2 * time.Second

// serve runs the kubelet endpoint.
func (n *Kubelet) serve(ctx context.Context, local kubernetes.Interface) error {
	ca, err := n.clientCA(ctx, local)
	if err != nil {
		return err
	}
	provider := func() (rest.Interface, error) {
		clients, err := n.options.Peer.Clients()
		return clients.REST, err
	}
	server, err := api.New(api.Options{
		Remote: n, LocalClient: local, ClientCA: ca, GetCertificate: n.options.Identity.ServingCertificate,
		Address: ":" + strconv.Itoa(int(n.options.Flags.Port)), NodeName: n.options.Flags.Node,
		Serving:  func() { n.answering.Store(true) },
		Working:  func() bool { pods := n.Pods(); return pods != nil && pods.Informed() },
		Pods:     n.allPods,
		Usage:    usage.New(usage.Options{Node: n.options.Flags.Node, Pods: n.allPods, Twins: n, Provider: provider}),
		Gatherer: n.options.Metrics, Registerer: n.options.Metrics,
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// allPods are the local pods, once there is who knows.
func (n *Kubelet) allPods() []*corev1.Pod { return n.Pods().Pods() }

// Twin tells the endpoint where a pod runs, once there is who knows.
func (n *Kubelet) Twin(ctx context.Context, namespace, name, uid string) (api.Target, error) {
	return n.Pods().Twin(ctx, namespace, name, uid)
}

// clientCA reads the CA of the cluster's clients, again and again until it is told.
func (n *Kubelet) clientCA(ctx context.Context, local kubernetes.Interface) (ca dynamiccertificates.CAContentProvider, err error) {
	err = wait.PollUntilContextCancel(ctx, clientCARetry, true, func(ctx context.Context) (bool, error) {
		var failure error
		if ca, failure = api.ClientCA(ctx, local, n.options.CAFile); failure != nil {
			klog.FromContext(ctx).Error(failure, "The CA of the cluster's clients cannot be read")
		}
		return failure == nil, nil
	})
	return ca, err
}

// serveMetrics serves the metrics to whom this cluster authorizes, or to everybody.
func (n *Kubelet) serveMetrics(ctx context.Context) error {
	config := n.options.Identity.Config()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making the client that authorizes readers of metrics: %w", err)
	}
	where := n.options.Flags.Metrics
	options := caller.Serving(where.Address, where.Plain, func(c *tls.Config) { c.GetCertificate = n.options.Identity.ServingCertificate })
	server, err := metricsserver.NewServer(options, config, httpClient)
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	if err := server.Start(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}
