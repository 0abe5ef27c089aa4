package api

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/networking/gateway"
	"liqo.io/liqo/pkg/controller/networking/gatewaytemplate"
	"liqo.io/liqo/test/integration/fixture"
)

// passage is a gateway of milan, with the peer that it is for.
type passage struct {
	*testing.T
	peer, namespace string
	server          *networkingv1beta1.GatewayServer
}

// What a GatewayServer becomes, with the rights of the controller manager and below its admission policy: what runs, where it is reached,
// that edits do not stay, and that nothing is left.
func TestAGatewayServerRunsAndGoes(t *testing.T) {
	p := &passage{T: t, peer: fixture.Unique("gate")}
	p.namespace = corev1beta1.TenantNamespacePrefix + p.peer
	p.prepare()
	p.manage()

	p.server = &networkingv1beta1.GatewayServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.peer, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: p.peer}},
		Spec:       networkingv1beta1.GatewayServerSpec{Endpoint: networkingv1beta1.Endpoint{Port: 51840, ServiceType: corev1.ServiceTypeNodePort}},
	}
	fixture.Must(t, "creating a GatewayServer", env.Milan.Client.Create(t.Context(), p.server))
	p.await(networkingv1beta1.ReasonProvisioned)

	service, pod := &corev1.Service{}, p.pod()
	p.get("gw-"+p.peer, service)
	want := networkingv1beta1.GatewayServerStatus{
		Endpoint: &networkingv1beta1.EndpointStatus{
			Addresses: p.addresses(), Port: networkingv1beta1.Port(service.Spec.Ports[0].NodePort), Protocol: corev1.ProtocolUDP,
		},
		InternalEndpoint: &networkingv1beta1.InternalGatewayEndpoint{IP: ptr.To(networkingv1beta1.IP(pod.Status.PodIP)), Node: &pod.Spec.NodeName},
		ServerRef:        p.server.Status.ServerRef, SecretRef: p.server.Status.SecretRef, Conditions: p.server.Status.Conditions,
	}
	if diff := cmp.Diff(want, p.server.Status); diff != "" || service.Spec.Ports[0].NodePort == 0 {
		t.Errorf("where the gateway is reached is told otherwise: %s", diff)
	}
	if pod.Spec.ServiceAccountName != "gw-"+p.peer {
		t.Errorf("the pod's account is %q", pod.Spec.ServiceAccountName)
	}
	secret := &corev1.Secret{}
	p.get(p.server.Status.SecretRef.Name, secret)
	fixture.Must(t, "checking the keys", gateway.CheckKeys(secret.Data))

	p.rights()
	p.edits(service.Spec.Ports[0].NodePort)
	p.restarts()
	p.goes()
}

// prepare makes the tenant namespace, with the rights that the chart gives there where the network module runs, and its template.
func (p *passage) prepare() {
	objects, err := env.Milan.Manifests(map[string]any{"networking": map[string]any{"enabled": true}})
	fixture.Must(p, "rendering the chart", err)
	role := &rbacv1.ClusterRole{}
	for _, o := range objects {
		if o.GetKind() == "ClusterRole" && o.GetName() == "liqo-controller-manager-tenant" {
			fixture.Must(p, "reading the chart's role", runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role))
		}
		if o.GetKind() == "ClusterRole" && o.GetName() == "liqo-gateway" {
			fixture.Must(p, "creating the chart's role of gateways", client.IgnoreAlreadyExists(env.Milan.Client.Create(p.Context(), o)))
		}
		if text, found, _ := unstructured.NestedString(o.Object, "data", "config.yaml"); found {
			p.templates(text)
		}
	}
	if len(role.Rules) == 0 {
		p.Fatal("the chart has no role for tenant namespaces")
	}
	for _, o := range append(fixture.TenantNamespace(p.peer),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "manager"}, Rules: role.Rules},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "manager"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: fixture.Namespace, Name: "liqo-controller-manager"}}},
	) {
		fixture.Must(p, "creating "+o.GetName(), client.IgnoreAlreadyExists(env.Milan.Client.Create(p.Context(), o)))
	}
	env.Milan.AwaitServiceAccount(p, p.namespace)
}

// templates makes the templates of a configuration.
func (p *passage) templates(config string) {
	p.Helper()
	parsed, err := v1alpha1.Parse([]byte(config))
	fixture.Must(p, "reading the configuration", err)
	objects, err := gatewaytemplate.Objects(gatewaytemplate.Options{Templates: parsed.Networking.GatewayTemplates, Namespace: fixture.Namespace})
	fixture.Must(p, "making the templates", err)
	for _, o := range objects {
		fixture.Must(p, "creating the template "+o.GetName(), client.IgnoreAlreadyExists(env.Milan.Client.Create(p.Context(), o)))
	}
}

