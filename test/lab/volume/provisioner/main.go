// Command provisioner runs the lab's volume provisioner beside one cluster.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"liqo.io/liqo/test/lab/volume"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the cluster's kubeconfig")
	root := flag.String("root", "", "folder with one folder per real node")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *kubeconfig, *root); err != nil {
		klog.FromContext(ctx).Error(err, "The provisioner ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, root string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return volume.Run(ctx, client, root)
}
