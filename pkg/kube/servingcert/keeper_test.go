package servingcert

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

type cluster struct {
	client.WithWatch
	clock   *testingclock.FakeClock
	writes  atomic.Int64
	watches atomic.Int64
	fail    atomic.Pointer[string] // verb that fails
	before  func()                 // runs once before the next write
}

// IsWatchListSemanticsUnSupported tells that the fake API server streams no lists.
func (*cluster) IsWatchListSemanticsUnSupported() bool { return true }

func service(namespace string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "liqo-webhook"}}
}

func webhooks(labels map[string]string) []client.Object {
	meta := metav1.ObjectMeta{Name: "liqo-webhook", Labels: labels}
	return []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "a.liqo.io", ClientConfig: service("liqo")}, {Name: "foreign.io", ClientConfig: service("other")}}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "b.liqo.io", ClientConfig: service("liqo")}}},
	}
}

func ourLabels() map[string]string { return map[string]string{"liqo.io/webhook": "true"} }

func newCluster(objects ...client.Object) *cluster {
	c := &cluster{clock: testingclock.NewFakeClock(epoch)}
	write := func(verb string) error {
		if before := c.before; before != nil {
			c.before = nil
			before()
		}
		if fail := c.fail.Load(); fail != nil && *fail == verb {
			return errors.New("the API server is down")
		}
		c.writes.Add(1)
		return nil
	}
	c.WithWatch = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := write("create"); err != nil {
				return err
			}
			return w.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := write("update"); err != nil {
				return err
			}
			return w.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := write("patch"); err != nil {
				return err
			}
			return w.Patch(ctx, o, p, opts...)
		},
		Get: func(ctx context.Context, w client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if fail := c.fail.Load(); fail != nil && *fail == "get" {
				return errors.New("the API server is down")
			}
			return w.Get(ctx, k, o, opts...)
		},
		Watch: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			defer c.watches.Add(1) // once it is open: what is missed before does not come again, as it would from an API server
			return w.Watch(ctx, list, opts...)
		},
	}).Build()
	return c
}

// both are a Keeper and a Follower of its Secret.
type both struct {
	keeper *Keeper
	*Follower
}

func (c *cluster) both(t *testing.T) both {
	t.Helper()
	keeper, err := NewKeeper(Options{Client: c, Clock: c.clock, Namespace: "liqo", AuthorityName: "liqo-webhook-authority", SecretName: "liqo-webhook-certs",
		DNSNames: names, WebhookConfigurations: []string{"liqo-webhook"}})
	if err != nil {
		t.Fatal(err)
	}
	return both{keeper, NewFollower(c, client.ObjectKey{Namespace: "liqo", Name: "liqo-webhook-certs"}, c.clock)}
}

func (c *cluster) bundle(t *testing.T) []byte {
	t.Helper()
	v, m := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	for _, o := range []client.Object{v, m} {
		if err := c.Get(t.Context(), client.ObjectKey{Name: "liqo-webhook"}, o); err != nil {
			t.Fatal(err)
		}
	}
	if len(v.Webhooks[1].ClientConfig.CABundle) != 0 {
		t.Error("the webhook of another namespace was changed")
	}
	if !bytes.Equal(v.Webhooks[0].ClientConfig.CABundle, m.Webhooks[0].ClientConfig.CABundle) {
		t.Error("two bundles")
	}
	return v.Webhooks[0].ClientConfig.CABundle
}

// verify is what an API server does that trusts the bundle.
func verify(t *testing.T, m both, bundle []byte, now time.Time) {
	t.Helper()
	cert, err := m.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "liqo-webhook.liqo.svc", CurrentTime: now}); err != nil {
		t.Fatalf("an API server rejects us at %s: %v", now, err)
	}
}

