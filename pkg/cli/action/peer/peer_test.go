package peer_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/peer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/identity"
)

// controllers plays the controller managers of both clusters.
type controllers struct {
	t       *testing.T
	key     identity.KeyPair
	refusal string // reason for which the Tenant is refused
	denial  string // reason for which the slice is denied
	silent  string // kind that nobody reacts to
}

func (c *controllers) react(ctx context.Context, store client.Client, written client.Object) {
	c.t.Helper()
	check := func(err error) {
		if err != nil {
			c.t.Errorf("playing the controllers: %v", err)
		}
	}
	switch object := written.(type) {
	case *corev1.Secret:
		c.secret(object)
		check(store.Update(ctx, object))
	case *authv1beta1.Tenant:
		if c.silent == "Tenant" {
			return
		}
		condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: authv1beta1.ReasonReady}
		if c.refusal != "" {
			condition = metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: c.refusal, Message: "the provider said no"}
		} else {
			object.Status.TenantNamespace = object.Namespace
			object.Status.AuthParams = &authv1beta1.AuthParams{APIServer: "https://10.0.0.2:6443", SignedCRT: c.certificate()}
		}
		meta.SetStatusCondition(&object.Status.Conditions, condition)
		check(store.Status().Update(ctx, object))
	case *authv1beta1.Identity:
		object.Status.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig-" + object.Name}
		meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: authv1beta1.ReasonReady})
		check(store.Status().Update(ctx, object))
	case *authv1beta1.ResourceSlice:
		c.slice(ctx, store, object, check)
	}
}

func (c *controllers) secret(object *corev1.Secret) {
	if object.Data == nil {
		object.Data = map[string][]byte{}
	}
	switch object.Name {
	case authv1beta1.NonceSecret:
		object.Data[authv1beta1.NonceKey] = []byte("nonce of " + object.ResourceVersion)
	case authv1beta1.SignedNonceSecret:
		public, err := c.key.PublicPEM()
		if err != nil {
			c.t.Error(err)
		}
		object.Data[authv1beta1.SignedNonceKey] = []byte("signed " + string(object.Data[authv1beta1.NonceKey]))
		object.Data[authv1beta1.PublicKeyKey], object.Data[authv1beta1.CSRKey] = public, []byte("csr")
	}
}

func (c *controllers) slice(ctx context.Context, store client.Client, slice *authv1beta1.ResourceSlice, check func(error)) {
	status := authv1beta1.Accepted
	if c.denial != "" {
		status = authv1beta1.Denied
	}
	slice.Status.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	slice.Status.Conditions = []corev1beta1.Condition{
		{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted},
		{Type: authv1beta1.ResourcesCondition, Status: status, Reason: c.denial, Message: "too much"},
	}
	check(store.Status().Update(ctx, slice))
	if c.denial != "" || slice.Annotations[authv1beta1.CreateVirtualNodeAnnotation] != "true" {
		return
	}
	check(client.IgnoreAlreadyExists(store.Create(ctx, &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: slice.Name},
		Status:     offloadingv1beta1.VirtualNodeStatus{Summary: []corev1beta1.Condition{{Type: "Ready", Status: "True"}}},
	})))
	check(client.IgnoreAlreadyExists(store.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: slice.Name, Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})))
}

