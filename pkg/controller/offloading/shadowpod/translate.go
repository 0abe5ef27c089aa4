package shadowpod

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/pkg/reflection"
)

// rangesRetry is how soon it is looked again whether addresses of the consumer can be translated.
const rangesRetry = time.Second

// translate has a Pod find its own cluster's API server where this cluster sees it. What lies in no range of the consumer is left as the
// consumer wrote it.
func (r *reconciler) translate(ctx context.Context, shadow *offloadingv1beta1.ShadowPod, spec *corev1.PodSpec) error {
	aliases := reflection.APIAliases(spec)
	if !r.Networking || len(aliases) == 0 {
		return nil
	}
	configuration, err := translation.Find(ctx, r.Client, shadow.Labels[offloadingv1beta1.OriginLabel])
	if err != nil {
		return err
	}
	peer, err := translation.Of(configuration)
	if err != nil {
		return reconcile.Wait(offloadingv1beta1.ReasonRangesPending, err.Error(), rangesRetry)
	}
	for _, alias := range aliases {
		address, err := netip.ParseAddr(alias.IP)
		if err != nil {
			continue // Kubernetes says so.
		}
		if seen, ok := peer.Translate(address); ok {
			alias.IP = seen.String()
		}
	}
	return nil
}