func ensure(t *testing.T, m both) {
	t.Helper()
	for _, err := range []error{m.keeper.Ensure(t.Context()), m.Look(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Where API servers have to be told from others they say a token at the end of the path, the same to all replicas, until the authority
// changes; other paths stay.
func TestSecretPathsEndWithTheToken(t *testing.T) {
	paths := []string{"/validate/a", "/validate/ab", "/validate/a/of-an-earlier-authority"}
	objects := webhooks(ourLabels())
	validating := objects[0].(*admissionregistrationv1.ValidatingWebhookConfiguration)
	validating.Webhooks[0].ClientConfig.Service.Path = &paths[0]
	for _, path := range paths[1:] {
		hook := admissionregistrationv1.ValidatingWebhook{Name: "x.liqo.io", ClientConfig: service("liqo")}
		hook.ClientConfig.Service.Path = &path
		validating.Webhooks = append(validating.Webhooks, hook)
	}
	c := newCluster(objects...)
	tokens := map[string]bool{}
	for range 2 {
		m := c.both(t)
		m.keeper.options.SecretPaths = []string{"/validate/a"}
		if m.Token() != "" {
			t.Error("there is a token before there is a key")
		}
		ensure(t, m)
		tokens[m.Token()] = true
		live := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "liqo-webhook"}, live); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range live.Webhooks {
			got = append(got, ptr.Deref(live.Webhooks[i].ClientConfig.Service.Path, ""))
		}
		want := []string{"/validate/a/" + m.Token(), "", "/validate/ab", "/validate/a/" + m.Token()}
		if diff := cmp.Diff(want, got); diff != "" || len(m.Token()) != 32 {
			t.Errorf("token %q: %s", m.Token(), diff)
		}
		c.bundle(t)
	}
	if len(tokens) != 1 {
		t.Errorf("two replicas have %d tokens", len(tokens))
	}
	other, err := issued(t, Material{}, epoch, Plan{Authority: true, Serving: true}).token()
	if err != nil || tokens[other] {
		t.Errorf("another authority gives the same token, or none: %v", err)
	}
}

func TestFirstStartAndRestart(t *testing.T) {
	c := newCluster(webhooks(ourLabels())...)
	a := c.both(t)
	if _, err := a.GetCertificate(nil); err == nil || a.Ready(nil) == nil || a.keeper.Ready(nil) == nil || a.NeedLeaderElection() || a.keeper.NeedLeaderElection() {
		t.Error("ready before anything was done")
	}
	ensure(t, a)
	verify(t, a, c.bundle(t), epoch)
	if err := errors.Join(a.Ready(nil), a.keeper.Ready(nil)); err != nil {
		t.Error(err)
	}
	for _, s := range []*corev1.Secret{c.secret("liqo-webhook-certs"), c.secret("liqo-webhook-authority")} {
		if s.Type != corev1.SecretTypeTLS || s.Annotations[ExpireTimeAnnotation] != "2027-01-01T00:00:00Z" || s.Labels["liqo.io/webhook"] != "true" {
			t.Errorf("Secret %v of type %s", s.ObjectMeta, s.Type)
		}
	}
	want := []string{AuthoritiesKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey, TokenKey}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(c.secret("liqo-webhook-certs").Data))); diff != "" {
		t.Errorf("what controller managers read: %s", diff)
	}
	before := c.writes.Load()
	b := c.both(t)
	ensure(t, b)
	ensure(t, a)
	verify(t, b, c.bundle(t), epoch)
	if n := c.writes.Load() - before; n != 0 {
		t.Errorf("%d writes by a restart", n)
	}
}

func TestTwoReplicasRace(t *testing.T) {
	for sentence, start := range map[string]time.Duration{"creating the Secret": 0, "renewing the certificate": 250 * 24 * time.Hour} {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(webhooks(ourLabels())...)
			a, b := c.both(t), c.both(t)
			if start != 0 {
				ensure(t, a)
				c.clock.SetTime(epoch.Add(start))
			}
			c.before = func() { ensure(t, b) }
			ensure(t, a)
			first, _ := a.GetCertificate(nil)
			second, _ := b.GetCertificate(nil)
			if !bytes.Equal(first.Certificate[0], second.Certificate[0]) {
				t.Error("the replicas serve different certificates")
			}
			verify(t, a, c.bundle(t), c.clock.Now())
		})
	}
}

