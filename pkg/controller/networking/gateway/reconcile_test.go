package gateway

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
)

const home = "liqo-tenant-milan"

var (
	of    = client.ObjectKey{Namespace: home, Name: "milan"}
	parts = client.ObjectKey{Namespace: home, Name: "gw-milan"}
)

// lab is a cluster without Kubernetes' own controllers, with a gateway for milan.
type lab struct {
	client.Client
	*testing.T
	server, client *reconciler
	rights         *rights
}

func newLab(t *testing.T, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, networkingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home, Labels: map[string]string{
		corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: "milan"}}},
		read(t, "server.yaml", &networkingv1beta1.WgGatewayServerTemplate{}, "wireguard-server"),
		read(t, "client.yaml", &networkingv1beta1.WgGatewayClientTemplate{}, "wireguard-client"))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(
		&networkingv1beta1.GatewayServer{}, &networkingv1beta1.GatewayClient{}, &networkingv1beta1.WgGatewayServer{}, &networkingv1beta1.WgGatewayClient{},
		&networkingv1beta1.Connection{}).Build()
	options := Options{Namespace: "liqo", Live: c, Pods: c, Secrets: secrets.Store{Client: c, Reader: c}, Events: events.NewFakeRecorder(100)}
	return &lab{c, t, &reconciler{c, options, serverSide}, &reconciler{c, options, clientSide}, &rights{c, c}}
}

// read reads a template of package template's tests.
func read(t *testing.T, file string, into client.Object, name string) client.Object {
	t.Helper()
	text, err := os.ReadFile("../../../networking/template/testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatal(err)
	}
	into.SetNamespace("liqo")
	into.SetName(name)
	return into
}

func gatewayServer(change func(*networkingv1beta1.GatewayServer)) *networkingv1beta1.GatewayServer {
	server := &networkingv1beta1.GatewayServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "milan", UID: "u-1", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"}},
		Spec:       networkingv1beta1.GatewayServerSpec{Endpoint: networkingv1beta1.Endpoint{Port: 51840, ServiceType: corev1.ServiceTypeNodePort}},
	}
	if change != nil {
		change(server)
	}
	return server
}

// pass reconciles once and returns the Ready condition of a GatewayServer.
func (l *lab) pass() (*networkingv1beta1.GatewayServer, *metav1.Condition) {
	l.Helper()
	if _, err := l.server.Reconcile(l.Context(), ctrl.Request{NamespacedName: of}); err != nil {
		l.Log(err)
	}
	server := &networkingv1beta1.GatewayServer{}
	l.get(of, server)
	ready := meta.FindStatusCondition(server.Status.Conditions, corev1beta1.ConditionReady)
	if ready == nil {
		l.Fatal("the GatewayServer has no condition Ready")
	}
	return server, ready
}