// manage runs the controllers of gateways, as the controller manager.
func (p *passage) manage() {
	p.Helper()
	config := env.Milan.As(p, managerAccount, "system:serviceaccounts", "system:serviceaccounts:"+fixture.Namespace).Config
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: fixture.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}, &rbacv1.Role{}}}}})
	fixture.Must(p, "preparing the manager", err)
	fixture.Must(p, "registering the controllers", gateway.Register(mgr, gateway.Options{Namespace: fixture.Namespace}))
	ctx, stop := context.WithCancel(p.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	p.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			p.Errorf("the manager ended: %v", err)
		}
	})
}

// pod is that of the gateway; simulated nodes say that it runs.
func (p *passage) pod() *corev1.Pod {
	p.Helper()
	pods := &corev1.PodList{}
	fixture.Must(p, "listing the pods", env.Milan.Client.List(p.Context(), pods, client.InNamespace(p.namespace)))
	if len(pods.Items) != 1 {
		p.Fatalf("the gateway has %d pods", len(pods.Items))
	}
	return &pods.Items[0]
}

// addresses are those of the nodes, of which there are not more than a gateway is announced at.
func (p *passage) addresses() (found []networkingv1beta1.Host) {
	p.Helper()
	nodes := &corev1.NodeList{}
	fixture.Must(p, "listing the nodes", env.Milan.Client.List(p.Context(), nodes))
	for i := range nodes.Items {
		for _, address := range nodes.Items[i].Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				found = append(found, networkingv1beta1.Host(address.Address))
			}
		}
	}
	return found
}

// await waits for a reason of the gateway's condition Ready.
func (p *passage) await(reason string) {
	p.Helper()
	fixture.Await(p, fixture.Patience, "reason "+reason, func(ctx context.Context) (bool, string) {
		if err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(p.server), p.server); err != nil {
			return false, err.Error()
		}
		ready := meta.FindStatusCondition(p.server.Status.Conditions, corev1beta1.ConditionReady)
		return ready != nil && ready.Reason == reason, fmt.Sprintf("%+v", ready)
	})
}

func (p *passage) get(name string, into client.Object) {
	p.Helper()
	fixture.Must(p, "reading "+name, env.Milan.Client.Get(p.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, into))
}

// rights are those of the gateway's pod: itself, what is known of the peer, whatever its name, and nothing of another gateway.
func (p *passage) rights() {
	p.Helper()
	pod := env.Milan.As(p, "system:serviceaccount:"+p.namespace+":gw-"+p.peer, "system:serviceaccounts", "system:serviceaccounts:"+p.namespace)
	fixture.Await(p, fixture.Patience, "the rights of the gateway", func(ctx context.Context) (bool, string) {
		err := pod.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: p.peer}, &networkingv1beta1.GatewayServer{})
		return err == nil, fmt.Sprint(err)
	})
	for _, list := range []client.ObjectList{&networkingv1beta1.ConfigurationList{}, &networkingv1beta1.PublicKeyList{}} {
		fixture.Must(p, "listing what is known of the peer", pod.List(p.Context(), list, client.InNamespace(p.namespace)))
		if err := pod.List(p.Context(), list); !apierrors.IsForbidden(err) {
			p.Errorf("a gateway lists the %T of all peers: %v", list, err)
		}
	}
	for _, o := range []client.Object{&networkingv1beta1.Configuration{}, &networkingv1beta1.PublicKey{}, &networkingv1beta1.InternalFabric{}} {
		if err := pod.Get(p.Context(), client.ObjectKey{Namespace: p.namespace, Name: p.peer}, o); !apierrors.IsNotFound(err) {
			p.Errorf("a gateway looks for its %T: %v", o, err)
		}
	}
	connection := func(name string) *networkingv1beta1.Connection {
		return &networkingv1beta1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}, Spec: networkingv1beta1.ConnectionSpec{
			Type: networkingv1beta1.ConnectionTypeServer, GatewayRef: corev1.ObjectReference{Kind: "WgGatewayServer", Namespace: p.namespace, Name: p.peer}}}
	}
	own := connection(p.peer)
	fixture.Must(p, "telling of the tunnel", pod.Create(p.Context(), own))
	own.Status.Value = networkingv1beta1.Connected
	fixture.Must(p, "telling the state of the tunnel", pod.Status().Update(p.Context(), own))
	for what, err := range map[string]error{
		"the keys":             pod.Get(p.Context(), client.ObjectKey{Namespace: p.namespace, Name: p.server.Status.SecretRef.Name}, &corev1.Secret{}),
		"another gateway":      pod.Get(p.Context(), client.ObjectKey{Namespace: p.namespace, Name: "other"}, &networkingv1beta1.GatewayServer{}),
		"all gateways":         pod.List(p.Context(), &networkingv1beta1.GatewayServerList{}, client.InNamespace(p.namespace)),
		"another's connection": pod.Status().Update(p.Context(), connection("other")),
		"a change of its own":  pod.Update(p.Context(), p.server.DeepCopy()),
	} {
		if !apierrors.IsForbidden(err) {
			p.Errorf("a gateway gets at %s: %v", what, err)
		}
	}
}