// certificate is for the consumer's key, signed by a CA that nobody else knows.
func (c *controllers) certificate() []byte {
	_, authority, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, c.key.Public(), authority)
	if err != nil {
		c.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

type pair struct {
	consumer, provider *fixture.Cluster
	recorder           *progress.Recorder
}

func newPair(t *testing.T, plays *controllers, change func(consumer, provider *fixture.Options)) pair {
	t.Helper()
	key, err := identity.NewKeyPair(identity.AlgorithmEd25519)
	if err != nil {
		t.Fatal(err)
	}
	plays.t, plays.key = t, key
	consumer := fixture.Options{Name: "kind-rome", ClusterID: "rome", React: plays.react}
	provider := fixture.Options{Name: "kind-milan", ClusterID: "milan", React: plays.react}
	if change != nil {
		change(&consumer, &provider)
	}
	return pair{fixture.New(t, consumer), fixture.New(t, provider), &progress.Recorder{}}
}

func (p pair) options() peer.Options {
	return peer.Options{Consumer: p.consumer.Cluster, Provider: p.provider.Cluster, Observer: p.recorder, Timeout: 20 * time.Second}
}

func TestPeeringIsToldStepByStep(t *testing.T) {
	p := newPair(t, &controllers{}, nil)
	report, err := peer.Run(context.Background(), p.options())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"done: rome can use resources of milan",
		"rome: done: Tenant namespace liqo-tenant-milan created",
		"milan: done: Tenant namespace liqo-tenant-rome created",
		"milan: done: Nonce received",
		"rome: done: Nonce signed",
		"milan: done: Tenant rome accepted",
		"rome: done: Identity controlplane-milan is usable",
		"rome: done: milan granted cpu 4, memory 8Gi",
		"rome: done: Virtual node milan runs",
		"rome: done: Node milan is ready",
	}
	if diff := cmp.Diff(want, p.recorder.Lines()); diff != "" {
		t.Error(diff)
	}
	if !report.Changed || report.VirtualNode != "milan" || report.ResourceSlice != "milan" || report.Identity != "controlplane-milan" || report.Tenant != "rome" {
		t.Errorf("report %+v", report)
	}
	identity := &authv1beta1.Identity{}
	if err := p.consumer.Client.Get(context.Background(), types.NamespacedName{Namespace: "liqo-tenant-milan", Name: "controlplane-milan"}, identity); err != nil {
		t.Fatal(err)
	}
	if identity.Spec.AuthParams.APIServer != "https://10.0.0.2:6443" || *identity.Spec.Namespace != "liqo-tenant-rome" {
		t.Errorf("identity %+v", identity.Spec)
	}
}

func TestPeeringAgainWritesNothing(t *testing.T) {
	p := newPair(t, &controllers{}, nil)
	if _, err := peer.Run(context.Background(), p.options()); err != nil {
		t.Fatal(err)
	}
	before := [2]int{len(p.consumer.Writes()), len(p.provider.Writes())}
	report, err := peer.Run(context.Background(), p.options())
	if err != nil {
		t.Fatal(err)
	}
	if after := [2]int{len(p.consumer.Writes()), len(p.provider.Writes())}; after != before || report.Changed {
		t.Errorf("the second run wrote: %v", append(p.consumer.Writes()[before[0]:], p.provider.Writes()[before[1]:]...))
	}
}

func TestPeeringContinuesAfterAnInterruptionAtAnyStep(t *testing.T) {
	for step := range 8 {
		p := newPair(t, &controllers{}, nil)
		ctx, interrupt := context.WithCancel(context.Background())
		o := p.options()
		o.Observer = &interrupter{Recorder: p.recorder, left: step, interrupt: interrupt}
		if _, err := peer.Run(ctx, o); failure.CodeOf(err) != failure.Interrupted {
			t.Errorf("step %d: interrupted with %v (code %d)", step, err, failure.CodeOf(err))
		}
		interrupt()
		if report, err := peer.Run(context.Background(), p.options()); err != nil || report.VirtualNode != "milan" {
			t.Errorf("step %d: the second run got %v", step, err)
		}
	}
}

// interrupter ends the context when a number of steps have begun.
type interrupter struct {
	*progress.Recorder
	left      int
	interrupt func()
}

func (i *interrupter) Begin(cluster, title string) progress.Task {
	if i.left == 0 {
		i.interrupt()
	}
	i.left--
	return i.Recorder.Begin(cluster, title)
}

func TestASpentNonceIsReplaced(t *testing.T) {
	spent := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "liqo-tenant-rome", Name: authv1beta1.NonceSecret, UID: "spent", Labels: map[string]string{authv1beta1.NonceLabel: "true"},
			Annotations: map[string]string{authv1beta1.NonceUsedByAnnotation: "uid of a Tenant that is gone"},
		},
		Data: map[string][]byte{authv1beta1.NonceKey: []byte("old")},
	}
	p := newPair(t, &controllers{}, func(_, provider *fixture.Options) { provider.Objects = []client.Object{spent} })
	if _, err := peer.Run(context.Background(), p.options()); err != nil {
		t.Fatal(err)
	}
	if writes := strings.Join(p.provider.Writes(), "\n"); !strings.Contains(writes, "delete Secret liqo-tenant-rome/liqo-nonce (cluster milan)\ncreate Secret liqo-tenant-rome/liqo-nonce (cluster milan)") {
		t.Errorf("the spent nonce was used again:\n%s", writes)
	}
}