func (l *lab) get(key client.ObjectKey, into client.Object) {
	l.Helper()
	if err := l.Get(l.Context(), key, into); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func gatewayPod(name, address string) *corev1.Pod {
	pod := podOf(name, address, nil)
	pod.Namespace, pod.Labels = home, map[string]string{networkingv1beta1.GatewayNameLabel: "milan"}
	return &pod
}

func TestAServerIsMadeWhatItIsRenderedTo(t *testing.T) {
	l := newLab(t, gatewayServer(nil), ptr.To(nodeOf("n", corev1.ConditionTrue, nil, inside("172.18.0.2"))))
	if _, ready := l.pass(); ready.Reason != networkingv1beta1.ReasonGatewayPodPending {
		t.Fatalf("got %+v", ready)
	}
	keys, wg, deployment, service := &corev1.Secret{}, &networkingv1beta1.WgGatewayServer{}, &appsv1.Deployment{}, &corev1.Service{}
	l.get(client.ObjectKey{Namespace: home, Name: "milan-gw-keys"}, keys)
	l.get(of, wg)
	l.get(parts, deployment)
	l.get(parts, service)
	for _, o := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		l.get(parts, o)
	}
	if err := CheckKeys(keys.Data); err != nil {
		t.Error(err)
	}
	pod := deployment.Spec.Template
	if pod.Labels[networkingv1beta1.GatewayNameLabel] != "milan" || pod.Spec.ServiceAccountName != "gw-milan" {
		t.Errorf("pods have labels %v and the account %q", pod.Labels, pod.Spec.ServiceAccountName)
	}
	if !metav1.IsControlledBy(wg, gatewayServer(nil)) || !metav1.IsControlledBy(deployment, wg) || !metav1.IsControlledBy(service, wg) || !metav1.IsControlledBy(keys, gatewayServer(nil)) {
		t.Error("something does not go with its gateway")
	}
	// Kubernetes gives the Service its port, and a pod becomes ready.
	service.Spec.Ports[0].NodePort = 30840
	l.must(l.Update(t.Context(), service))
	l.must(l.Create(t.Context(), gatewayPod("gw-milan-1", "10.244.1.7")))
	server, ready := l.pass()
	want := networkingv1beta1.GatewayServerStatus{
		ServerRef: &corev1.ObjectReference{APIVersion: "networking.liqo.io/v1beta1", Kind: "WgGatewayServer", Namespace: home, Name: "milan"},
		SecretRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: home, Name: "milan-gw-keys"},
		Endpoint:  &networkingv1beta1.EndpointStatus{Addresses: []networkingv1beta1.Host{"172.18.0.2"}, Port: 30840, Protocol: corev1.ProtocolUDP},
		InternalEndpoint: &networkingv1beta1.InternalGatewayEndpoint{
			IP: ptr.To(networkingv1beta1.IP("10.244.1.7")), Node: ptr.To("n"),
		},
		Conditions: []metav1.Condition{*ready},
	}
	if diff := cmp.Diff(want, server.Status); diff != "" || ready.Reason != networkingv1beta1.ReasonProvisioned {
		t.Errorf("%+v: %s", ready, diff)
	}
	l.get(of, wg)
	if diff := cmp.Diff(server.Status.Endpoint, wg.Status.Endpoint); diff != "" {
		t.Error(diff)
	}
	before := l.versions()
	l.pass()
	if diff := cmp.Diff(before, l.versions()); diff != "" {
		t.Errorf("something was written that was there: %s", diff)
	}
}

// Users name what is known of the peer as they like; of all else a gateway reads and writes what has its own name.
func TestWhatAGatewayMayDo(t *testing.T) {
	var got []string
	for _, rule := range Rules("gatewayservers", "server") {
		got = append(got, strings.Join(slices.Concat(rule.Resources, rule.ResourceNames, rule.Verbs), " "))
	}
	want := []string{
		"gatewayservers server get list watch",
		"configurations publickeies get list watch",
		"connections server get list watch update patch",
		"connections create",
		"connections/status server get update patch",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// versions are the versions of all that a gateway is made of.
func (l *lab) versions() map[string]string {
	l.Helper()
	versions := map[string]string{}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &appsv1.Deployment{}, &corev1.Service{}, &networkingv1beta1.WgGatewayServer{}, &networkingv1beta1.GatewayServer{},
	} {
		key := parts
		if o.GetObjectKind(); strings.Contains(kindOf(o), "Gateway") {
			key = of
		}
		l.get(key, o)
		versions[kindOf(o)] = o.GetResourceVersion()
	}
	return versions
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *networkingv1beta1.WgGatewayServer:
		return "WgGatewayServer"
	case *networkingv1beta1.GatewayServer:
		return "GatewayServer"
	case *appsv1.Deployment:
		return "Deployment"
	case *corev1.Service:
		return "Service"
	case *rbacv1.Role:
		return "Role"
	case *rbacv1.RoleBinding:
		return "RoleBinding"
	default:
		return "ServiceAccount"
	}
}

