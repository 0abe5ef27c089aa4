// Command controller runs the lab's ingress controller as a pod.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"liqo.io/liqo/test/lab/ingress"
)

func main() {
	class := flag.String("class", "", "class of the Ingresses to serve")
	address := flag.String("address", "", "address of this machine, for the status of the Ingresses")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *class, *address); err != nil {
		klog.FromContext(ctx).Error(err, "The ingress controller ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, class, address string) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return ingress.Run(ctx, client, class, address)
}
