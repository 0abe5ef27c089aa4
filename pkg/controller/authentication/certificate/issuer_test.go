package certificate

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

const us = "system:serviceaccount:liqo:liqo-controller-manager"

// bench is an issuer over a fake API server that records users as the real one does.
type bench struct {
	*Issuer
	client client.Client
	clock  *testingclock.FakeClock
	ca     *testca.CA
	tenant *authv1beta1.Tenant
	writes int
	tamper func(*certificatesv1.CertificateSigningRequest)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{clock: testingclock.NewFakeClock(time.Unix(1_000_000, 0)), ca: testca.New(t)}
	b.tenant = &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "rome", UID: "t1"}}
	b.client = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			switch o := object.(type) {
			case *authenticationv1.SelfSubjectReview:
				o.Status.UserInfo.Username = us
				return nil
			case *certificatesv1.CertificateSigningRequest:
				o.Spec.Username = us
				o.CreationTimestamp = metav1.NewTime(b.clock.Now())
				if b.tamper != nil {
					b.tamper(o)
				}
			}
			b.writes++
			return c.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			b.writes++
			return c.Update(ctx, object, options...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, subresource string, object client.Object, _ ...client.SubResourceUpdateOption) error {
			if subresource != "approval" && subresource != "status" {
				t.Errorf("wrote the subresource %s", subresource)
			}
			return c.SubResource("status").Update(ctx, object)
		},
	}).Build()
	b.Issuer = &Issuer{
		Secrets: secrets.Store{Client: b.client, Reader: b.client}, Client: b.client, Reader: b.client, Clock: b.clock, Lifetime: time.Hour,
	}
	return b
}

func (b *bench) request(key identity.KeyPair) Request {
	return Request{
		Namespace: "liqo-tenant-rome", Record: TenantRecord(), RemoteID: "rome",
		CSR: b.ca.CSR(key, identity.TenantSubject("rome")), Want: identity.TenantExpectation("rome"), Owner: b.tenant,
	}
}

