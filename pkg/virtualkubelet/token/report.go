package token

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/registry"
)

const (
	reasonFailed    = offloadingv1beta1.ReasonTokensFailed
	reasonRecovered = offloadingv1beta1.ReasonTokensRecovered
)

type metrics struct{ requested, written, failed *prometheus.CounterVec }

func newMetrics(o Options) (*metrics, error) {
	constant := prometheus.Labels{"cluster_id": o.Remote, "node_name": o.Node}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: constant}, []string{"namespace"})
	}
	m := &metrics{
		requested: counter("liqo_virtual_kubelet_token_requests_total", "Tokens that were asked for, by namespace."),
		written:   counter("liqo_virtual_kubelet_token_secret_writes_total", "Secrets with a pod's tokens that were written at the provider, by namespace."),
		failed:    counter("liqo_virtual_kubelet_token_failures_total", "Failures to bring a pod's tokens to the provider, by namespace."),
	}
	for _, c := range []**prometheus.CounterVec{&m.requested, &m.written, &m.failed} {
		var err error
		if *c, err = registry.Ensure(o.Registerer, *c); err != nil {
			return nil, fmt.Errorf("counting tokens: %w", err)
		}
	}
	return m, nil
}

// tell records a failure: an Event if the user has to know, at most every few minutes.
func (k *Keeper) tell(pod key, err error) {
	if reconcile.Classify(err) == reconcile.Waiting {
		return
	}
	k.metrics.failed.WithLabelValues(pod.Namespace).Inc()
	place, there := k.options.Place(pod)
	if !there || ended(place.Local) {
		return
	}
	s, now := k.known(pod, place.Local.UID), k.options.Clock.Now()
	s.failures++
	if reconcile.Classify(err) == reconcile.Transient && s.failures < patience || !s.told.IsZero() && now.Sub(s.told) < tellEvery {
		return
	}
	s.told = now
	message := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		message = status.Status().Message
	}
	k.event(place.Local, corev1.EventTypeWarning, reasonFailed, fmt.Sprintf(
		"the tokens of the pod's ServiceAccount could not be brought to cluster %q: %s", k.options.Remote, message))
}

// recovered tells that all is well again, if something else was told before.
func (k *Keeper) recovered(pod *corev1.Pod, s *state) {
	if !s.told.IsZero() || s.warned {
		k.event(pod, corev1.EventTypeNormal, reasonRecovered, fmt.Sprintf(
			"the tokens of the pod's ServiceAccount are in cluster %q again", k.options.Remote))
	}
	s.failures, s.warned, s.told = 0, false, time.Time{}
}

func (k *Keeper) event(pod *corev1.Pod, kind, reason, message string) {
	if k.options.Recorder != nil {
		k.options.Recorder.Event(pod.DeepCopy(), kind, reason, message)
	}
}