// TestRotationNeverRejects (E2): over 12 years, whatever replica and API server is behind, the served certificate is trusted.
func TestRotationNeverRejects(t *testing.T) {
	c := newCluster(webhooks(ourLabels())...)
	a, b := c.both(t), c.both(t)
	ensure(t, a)
	ensure(t, b)
	authorities := map[string]bool{}
	steps := []time.Duration{time.Minute, 3 * time.Minute, 11 * time.Minute, 5 * time.Hour, 20 * 24 * time.Hour, time.Minute, 60 * 24 * time.Hour}
	for i := 0; c.clock.Since(epoch) < 12*365*24*time.Hour; i++ {
		c.clock.Step(steps[i%len(steps)])
		now, old := c.clock.Now(), c.bundle(t)
		verify(t, a, old, now)
		verify(t, b, old, now)
		ensure(t, a)
		verify(t, a, old, now)
		verify(t, b, c.bundle(t), now)
		ensure(t, b)
		verify(t, b, old, now)
		parsed := Parse(c.secret("liqo-webhook-authority").Data)
		authorities[parsed.Authorities[0].SerialNumber.String()] = true
		if len(parsed.Authorities) > 2 {
			t.Fatalf("%d authorities at %s", len(parsed.Authorities), now)
		}
		a, b = b, a
	}
	if len(authorities) < 3 {
		t.Errorf("only %d authorities in 12 years", len(authorities))
	}
}

func TestRepairs(t *testing.T) {
	changed := func(name string, change func(map[string][]byte)) func(*cluster) error {
		return func(c *cluster) error {
			s := c.secret(name)
			change(s.Data)
			return c.Update(context.Background(), s)
		}
	}
	for sentence, damage := range map[string]func(*cluster) error{
		"the Secret is deleted":             func(c *cluster) error { return c.Delete(context.Background(), c.secret("liqo-webhook-certs")) },
		"the Secret is emptied":             changed("liqo-webhook-certs", func(d map[string][]byte) { clear(d) }),
		"the key is replaced":               changed("liqo-webhook-certs", func(d map[string][]byte) { d[corev1.TLSPrivateKeyKey] = []byte("x") }),
		"the token is replaced":             changed("liqo-webhook-certs", func(d map[string][]byte) { d[TokenKey] = []byte("x") }),
		"the authority's Secret is deleted": func(c *cluster) error { return c.Delete(context.Background(), c.secret("liqo-webhook-authority")) },
		"the authority's Secret is emptied": changed("liqo-webhook-authority", func(d map[string][]byte) { clear(d) }),
		"the authority's key is replaced":   changed("liqo-webhook-authority", func(d map[string][]byte) { d[AuthorityPrivateKey] = []byte("x") }),
		"both Secrets are deleted": func(c *cluster) error {
			return errors.Join(c.Delete(context.Background(), c.secret("liqo-webhook-certs")), c.Delete(context.Background(), c.secret("liqo-webhook-authority")))
		},
		"a chart wiped the bundle": func(c *cluster) error {
			v := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := c.Get(context.Background(), client.ObjectKey{Name: "liqo-webhook"}, v); err != nil {
				return err
			}
			v.Webhooks[0].ClientConfig.CABundle = nil
			return c.Update(context.Background(), v)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(webhooks(ourLabels())...)
			m := c.both(t)
			ensure(t, m)
			if err := damage(c); err != nil {
				t.Fatal(err)
			}
			// What is served meanwhile is trusted by those who heard of the repair first, unless nobody can know any more what was.
			if err := m.keeper.Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			if sentence != "both Secrets are deleted" {
				verify(t, m, c.bundle(t), epoch)
			}
			ensure(t, m)
			verify(t, m, c.bundle(t), epoch)
			if served := c.secret("liqo-webhook-certs").Data; string(served[TokenKey]) != m.Token() || served[AuthorityPrivateKey] != nil {
				t.Error("the token is not back, or there is more than it")
			}
		})
	}
}

func (c *cluster) secret(name string) *corev1.Secret {
	s := &corev1.Secret{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "liqo", Name: name}, s); err != nil {
		panic(err)
	}
	return s
}

