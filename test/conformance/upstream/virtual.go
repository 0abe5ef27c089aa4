package upstream

import (
	"context"
	"errors"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// Pods are how many pods of the tests started a container.
type Pods struct {
	// Remote is the number at the provider, by node.
	Remote map[string]int `json:"remote"`
	// Local is the number on nodes of the consumer other than virtual ones; there should be none.
	Local int `json:"local"`
}

// OnVirtualNode runs tests at the consumer while every namespace that they make is offloaded to the provider. A folder takes the
// gate's files. The run's kubeconfig is the gate's.
func OnVirtualNode(ctx context.Context, consumer, provider *rest.Config, folder string, r Run) (_ map[string]Outcome, pods Pods, err error) {
	gate, err := OpenGate(consumer, filepath.Join(folder, "gate"))
	if err != nil {
		return nil, pods, err
	}
	defer func() { err = errors.Join(err, gate.Close()) }()
	home, err := NewWitness(ctx, consumer)
	if err != nil {
		return nil, pods, err
	}
	remote, err := NewWitness(ctx, provider)
	if err != nil {
		home.stop()
		return nil, pods, err
	}
	r.Kubeconfig = gate.Kubeconfig
	outcomes, err := r.Do(ctx)
	pods.Remote = remote.Nodes()
	virtual, failed := virtualNodes(context.WithoutCancel(ctx), consumer)
	for node, n := range home.Nodes() {
		if !virtual[node] {
			pods.Local += n
		}
	}
	return outcomes, pods, errors.Join(err, failed)
}