func TestPeeringRefusals(t *testing.T) {
	const noRight = "ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs"
	cases := map[string]struct {
		plays  controllers
		change func(consumer, provider *fixture.Options)
		alter  func(*peer.Options)
		code   failure.Code
		want   string
	}{
		"the same cluster twice": {
			change: func(consumer, provider *fixture.Options) { provider.UID = consumer.Name },
			code:   failure.Precondition,
			want:   "the local and the remote cluster are the same one (kind-rome and kind-milan): name the other cluster with --remote-kubeconfig or --remote-context",
		},
		"equal cluster IDs": {
			change: func(_, provider *fixture.Options) { provider.ClusterID = "rome" },
			code:   failure.Precondition,
			want:   "both clusters have the cluster ID rome, and peers tell clusters apart by it: uninstall Liqo in one of them and install it again with another --cluster-id",
		},
		"not installed here": {
			change: func(consumer, _ *fixture.Options) { consumer.ClusterID = "" },
			code:   failure.Precondition,
			want:   "Liqo is not installed in namespace liqo (cluster kind-rome): install it with 'liqoctl install --context kind-rome', or say with -n or --remote-namespace where it is",
		},
		"not installed there": {
			change: func(_, provider *fixture.Options) { provider.ClusterID = "" },
			code:   failure.Precondition,
			want:   "Liqo is not installed in namespace liqo (cluster kind-milan): install it with 'liqoctl install --context kind-milan', or say with -n or --remote-namespace where it is",
		},
		"versions that do not fit": {
			change: func(_, provider *fixture.Options) { provider.Version = "v1.1.0" },
			code:   failure.Precondition,
			want:   "rome (v1.0.0) and milan (v1.1.0) cannot peer: peers must run the same minor version, and 1.0 is not 1.1: upgrade the older one with 'liqoctl install', or add --skip-validation to go on at your own risk",
		},
		"rights missing here": {
			change: func(consumer, _ *fixture.Options) {
				consumer.Missing = []string{"create namespaces", "create identities.authentication.liqo.io in namespace liqo-tenant-milan"}
			},
			code: failure.Precondition,
			want: "you are not allowed to: create namespaces; create identities.authentication.liqo.io in namespace liqo-tenant-milan (cluster rome): " + noRight,
		},
		"rights missing there": {
			change: func(_, provider *fixture.Options) {
				provider.Missing = []string{"create tenants.authentication.liqo.io in namespace liqo-tenant-rome"}
			},
			code: failure.Precondition,
			want: "you are not allowed to: create tenants.authentication.liqo.io in namespace liqo-tenant-rome (cluster milan): " + noRight,
		},
		"the node's name is taken": {
			change: func(consumer, _ *fixture.Options) {
				consumer.Objects = []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}}
			},
			code: failure.Precondition,
			want: "Node milan (cluster rome) is a real node, and the virtual node would have that name: peer with --create-virtual-node=false, and create one of another name",
		},
		"the Tenant is refused for good": {
			plays: controllers{refusal: authv1beta1.ReasonSignatureVerificationFailed},
			code:  failure.Failed,
			want:  "Tenant liqo-tenant-rome/rome (cluster milan) was refused: SignatureVerificationFailed: the provider said no: run the same command again, which starts a new handshake",
		},
		"the provider does not know its address": {
			plays: controllers{refusal: authv1beta1.ReasonAPIServerUnknown},
			code:  failure.Failed,
			want:  "Tenant liqo-tenant-rome/rome (cluster milan) was refused: APIServerAddressUnknown: the provider said no: tell the provider its address: liqoctl install --set apiServer.address=https://ADDRESS:PORT",
		},
		"the slice is denied": {
			plays: controllers{denial: authv1beta1.ReasonDefaultClassDisabled},
			code:  failure.Failed,
			want:  "the provider denied ResourceSlice milan: DefaultResourceSliceClassDisabled: too much: ask the provider's administrator for its class, and peer again with --resource-slice-class",
		},
		"nobody answers in time": {
			plays: controllers{silent: "Tenant"},
			alter: func(o *peer.Options) { o.Timeout = 5 * time.Second },
			code:  failure.Timeout,
			want:  "timed out waiting for Tenant liqo-tenant-rome/rome (cluster milan) to be accepted: the controller manager has not looked at it yet: run the same command again to continue, with a longer --timeout if it needs one",
		},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, &test.plays, test.change)
			o := p.options()
			if test.alter != nil {
				test.alter(&o)
			}
			_, err := peer.Run(context.Background(), o)
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" || failure.CodeOf(err) != test.code {
				t.Errorf("code %d, want %d\n%s", failure.CodeOf(err), test.code, diff)
			}
			if writes := append(p.consumer.Writes(), p.provider.Writes()...); test.code == failure.Precondition && len(writes) > 0 {
				t.Errorf("a precondition did not hold, and yet: %v", writes)
			}
		})
	}
}