// The releases before had everything in the Secret that controller managers serve from. What these serve stays trusted, the key that they read
// is followed by another one in the usual order, and leaves; the same after a way back.
func TestTheKeyIsTakenFromWhereControllerManagersReadIt(t *testing.T) {
	before := issued(t, Material{}, epoch, Plan{Authority: true, Serving: true})
	data, err := before.Data()
	if err != nil {
		t.Fatal(err)
	}
	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-webhook-certs", Labels: ourLabels()}, Type: corev1.SecretTypeTLS, Data: data}
	objects := webhooks(ourLabels())
	objects[0].(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks[0].ClientConfig.CABundle = before.Bundle()
	c := newCluster(append(objects, old)...)
	m := c.both(t)
	if err := m.Look(t.Context()); err != nil { // it is upgraded before the Keeper runs
		t.Fatal(err)
	}
	verify(t, m, before.Bundle(), epoch)
	for step, after := range []time.Duration{0, Settle, Overlap} {
		if step == 1 { // back, and forth again
			back := c.secret("liqo-webhook-certs")
			back.Data = data
			if err := c.Update(t.Context(), back); err != nil {
				t.Fatal(err)
			}
			ensure(t, m)
		}
		c.clock.Step(after)
		ensure(t, m)
		verify(t, m, c.bundle(t), c.clock.Now())
		now, _ := m.GetCertificate(nil)
		if same := bytes.Equal(now.Certificate[0], before.Serving.Certificate[0]); same != (step == 0) {
			t.Errorf("step %d: the certificate is that from before: %t", step, same)
		}
		if known := bytes.Contains(c.bundle(t), before.Bundle()); known != (step < 2) {
			t.Errorf("step %d: the authority from before is trusted: %t", step, known)
		}
		served, authority := c.secret("liqo-webhook-certs").Data, Parse(c.secret("liqo-webhook-authority").Data)
		if served[AuthorityPrivateKey] != nil || authority.AuthorityKey == nil || before.AuthorityKey.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(authority.AuthorityKey.Public()) {
			t.Errorf("step %d: the key that controller managers read is there, or issues", step)
		}
	}
}

func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	foreign := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: name}, Data: map[string][]byte{"tls.crt": []byte("mine")}}
	}
	for sentence, c := range map[string]struct {
		objects []client.Object
		want    string
		served  bool
	}{
		"a Secret with data of another":  {append(webhooks(ourLabels()), foreign("liqo-webhook-certs")), "holds data that Liqo did not put there", false},
		"the same for the authority":     {append(webhooks(ourLabels()), foreign("liqo-webhook-authority")), "holds data that Liqo did not put there", false},
		"configurations without label":   {webhooks(nil), "does not carry the labels", true},
		"configurations that are absent": {nil, "there is no webhook configuration", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			cl := newCluster(c.objects...)
			m := cl.both(t)
			err := m.keeper.Ensure(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if err := m.keeper.Ready(nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ready: %v", err)
			}
			_ = m.Look(t.Context())
			if _, err := m.GetCertificate(nil); (err == nil) != c.served {
				t.Errorf("served: %v", err)
			}
		})
	}
	empty := &corev1.Secret{ObjectMeta: foreign("liqo-webhook-certs").ObjectMeta, Data: map[string][]byte{"tls.crt": {}}}
	ensure(t, newCluster(append(webhooks(ourLabels()), empty)...).both(t))
}

func TestAPIServerDown(t *testing.T) {
	for _, verb := range []string{"get", "create", "patch", "update"} {
		t.Run(verb, func(t *testing.T) {
			c := newCluster(webhooks(ourLabels())...)
			m := c.both(t)
			if verb == "update" {
				ensure(t, m)
				c.clock.Step(250 * 24 * time.Hour)
			}
			c.fail.Store(&verb)
			if m.keeper.Ensure(t.Context()) == nil {
				t.Error("no error")
			}
			_ = m.Look(t.Context())
			if (m.Ready(nil) == nil) != (verb == "update" || verb == "patch") || (m.keeper.Ready(nil) == nil) != (verb == "update") {
				t.Errorf("ready: %v, %v", m.Ready(nil), m.keeper.Ready(nil))
			}
			c.fail.Store(nil)
			ensure(t, m)
			c.clock.Step(400 * 24 * time.Hour)
			if m.Ready(nil) == nil || m.keeper.Ready(nil) == nil {
				t.Error("ready with an expired certificate")
			}
		})
	}
}

