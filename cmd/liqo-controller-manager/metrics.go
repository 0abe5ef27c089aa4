package main

import (
	"crypto/tls"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/pkg/controller/metrics"
	"liqo.io/liqo/pkg/kube/expiry"
	"liqo.io/liqo/pkg/kube/servingcert"
	"liqo.io/liqo/pkg/peer"
)

// measured is what the controllers are given that shows itself as metrics.
type measured struct {
	// peers are the connections to them.
	peers *peer.Meter
	// supply is what this cluster has to offer; nil if it answers nobody.
	supply *supply.Supply
}

// measure registers what the controller manager shows as metrics.
func measure(mgr ctrl.Manager, registerer prometheus.Registerer, config *v1alpha1.ControllerManager, certificates *servingcert.Follower) (*measured, error) {
	m := &measured{peers: peer.NewMeter()}
	collectors := []prometheus.Collector{
		m.peers,
		expiry.Of(expiry.Webhook, "", func() *tls.Certificate {
			serving, err := certificates.GetCertificate(nil)
			if err != nil {
				return nil // there is none yet, which the readiness check tells
			}
			return serving
		}),
	}
	if config.Authentication.Enabled {
		options := supply.Options{Exclusive: config.Offloading.Sharing == v1alpha1.ExclusiveOffers,
			Tolerated: podRules(config.Offloading.Consumers).MayTolerate, Log: mgr.GetLogger().WithName("capacity")}
		var err error
		if m.supply, err = supply.Register(mgr, options); err != nil {
			return nil, err
		}
		collectors = append(collectors, m.supply)
	}
	for _, collector := range collectors {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of the controller manager: %w", err)
		}
	}
	if !config.Offloading.Enabled {
		return m, nil
	}
	return m, metrics.Register(mgr, metrics.Options{Registerer: registerer, Grants: config.Authentication.Enabled})
}
