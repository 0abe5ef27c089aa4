package main

import (
	"crypto/tls"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/metrics"
	"liqo.io/liqo/pkg/kube/expiry"
	"liqo.io/liqo/pkg/kube/servingcert"
	"liqo.io/liqo/pkg/peer"
)

// measure registers what the controller manager shows as metrics, and returns what shows the connections to the peers.
func measure(mgr ctrl.Manager, registerer prometheus.Registerer, config *v1alpha1.ControllerManager, certificates *servingcert.Manager) (*peer.Meter, error) {
	meter := peer.NewMeter()
	for _, collector := range []prometheus.Collector{
		meter,
		expiry.Of(expiry.Webhook, "", func() *tls.Certificate {
			serving, err := certificates.GetCertificate(nil)
			if err != nil {
				return nil // there is none yet, which the readiness check tells
			}
			return serving
		}),
	} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of the controller manager: %w", err)
		}
	}
	if !config.Offloading.Enabled {
		return meter, nil
	}
	return meter, metrics.Register(mgr, metrics.Options{Registerer: registerer, Grants: config.Authentication.Enabled})
}