func TestEditsArePutBack(t *testing.T) {
	for name, edit := range map[string]func(wg *networkingv1beta1.WgGatewayServer, d *appsv1.Deployment, s *corev1.Service, r *rbacv1.Role, b *rbacv1.RoleBinding){
		"another image": func(_ *networkingv1beta1.WgGatewayServer, d *appsv1.Deployment, _ *corev1.Service, _ *rbacv1.Role, _ *rbacv1.RoleBinding) {
			d.Spec.Template.Spec.Containers[0].Image = "example.com/evil"
		},
		"another image in what was rendered": func(wg *networkingv1beta1.WgGatewayServer, _ *appsv1.Deployment, _ *corev1.Service, _ *rbacv1.Role, _ *rbacv1.RoleBinding) {
			wg.Spec.Deployment.Spec.Template.Spec.Containers[0].Image = "example.com/evil"
			wg.Spec.Deployment.Spec.Template.Spec.HostNetwork = true
		},
		"another port": func(_ *networkingv1beta1.WgGatewayServer, _ *appsv1.Deployment, s *corev1.Service, _ *rbacv1.Role, _ *rbacv1.RoleBinding) {
			s.Spec.Ports[0].Port = 1
		},
		"more rights": func(_ *networkingv1beta1.WgGatewayServer, _ *appsv1.Deployment, _ *corev1.Service, r *rbacv1.Role, _ *rbacv1.RoleBinding) {
			r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
		},
		"rights for another": func(_ *networkingv1beta1.WgGatewayServer, _ *appsv1.Deployment, _ *corev1.Service, _ *rbacv1.Role, b *rbacv1.RoleBinding) {
			b.Subjects[0].Name = "default"
		},
		"no label": func(_ *networkingv1beta1.WgGatewayServer, d *appsv1.Deployment, _ *corev1.Service, _ *rbacv1.Role, _ *rbacv1.RoleBinding) {
			delete(d.Labels, networkingv1beta1.GatewayNameLabel)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, gatewayServer(nil))
			l.pass()
			wg, d, s, r, b := &networkingv1beta1.WgGatewayServer{}, &appsv1.Deployment{}, &corev1.Service{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}
			all := []client.Object{wg, d, s, r, b}
			look := func() (seen []client.Object) {
				for _, o := range all {
					key := parts
					if o == client.Object(wg) {
						key = of
					}
					l.get(key, o)
					copied := o.DeepCopyObject().(client.Object)
					copied.SetResourceVersion("")
					seen = append(seen, copied)
				}
				return seen
			}
			before := look()
			edit(wg, d, s, r, b)
			if slices.EqualFunc(before, all, func(a, b client.Object) bool {
				return cmp.Equal(specOf(a), specOf(b)) && cmp.Equal(a.GetLabels(), b.GetLabels())
			}) {
				t.Fatal("nothing was edited")
			}
			for _, o := range all {
				l.must(l.Update(t.Context(), o))
			}
			l.pass()
			if diff := cmp.Diff(before, look()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// No role of a binding can be changed.
func TestABindingToAnotherRoleIsMadeAnew(t *testing.T) {
	l, b := newLab(t, gatewayServer(nil)), &rbacv1.RoleBinding{}
	l.pass()
	l.get(parts, b)
	before := b.RoleRef
	b.RoleRef.Name = "another"
	l.must(l.Update(t.Context(), b))
	l.pass()
	l.get(parts, b)
	if diff := cmp.Diff(before, b.RoleRef); diff != "" {
		t.Error(diff)
	}
}

// Of a ServiceAccount nothing is decided: it pulls images as a user has it pull them.
func TestWhatOthersAddToTheAccountStays(t *testing.T) {
	l, a := newLab(t, gatewayServer(nil)), &corev1.ServiceAccount{}
	l.pass()
	l.get(parts, a)
	a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	delete(a.Annotations, offloadingv1beta1.RenderedHashAnnotation)
	l.must(l.Update(t.Context(), a))
	l.pass()
	l.get(parts, a)
	if len(a.ImagePullSecrets) != 1 || a.Annotations[offloadingv1beta1.RenderedHashAnnotation] == "" {
		t.Errorf("got %v, annotations %v", a.ImagePullSecrets, a.Annotations)
	}
}

func TestWhatDoesNotLetAGatewayRun(t *testing.T) {
	ours := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Data: data}
	}
	valid, err := NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	named := func(server *networkingv1beta1.GatewayServer) { server.Spec.SecretRef.Name = "mine" }
	for name, tc := range map[string]struct {
		change  func(*networkingv1beta1.GatewayServer)
		objects []client.Object
		reason  string
		message string
	}{
		"no such template": {func(s *networkingv1beta1.GatewayServer) { s.Spec.ServerTemplateRef.Name = "none" }, nil,
			networkingv1beta1.ReasonTemplateInvalid, "there is no WgGatewayServerTemplate liqo/none"},
		"a template of another kind": {func(s *networkingv1beta1.GatewayServer) {
			s.Spec.ServerTemplateRef = corev1.ObjectReference{Kind: "ConfigMap", APIVersion: "v1", Name: "wireguard-server"}
		}, nil, networkingv1beta1.ReasonTemplateInvalid, "not from a ConfigMap of v1"},
		"a template that gives too much": {func(s *networkingv1beta1.GatewayServer) { s.Spec.ServerTemplateRef.Name = "evil" }, []client.Object{
			&networkingv1beta1.WgGatewayServerTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "evil"}, Spec: networkingv1beta1.WgGatewayServerTemplateSpec{
				Template: runtime.RawExtension{Raw: []byte(`{"spec":{"deployment":{"spec":{"template":{"spec":{"hostNetwork":true}}}}}}`)}}}},
			networkingv1beta1.ReasonTemplateInvalid, "hostNetwork"},
		"no such Secret": {named, nil, networkingv1beta1.ReasonSecretInvalid, "waiting for Secret liqo-tenant-milan/mine"},
		"no keys in it": {named, []client.Object{ours("mine", map[string][]byte{networkingv1beta1.PublicKeyKey: valid[networkingv1beta1.PublicKeyKey]})},
			networkingv1beta1.ReasonSecretInvalid, "privateKey has 0 bytes"},
		"keys in it":                 {named, []client.Object{ours("mine", valid)}, networkingv1beta1.ReasonGatewayPodPending, "waiting for a pod"},
		"keys from before":           {nil, []client.Object{ours("milan-gw-keys", valid)}, networkingv1beta1.ReasonGatewayPodPending, "waiting for a pod"},
		"a Deployment of somebody":   {nil, []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "gw-milan"}}}, networkingv1beta1.ReasonGatewayNameTaken, "Deployment"},
		"the label of somebody else": {func(s *networkingv1beta1.GatewayServer) { s.Labels[corev1beta1.RemoteClusterIDLabel] = "rome" }, nil, networkingv1beta1.ReasonGatewayMisplaced, "correct the label"},
		"a pod and no endpoint":      {nil, []client.Object{gatewayPod("p", "10.244.1.7")}, networkingv1beta1.ReasonEndpointPending, "no node that has its port is ready"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, append(tc.objects, gatewayServer(tc.change))...)
			_, ready := l.pass()
			if ready.Status != metav1.ConditionFalse || ready.Reason != tc.reason || !strings.Contains(ready.Message, tc.message) {
				t.Errorf("got %+v", ready)
			}
		})
	}
}

