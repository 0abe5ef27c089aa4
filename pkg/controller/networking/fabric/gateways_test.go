package fabric

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// Nodes are told of the Configuration of which the gateway is told, too.
func TestTheOldestConfigurationCounts(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := networkingv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	of := func(name string, age time.Duration) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age)),
			Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"}}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for name, age := range map[string]time.Duration{"milan": time.Minute, "milan-net": time.Hour, "a": time.Second} {
		builder.WithObjects(&networkingv1beta1.Configuration{ObjectMeta: of(name, age)}, &networkingv1beta1.Connection{ObjectMeta: of(name, age)})
	}
	r := &gateways{client: builder.Build()}
	found, err := r.gather(t.Context(), &networkingv1beta1.GatewayServer{ObjectMeta: of("server", 0)}, nil)
	if err != nil || found.configuration == nil || found.connection == nil {
		t.Fatalf("%+v, %v", found, err)
	}
	if found.configuration.Name != "milan-net" || found.connection.Name != "milan-net" {
		t.Errorf("what counts is Configuration %s and Connection %s", found.configuration.Name, found.connection.Name)
	}
}
