package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/kube/servingcert"
	"liqo.io/liqo/test/monitoring"
)

// docs/metrics.md says what there is, with its labels, no more and no less.
func TestThePageHasTheMetricsOfTheControllerManager(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: disabledListening},
		NewClient: func(*rest.Config, client.Options) (client.Client, error) {
			return fake.NewClientBuilder().WithScheme(scheme).Build(), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	certificates := servingcert.NewFollower(fake.NewClientBuilder().Build(), client.ObjectKey{Namespace: "liqo", Name: webhookSecret}, clock.RealClock{})
	config := &v1alpha1.ControllerManager{}
	config.Offloading.Enabled, config.Authentication.Enabled = true, true
	registry := monitoring.NewRegistry()
	m, err := measure(mgr, registry, config, certificates)
	if err != nil || m.peers == nil || m.supply == nil {
		t.Fatal(m, err)
	}
	if diff := cmp.Diff(monitoring.Of(t, "../..", monitoring.ControllerManager), registry.Registered()); diff != "" {
		t.Errorf("-docs/metrics.md +registered:\n%s", diff)
	}
	// Nothing is known yet, and nothing is asked for before there is.
	if families, err := registry.Gather(); err != nil || len(families) != 0 {
		t.Errorf("%v, error %v", families, err)
	}
}