// A gateway that runs goes on when its template does not fit any more, and nodes learn where it moved.
func TestAnInvalidTemplateLeavesWhatRuns(t *testing.T) {
	l := newLab(t, gatewayServer(nil), gatewayPod("first", "10.244.1.7"))
	l.pass()
	template := &networkingv1beta1.WgGatewayServerTemplate{}
	l.get(client.ObjectKey{Namespace: "liqo", Name: "wireguard-server"}, template)
	template.Spec.Template.Raw = []byte(`{"spec":{"unknown":1}}`)
	l.must(l.Update(t.Context(), template))
	l.must(l.Delete(t.Context(), gatewayPod("first", "")))
	l.must(l.Create(t.Context(), gatewayPod("second", "10.244.2.8")))
	server, ready := l.pass()
	if ready.Reason != networkingv1beta1.ReasonTemplateInvalid || *server.Status.InternalEndpoint.IP != "10.244.2.8" {
		t.Errorf("got %+v, at %v", ready, *server.Status.InternalEndpoint.IP)
	}
	l.get(parts, &appsv1.Deployment{})
	// Without a pod the last known address stays.
	l.must(l.Delete(t.Context(), gatewayPod("second", "")))
	if server, _ = l.pass(); *server.Status.InternalEndpoint.IP != "10.244.2.8" {
		t.Errorf("moved to %v", *server.Status.InternalEndpoint.IP)
	}
}