func (b *bench) requests(t *testing.T) []certificatesv1.CertificateSigningRequest {
	t.Helper()
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := b.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// sign plays the cluster's signer for all approved requests.
func (b *bench) sign(t *testing.T, with func(csr []byte) []byte) {
	t.Helper()
	for _, csr := range b.requests(t) {
		if stateOf(&csr, b.clock.Now()) == stateNew {
			t.Fatal("a request was not approved")
		}
		csr.Status.Certificate = with(csr.Spec.Request)
		if err := b.client.Status().Update(t.Context(), &csr); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) good(csr []byte) []byte { return b.ca.Sign(csr, b.clock.Now(), time.Hour) }

func wantReason(t *testing.T, err error, reason string) {
	t.Helper()
	if err == nil || reconcile.ReasonOf(err) != reason {
		t.Fatalf("got %v, want the reason %s", err, reason)
	}
}

func TestIssueAndIssueAgain(t *testing.T) {
	b := newBench(t)
	key := b.ca.Key()
	r := b.request(key)
	_, err := b.Issue(t.Context(), r)
	wantReason(t, err, authv1beta1.ReasonCertificatePending)
	spec := b.requests(t)[0].Spec
	if *spec.ExpirationSeconds != 3600 || spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		t.Errorf("asked for %+v", spec)
	}
	_, err = b.Issue(t.Context(), r)
	wantReason(t, err, authv1beta1.ReasonCertificatePending)
	b.sign(t, b.good)
	first, err := b.Issue(t.Context(), r)
	if err != nil || !first.Fresh || !first.RenewAt.Equal(b.clock.Now().Add(40*time.Minute)) {
		t.Fatalf("got %+v, %v", first, err)
	}
	if left := b.requests(t); len(left) != 0 {
		t.Errorf("%d requests are left", len(left))
	}
	writes := b.writes
	again, err := b.Issue(t.Context(), r)
	if err != nil || again.Fresh || string(again.PEM) != string(first.PEM) || b.writes != writes {
		t.Errorf("the second time gives %+v, %v after %d writes", again, err, b.writes-writes)
	}
	b.clock.Step(40 * time.Minute)
	late := r
	late.Late = true
	if kept, err := b.Issue(t.Context(), late); err != nil || string(kept.PEM) != string(first.PEM) {
		t.Errorf("a certificate that the consumer renews itself was replaced at two thirds: %v", err)
	}
	_, err = b.Issue(t.Context(), r)
	wantReason(t, err, authv1beta1.ReasonCertificatePending)
	if !Covered(err, first.PEM, r.CSR, r.Want.Subject, b.clock.Now()) {
		t.Error("the old certificate does not cover the wait for the new one")
	}
	b.sign(t, b.good)
	if second, err := b.Issue(t.Context(), r); err != nil || string(second.PEM) == string(first.PEM) {
		t.Errorf("at two thirds of its life the certificate stays: %v", err)
	}
	_, err = b.Issue(t.Context(), b.request(b.ca.Key()))
	wantReason(t, err, authv1beta1.ReasonCertificatePending)
}

func TestWrongCSRsNeverReachTheAPIServer(t *testing.T) {
	b := newBench(t)
	key := b.ca.Key()
	for name, subject := range map[string]identity.Subject{
		"more groups (V1)":       {CommonName: identity.TenantUser("rome"), Organizations: []string{identity.TenantsGroup, "system:masters"}},
		"no group (V2)":          {CommonName: identity.TenantUser("rome")},
		"another tenant":         identity.TenantSubject("turin"),
		"a slice's user":         identity.SliceSubject("rome", "s"),
		"an administrator":       {CommonName: "admin", Organizations: []string{"system:masters"}},
		"a node of this cluster": {CommonName: "system:node:a", Organizations: []string{"system:nodes"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.request(key)
			r.CSR = b.ca.CSR(key, subject)
			_, err := b.Issue(t.Context(), r)
			wantReason(t, err, authv1beta1.ReasonInvalidCSR)
			if reconcile.Classify(err) != reconcile.Terminal || b.writes != 0 {
				t.Errorf("class %s after %d writes", reconcile.Classify(err), b.writes)
			}
		})
	}
}

func TestOnlyOurOwnUnchangedRequestIsApproved(t *testing.T) {
	for name, tamper := range map[string]func(*bench, *certificatesv1.CertificateSigningRequest){
		"made by somebody else": func(_ *bench, o *certificatesv1.CertificateSigningRequest) { o.Spec.Username = "mallory" },
		"another signer":        func(_ *bench, o *certificatesv1.CertificateSigningRequest) { o.Spec.SignerName = "x/y" },
		"more usages": func(_ *bench, o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Usages = append(o.Spec.Usages, "any")
		},
		"a longer life":  func(_ *bench, o *certificatesv1.CertificateSigningRequest) { *o.Spec.ExpirationSeconds *= 2 },
		"no end of life": func(_ *bench, o *certificatesv1.CertificateSigningRequest) { o.Spec.ExpirationSeconds = nil },
		"another request": func(b *bench, o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Request = b.ca.CSR(b.ca.Key(), identity.TenantSubject("rome"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.tamper = func(o *certificatesv1.CertificateSigningRequest) { tamper(b, o) }
			_, err := b.Issue(t.Context(), b.request(b.ca.Key()))
			wantReason(t, err, authv1beta1.ReasonAuthParamsFailed)
			if len(b.requests(t)[0].Status.Conditions) != 0 {
				t.Error("it was approved")
			}
		})
	}
}

func TestSignersThatMisbehave(t *testing.T) {
	b := newBench(t)
	r := b.request(b.ca.Key())
	_, err := b.Issue(t.Context(), r)
	wantReason(t, err, authv1beta1.ReasonCertificatePending)
	b.clock.Step(2 * time.Minute)
	_, err = b.Issue(t.Context(), r)
	if wantReason(t, err, authv1beta1.ReasonCertificatePending); !strings.Contains(err.Error(), "kube-controller-manager") {
		t.Errorf("a signer that does not work is not named: %v", err)
	}
	b.sign(t, func([]byte) []byte { return b.good(b.request(b.ca.Key()).CSR) })
	_, err = b.Issue(t.Context(), r)
	wantReason(t, err, authv1beta1.ReasonAuthParamsFailed)
	if _, err = b.Issue(t.Context(), r); reconcile.ReasonOf(err) != authv1beta1.ReasonCertificatePending {
		t.Errorf("after a wrong certificate nothing is asked for: %v", err)
	}
	denied := b.requests(t)[0]
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue}}
	if err := b.client.Status().Update(t.Context(), &denied); err != nil {
		t.Fatal(err)
	}
	_, err = b.Issue(t.Context(), r)
	wantReason(t, err, authv1beta1.ReasonAuthParamsFailed)
}

