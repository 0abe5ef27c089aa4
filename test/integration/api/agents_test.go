package api

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/fabric/gateway"
	"liqo.io/liqo/pkg/fabric/node"
	"liqo.io/liqo/pkg/netlink"
	"liqo.io/liqo/pkg/networking/inputs"
	"liqo.io/liqo/test/integration/fixture"
)

// What agents write is taken by an API server, and conditions of others stay: a node's agent where there is no peer, and a gateway's that waits
// for the key of its peer. Neither puts anything into the kernel.
func TestWhatAgentsWriteIsTaken(t *testing.T) {
	name, address := fixture.Unique("agent"), networkingv1beta1.IP("192.0.2.77")
	withoutFabrics(t)
	internal := &networkingv1beta1.InternalNode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       networkingv1beta1.InternalNodeSpec{Interface: networkingv1beta1.InternalNodeSpecInterface{Node: networkingv1beta1.InternalNodeSpecInterfaceNode{IP: "10.70.255.254"}}},
	}
	fixture.Must(t, "creating an InternalNode", env.Milan.Client.Create(t.Context(), internal))
	internal.Status = networkingv1beta1.InternalNodeStatus{
		NodeIP: networkingv1beta1.InternalNodeStatusNodeIP{Remote: &address}, PodRanges: []networkingv1beta1.CIDR{"10.244.1.0/24"},
		Conditions: []metav1.Condition{{Type: "Other", Status: metav1.ConditionTrue, Reason: networkingv1beta1.ReasonProgrammed, LastTransitionTime: metav1.Now()}},
	}
	fixture.Must(t, "writing its status", env.Milan.Client.Status().Update(t.Context(), internal))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	fixture.Must(t, "creating a namespace", env.Milan.Client.Create(t.Context(), namespace))
	server := &networkingv1beta1.GatewayServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name},
		Spec:       networkingv1beta1.GatewayServerSpec{Endpoint: networkingv1beta1.Endpoint{Port: 51840}},
	}
	fixture.Must(t, "creating a GatewayServer", env.Milan.Client.Create(t.Context(), server))

	// A table that no host can carry out: nothing gets into the kernel. Another host has said so already.
	bridges := &networkingv1beta1.FirewallConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, Labels: map[string]string{
			networkingv1beta1.FirewallCategoryLabel: networkingv1beta1.CategoryFabric, networkingv1beta1.FirewallSubcategoryLabel: networkingv1beta1.SubcategoryAllNodes,
		}},
		Spec: networkingv1beta1.FirewallConfigurationSpec{Table: networkingv1beta1.Table{Name: "bridges", Family: "BRIDGE"}},
	}
	fixture.Must(t, "creating a FirewallConfiguration", env.Milan.Client.Create(t.Context(), bridges))
	bridges.Status.Conditions = []networkingv1beta1.HostCondition{{Host: "other", Type: networkingv1beta1.HostError, Status: metav1.ConditionTrue}}
	fixture.Must(t, "writing its status", env.Milan.Client.Status().Update(t.Context(), bridges))

	cluster, err := agent.Connect(env.Milan.Config)
	fixture.Must(t, "connecting", err)
	kernel, err := netlink.Open("")
	fixture.Must(t, "opening the kernel", err)
	ofNode := node.New(node.Options{Cluster: cluster, Kernel: kernel, Health: &agent.Health{}, Name: name, Namespace: name, Port: 6091})
	ofGateway := gateway.New(gateway.Options{
		Cluster: cluster, Kernel: kernel, Health: &agent.Health{}, Namespace: name, Name: name, Peer: name,
		Pod: inputs.GatewayPod{Address: netip.MustParseAddr("127.0.0.1"), Host: netip.MustParseAddr(string(address)), Server: true, Port: 6091},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, run := range []func(context.Context) error{ofNode.Run, ofGateway.Run} {
		go func() { ended <- run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		fixture.Must(t, "closing the kernel", kernel.Close())
	})

	fixture.Await(t, fixture.Patience, "the status of the node", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(internal), internal)
		ready := meta.FindStatusCondition(internal.Status.Conditions, corev1beta1.ConditionReady)
		return err == nil && ready != nil && ready.Reason == networkingv1beta1.ReasonProgrammed, fmt.Sprintf("%+v, %v", internal.Status, err)
	})
	if len(internal.Status.Conditions) != 2 || len(internal.Status.PodRanges) != 1 || len(internal.Status.Addresses) == 0 {
		t.Errorf("the status is %+v", internal.Status)
	}
	fixture.Await(t, fixture.Patience, "the word of the node about the table", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(bridges), bridges)
		all := bridges.Status.Conditions
		return err == nil && len(all) == 2 && all[0].Host == "other" && all[1].Host == name && all[1].Reason == networkingv1beta1.ReasonNotSupported,
			fmt.Sprintf("%+v, %v", all, err)
	})
	bridges.Labels = nil
	fixture.Must(t, "asking nobody any more", env.Milan.Client.Update(t.Context(), bridges))
	fixture.Await(t, fixture.Patience, "the node to take its word back", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(bridges), bridges)
		all := bridges.Status.Conditions
		return err == nil && len(all) == 1 && all[0].Host == "other", fmt.Sprintf("%+v, %v", all, err)
	})
	connection := &networkingv1beta1.Connection{}
	fixture.Await(t, fixture.Patience, "the Connection", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: name}, connection)
		ready := meta.FindStatusCondition(connection.Status.Conditions, corev1beta1.ConditionReady)
		return err == nil && ready != nil && ready.Reason == networkingv1beta1.ReasonKeyMissing, fmt.Sprintf("%+v, %v", connection.Status, err)
	})
	if connection.Status.Value != networkingv1beta1.Connecting || connection.Status.MTU == 0 || !metav1.IsControlledBy(connection, server) {
		t.Errorf("the Connection is %+v", connection)
	}
}

// withoutFabrics removes the InternalFabrics of other tests: an agent would put them into the kernel of this machine.
func withoutFabrics(t *testing.T) {
	t.Helper()
	fabrics := &networkingv1beta1.InternalFabricList{}
	fixture.Await(t, fixture.Patience, "the InternalFabrics of other tests to go", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.List(ctx, fabrics)
		for i := range fabrics.Items {
			err = errors.Join(err, client.IgnoreNotFound(env.Milan.Client.Delete(ctx, &fabrics.Items[i])))
		}
		return err == nil && len(fabrics.Items) == 0, fmt.Sprint(len(fabrics.Items), err)
	})
}