func TestAuthenticatingOnly(t *testing.T) {
	p := newPair(t, &controllers{}, nil)
	o := p.options()
	o.NoResourceSlice, o.ProxyURL = true, ptr.To("http://proxy:8118")
	report, err := peer.Run(context.Background(), o)
	if err != nil || report.ResourceSlice != "" {
		t.Fatalf("%+v, %v", report, err)
	}
	tenant := &authv1beta1.Tenant{}
	key := types.NamespacedName{Namespace: "liqo-tenant-rome", Name: "rome"}
	if err := errors.Join(p.provider.Client.Get(context.Background(), key, tenant)); err != nil || *tenant.Spec.ProxyURL != "http://proxy:8118" {
		t.Errorf("tenant %+v, %v", tenant.Spec, err)
	}
	o.ProxyURL = nil
	if report, err := peer.Run(context.Background(), o); err != nil || report.Changed {
		t.Errorf("without saying anything of a proxy: %+v, %v", report, err)
	}
	o.ProxyURL = ptr.To("")
	if _, err := peer.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	tenant = &authv1beta1.Tenant{}
	if err := p.provider.Client.Get(context.Background(), key, tenant); err != nil || tenant.Spec.ProxyURL != nil {
		t.Errorf("the proxy was not taken back: %+v, %v", tenant.Spec, err)
	}
}

// A request stays until flags ask for another one: also for nothing in particular.
func TestARequestIsTakenBackByAFlagOnly(t *testing.T) {
	p := newPair(t, &controllers{}, nil)
	o := p.options()
	o.Class, o.Resources = "gold", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	slice := &authv1beta1.ResourceSlice{}
	run := func() {
		t.Helper()
		if _, err := peer.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		slice = &authv1beta1.ResourceSlice{}
		if err := p.consumer.Client.Get(t.Context(), types.NamespacedName{Namespace: "liqo-tenant-milan", Name: "milan"}, slice); err != nil {
			t.Fatal(err)
		}
	}
	run()
	o.Class, o.Resources = "", nil
	run()
	if slice.Spec.Class != "gold" || len(slice.Spec.Resources) != 1 {
		t.Errorf("without flags it became %+v", slice.Spec)
	}
	o.Class, o.Resources = "default", corev1.ResourceList{}
	run()
	if slice.Spec.Class != "default" || len(slice.Spec.Resources) != 0 {
		t.Errorf("with flags it stayed %+v", slice.Spec)
	}
}

// Who asks for more than a provider gives is told so, and goes on with that.
func TestLessThanAskedForIsSaid(t *testing.T) {
	p := newPair(t, &controllers{}, nil)
	o := p.options()
	o.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("2Gi"), "nvidia.com/gpu": resource.MustParse("1")}
	report, err := peer.Run(t.Context(), o)
	if err != nil || report.VirtualNode == "" {
		t.Fatalf("%v, %+v", err, report)
	}
	want := "rome: warned: milan granted cpu 4, memory 8Gi; less than asked for: cpu 4 of 16, nvidia.com/gpu 0 of 1"
	if lines := p.recorder.Lines(); !slices.Contains(lines, want) {
		t.Errorf("told %s", strings.Join(lines, "\n"))
	}
}