// C2: a record goes with its owner. One of an earlier owner of the name would go with that one, and the certificate be issued again.
func TestC2RecordOfAnEarlierOwner(t *testing.T) {
	for name, key := range map[string]func(b *bench, before identity.KeyPair) identity.KeyPair{
		"the same key": func(_ *bench, before identity.KeyPair) identity.KeyPair { return before },
		"another key":  func(b *bench, _ identity.KeyPair) identity.KeyPair { return b.ca.Key() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			issue := func(r Request) {
				t.Helper()
				if _, err := b.Issue(t.Context(), r); err != nil {
					wantReason(t, err, authv1beta1.ReasonCertificatePending)
					b.sign(t, b.good)
					if _, err = b.Issue(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := b.ca.Key()
			issue(b.request(before))
			again := b.tenant.DeepCopy()
			again.UID = "again"
			r := b.request(key(b, before))
			r.Owner = again
			issue(r)
			record := &corev1.Secret{}
			if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: r.Namespace, Name: r.Record}, record); err != nil {
				t.Fatal(err)
			}
			if owners := record.OwnerReferences; len(owners) != 1 || owners[0].UID != "again" {
				t.Errorf("the record is owned by %v", owners)
			}
			writes := b.writes
			if issue(r); b.writes != writes {
				t.Error("the second time writes")
			}
		})
	}
}

func TestForeignRecordIsNotTouched(t *testing.T) {
	b := newBench(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: TenantRecord()}}
	if err := b.client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	_, err := b.Issue(t.Context(), b.request(b.ca.Key()))
	wantReason(t, err, authv1beta1.ReasonNotOurs)
}

func TestNames(t *testing.T) {
	if got := TenantRecord(); got != "liqo-remote-certificate-tenant" {
		t.Error(got)
	}
	if got := SliceRecord(strings.Repeat("x", 250)); len(got) > maxName {
		t.Errorf("%d characters", len(got))
	}
	one, two := Request{Namespace: "a", Record: "b-c"}, Request{Namespace: "a-b", Record: "c"}
	if requestName(one) == requestName(two) {
		t.Error("two requests share a name")
	}
}

// C9: when a consumer asked last is recorded with the certificate that it got, by our clock; one that we make for the same request by
// ourselves changes nothing of it.
func TestTheRecordSaysWhenTheConsumerAsked(t *testing.T) {
	b := newBench(t)
	key := b.ca.Key()
	r := b.request(key)
	first := b.issued(t, r)
	start := b.clock.Now()
	want := Demand{At: start.UTC(), Until: start.Add(time.Hour).UTC()}
	if first.Demand != want {
		t.Fatalf("recorded %+v, want %+v", first.Demand, want)
	}
	b.clock.Step(2 * time.Hour)
	if again := b.issued(t, r); !again.Fresh || again.Demand != want {
		t.Errorf("made anew for the same request: %+v, want %+v", again, want)
	}
	if kept, err := b.Issue(t.Context(), r); err != nil || kept.Fresh || kept.Demand != want {
		t.Errorf("read again: %+v, %v", kept, err)
	}
	next := b.issued(t, b.request(b.ca.Key()))
	if moved := (Demand{At: b.clock.Now().UTC(), Until: b.clock.Now().Add(time.Hour).UTC()}); next.Demand != moved {
		t.Errorf("asked again: %+v, want %+v", next.Demand, moved)
	}
	// A record of an earlier release says nothing, until we make a certificate for it.
	record, err := b.Secrets.Get(t.Context(), r.Namespace, r.Record)
	if err != nil {
		t.Fatal(err)
	}
	delete(record.Data, authv1beta1.RequestedAtKey)
	if err := b.Secrets.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	older := r
	older.CSR = record.Data[authv1beta1.CSRKey]
	if silent, err := b.Issue(t.Context(), older); err != nil || silent.Demand != (Demand{}) {
		t.Errorf("an earlier release's record: %+v, %v", silent, err)
	}
	b.clock.Step(2 * time.Hour)
	if found := b.issued(t, older); !found.Demand.At.Equal(b.clock.Now()) {
		t.Errorf("it is heard of since %s, want now", found.Demand.At)
	}
}

// issued has a certificate made for a request that none is recorded for.
func (b *bench) issued(t *testing.T, r Request) Certificate {
	t.Helper()
	for range 2 {
		if _, err := b.Issue(t.Context(), r); err == nil {
			t.Fatal("it is there before the signer has signed")
		}
	}
	b.sign(t, b.good)
	issued, err := b.Issue(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return issued
}