func awaited(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !reached() {
		select {
		case <-deadline:
			t.Fatalf("waited for %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestStart(t *testing.T) {
	c := newCluster(webhooks(ourLabels())...)
	m := c.both(t)
	down := "get"
	c.fail.Store(&down)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- m.keeper.Start(ctx) }()
	go func() { done <- m.Start(ctx) }()
	wait := func(what string, reached func() bool) { t.Helper(); awaited(t, what, reached) }
	wait("the first failure", c.clock.HasWaiters)
	c.fail.Store(nil)
	// A pass that a change brought about may have begun before the clock goes on: it is pushed until it is seen to be late enough.
	wait("readiness", func() bool { c.clock.Step(firstBackOff); return m.keeper.Ready(nil) == nil && m.Ready(nil) == nil })
	first, _ := m.GetCertificate(nil)
	wait("the next look", c.clock.HasWaiters)
	c.clock.Step(250 * 24 * time.Hour)
	wait("a renewed certificate", func() bool {
		c.clock.Step(DefaultInterval)
		now, _ := m.GetCertificate(nil)
		return now != first && now.Leaf.NotAfter.After(first.Leaf.NotAfter)
	})
	cancel()
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
}

// What somebody damages is repaired at once, without asking all the time whether it is: the clock stands still.
func TestWhatIsDamagedIsRepairedAtOnce(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "liqo-webhook"}
	emptied := client.RawPatch(types.MergePatchType, []byte(`{"data":null}`))
	for what, damage := range map[string]func(ctx context.Context, c client.Client) error{
		"the Secret is deleted": func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-webhook-certs"}})
		},
		"the Secret is emptied": func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-webhook-certs"}}, emptied)
		},
		"the validating configuration is made anew": func(ctx context.Context, c client.Client) error {
			return errors.Join(c.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}), c.Create(ctx, webhooks(ourLabels())[0]))
		},
		"the mutating configuration is made anew": func(ctx context.Context, c client.Client) error {
			return errors.Join(c.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}), c.Create(ctx, webhooks(ourLabels())[1]))
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(webhooks(ourLabels())...)
			m := c.both(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- m.keeper.Start(ctx) }()
			whole := func() bool {
				secret, v, w := &corev1.Secret{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
				err := errors.Join(c.Get(ctx, client.ObjectKey{Namespace: "liqo", Name: "liqo-webhook-certs"}, secret),
					c.Get(ctx, client.ObjectKey{Name: "liqo-webhook"}, v), c.Get(ctx, client.ObjectKey{Name: "liqo-webhook"}, w))
				bundle := secret.Data[AuthoritiesKey]
				return err == nil && len(bundle) > 0 && bytes.Equal(bundle, v.Webhooks[0].ClientConfig.CABundle) && bytes.Equal(bundle, w.Webhooks[0].ClientConfig.CABundle)
			}
			awaited(t, "everything to be in place", func() bool { return m.keeper.Ready(nil) == nil && whole() && c.watches.Load() == 4 })
			if err := damage(ctx, c.WithWatch); err != nil {
				t.Fatal(err)
			}
			awaited(t, "the repair", whole)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	cl := newCluster()
	for sentence, change := range map[string]func(*Options){
		"no client":        func(o *Options) { o.Client = nil },
		"no namespace":     func(o *Options) { o.Namespace = "" },
		"no Secret":        func(o *Options) { o.SecretName = "" },
		"no authority":     func(o *Options) { o.AuthorityName = "" },
		"no names":         func(o *Options) { o.DNSNames = nil },
		"an empty name":    func(o *Options) { o.DNSNames = []string{""} },
		"an empty webhook": func(o *Options) { o.WebhookConfigurations = []string{""} },
	} {
		o := Options{Client: cl, Namespace: "liqo", AuthorityName: "a", SecretName: "s", DNSNames: names}
		change(&o)
		if _, err := NewKeeper(o); err == nil {
			t.Errorf("%s: accepted", sentence)
		}
	}
	m, err := NewKeeper(Options{Client: cl, Namespace: "liqo", AuthorityName: "a", SecretName: "s", DNSNames: names})
	if err != nil || m.options.Interval != DefaultInterval || m.options.Clock == nil {
		t.Errorf("defaults: %v", err)
	}
}