// Whatever is wrong with a gateway, its status does not name a pod that another one has taken the place of, whose address is anybody's next.
func TestNothingKeepsTheAddressOfAPodThatIsGone(t *testing.T) {
	for name, spoil := range map[string]func(*networkingv1beta1.GatewayServer){
		"its Secret is gone":           func(s *networkingv1beta1.GatewayServer) { s.Spec.SecretRef.Name = "none" },
		"its label is somebody else's": func(s *networkingv1beta1.GatewayServer) { s.Labels[corev1beta1.RemoteClusterIDLabel] = "rome" },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, gatewayServer(nil), gatewayPod("first", "10.244.1.7"))
			server, _ := l.pass()
			spoil(server)
			l.must(l.Update(t.Context(), server))
			l.must(l.Delete(t.Context(), gatewayPod("first", "")))
			l.must(l.Create(t.Context(), gatewayPod("second", "10.244.2.8")))
			if server, ready := l.pass(); ready.Status != metav1.ConditionFalse || *server.Status.InternalEndpoint.IP != "10.244.2.8" {
				t.Errorf("got %+v, at %v", ready, *server.Status.InternalEndpoint.IP)
			}
		})
	}
}

func TestAClientHasNoService(t *testing.T) {
	l := newLab(t, gatewayPod("p", "10.244.1.7"), &networkingv1beta1.GatewayClient{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "milan", UID: "u-1", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"}},
		Spec: networkingv1beta1.GatewayClientSpec{Endpoint: networkingv1beta1.ClientEndpoint{
			Addresses: []networkingv1beta1.Host{"192.0.2.1"}, Port: 51840, Protocol: corev1.ProtocolUDP}},
	})
	_, err := l.client.Reconcile(t.Context(), ctrl.Request{NamespacedName: of})
	l.must(err)
	gateway := &networkingv1beta1.GatewayClient{}
	l.get(of, gateway)
	l.get(parts, &appsv1.Deployment{})
	if !meta.IsStatusConditionTrue(gateway.Status.Conditions, corev1beta1.ConditionReady) || gateway.Status.ClientRef == nil {
		t.Errorf("got %+v", gateway.Status)
	}
	if err := l.Get(t.Context(), parts, &corev1.Service{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a Service that nobody needs: %v", err)
	}
}

func TestRightsGoWithTheirGateway(t *testing.T) {
	wg := &networkingv1beta1.WgGatewayClient{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "milan"}}
	foreign := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "liqo-gateway:other:milan"}}
	l := newLab(t, wg, foreign)
	name := bindingName(of)
	pass := func(name string) {
		t.Helper()
		_, err := l.rights.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
		l.must(err)
	}
	pass(name)
	binding := &rbacv1.ClusterRoleBinding{}
	l.get(client.ObjectKey{Name: name}, binding)
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: home, Name: "gw-milan"}}
	if diff := cmp.Diff(want, binding.Subjects); diff != "" || binding.RoleRef.Name != "liqo-gateway" {
		t.Errorf("bound %q: %s", binding.RoleRef.Name, diff)
	}
	binding.Subjects = nil
	l.must(l.Update(t.Context(), binding))
	pass(name)
	l.get(client.ObjectKey{Name: name}, binding)
	if diff := cmp.Diff(want, binding.Subjects); diff != "" {
		t.Error(diff)
	}
	l.must(l.Delete(t.Context(), wg))
	pass(name)
	if err := l.Get(t.Context(), client.ObjectKey{Name: name}, binding); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the rights stay: %v", err)
	}
	pass(foreign.Name)
	l.get(client.ObjectKey{Name: foreign.Name}, foreign)
}