// edits are put back, and what Kubernetes chose stays.
func (p *passage) edits(nodePort int32) {
	p.Helper()
	deployment, service, rendered := &appsv1.Deployment{}, &corev1.Service{}, &networkingv1beta1.WgGatewayServer{}
	p.get("gw-"+p.peer, deployment)
	p.get("gw-"+p.peer, service)
	p.get(p.peer, rendered)
	image := deployment.Spec.Template.Spec.Containers[0].Image
	for o, edit := range map[client.Object]func(){
		deployment: func() { deployment.Spec.Template.Spec.Containers[0].Image = "example.com/evil" },
		service:    func() { service.Spec.Ports[0].Port = 1 },
		rendered:   func() { rendered.Spec.Deployment.Spec.Template.Spec.HostNetwork = true },
	} {
		before := o.DeepCopyObject().(client.Object)
		edit()
		fixture.Must(p, "editing", env.Milan.Client.Patch(p.Context(), o, client.MergeFrom(before)))
	}
	fixture.Await(p, fixture.Patience, "the edits to be put back", func(ctx context.Context) (bool, string) {
		p.get("gw-"+p.peer, deployment)
		p.get("gw-"+p.peer, service)
		p.get(p.peer, rendered)
		is, port, host := deployment.Spec.Template.Spec.Containers[0].Image, service.Spec.Ports[0], rendered.Spec.Deployment.Spec.Template.Spec.HostNetwork
		return is == image && port.Port == 51840 && port.NodePort == nodePort && !host, fmt.Sprintf("image %s, port %+v, host network %v", is, port, host)
	})
}

// restarts are no news: nothing is written.
func (p *passage) restarts() {
	p.Helper()
	versions := func() map[string]string {
		found := map[string]string{}
		for _, o := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
			p.get("gw-"+p.peer, o)
			// The controller of Deployments counts the edits before, sooner or later.
			annotations := maps.Clone(o.GetAnnotations())
			delete(annotations, "deployment.kubernetes.io/revision")
			found[fmt.Sprintf("%T", o)] = fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetLabels(), annotations)
		}
		return found
	}
	before := versions()
	// A change that concerns nothing but the status has the gateway looked at as a whole.
	edited := p.server.DeepCopy()
	meta.SetStatusCondition(&edited.Status.Conditions, metav1.Condition{Type: corev1beta1.ConditionReady, Status: metav1.ConditionUnknown, Reason: "Test"})
	fixture.Must(p, "editing the status", env.Milan.Client.Status().Patch(p.Context(), edited, client.MergeFrom(p.server)))
	p.await(networkingv1beta1.ReasonProvisioned)
	if diff := cmp.Diff(before, versions()); diff != "" {
		p.Errorf("another look changed something: %s", diff)
	}
}

// goes deletes the GatewayServer, and waits until nothing is left.
func (p *passage) goes() {
	p.Helper()
	fixture.Must(p, "deleting the GatewayServer", env.Milan.Client.Delete(p.Context(), p.server))
	binding := client.ObjectKey{Name: "liqo-gateway:" + p.namespace + ":" + p.peer}
	part, own := client.ObjectKey{Namespace: p.namespace, Name: "gw-" + p.peer}, client.ObjectKey{Namespace: p.namespace, Name: p.peer}
	fixture.Await(p, fixture.Patience, "all of the gateway to go", func(ctx context.Context) (bool, string) {
		for _, left := range []struct {
			key    client.ObjectKey
			object client.Object
		}{
			{own, &networkingv1beta1.GatewayServer{}}, {own, &networkingv1beta1.WgGatewayServer{}}, {part, &appsv1.Deployment{}}, {part, &corev1.Service{}},
			{part, &corev1.ServiceAccount{}}, {part, &rbacv1.Role{}}, {part, &rbacv1.RoleBinding{}},
			{client.ObjectKey{Namespace: p.namespace, Name: networkingv1beta1.GatewayKeysSecret(p.peer)}, &corev1.Secret{}},
			{binding, &rbacv1.ClusterRoleBinding{}},
		} {
			if err := env.Milan.Client.Get(ctx, left.key, left.object); !apierrors.IsNotFound(err) {
				return false, fmt.Sprintf("%T %s: %v", left.object, left.key, err)
			}
		}
		return true, ""
	})
}
