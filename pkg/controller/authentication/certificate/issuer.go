package certificate

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=get;create;delete
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests/approval,verbs=update
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=signers,resourceNames=kubernetes.io/kube-apiserver-client,verbs=approve

const (
	// NamePrefix starts the names of our CertificateSigningRequests.
	NamePrefix = "liqo-identity-"
	// DefaultLifetime of a certificate.
	DefaultLifetime = 24 * time.Hour
	// MinLifetime is the shortest lifetime that the API server lets one ask for.
	MinLifetime = 10 * time.Minute

	pollInterval = 500 * time.Millisecond
	patience     = time.Minute
)

// Issuer issues certificates. Its fields are set before use and not changed afterwards.
type Issuer struct {
	// Secrets keeps the records.
	Secrets secrets.Store
	// Client writes the requests.
	Client client.Client
	// Reader reads the requests live: they are in no cache.
	Reader client.Reader
	// Clock tells when a certificate needs renewal.
	Clock clock.PassiveClock
	// Lifetime of the certificates; zero means DefaultLifetime.
	Lifetime time.Duration
	// Username is who we are at the API server; empty means that it is asked.
	Username string

	mu      sync.Mutex
	budgets map[string]*rate.Limiter // by consumer
}

// Request is one certificate to issue.
type Request struct {
	// Namespace of the record.
	Namespace string
	// Record is the name of the Secret that records the certificate; see TenantRecord, SliceRecord and RenewRecord.
	Record string
	// RemoteID is the consumer.
	RemoteID string
	// CSR as the consumer sent it.
	CSR []byte
	// Choose, if set, says which request is signed instead of CSR, given the one that was signed last; nil if there is none.
	Choose func(recorded []byte) ([]byte, error)
	// Want is the only request that is accepted.
	Want identity.Expectation
	// Owner of the record.
	Owner client.Object
	// Late leaves it to the consumer to ask again, with a new key, when two thirds of the certificate's life have passed;
	// only consumers that did not by nine tenths get a new certificate for the old key.
	Late bool
}

// Certificate is an issued certificate.
type Certificate struct {
	// PEM of the certificate.
	PEM []byte
	// RenewAt is when it should be replaced.
	RenewAt time.Time
	// Fresh says that it was issued by this call.
	Fresh bool
	// Demand of the consumer that the certificate answers, now or earlier.
	Demand Demand
}

// Issue returns the certificate for a request. A CSR that is not exactly the expected one is a terminal error; while the
// signer works the error is a wait.
func (i *Issuer) Issue(ctx context.Context, r Request) (Certificate, error) {
	record, err := i.recordOf(ctx, r)
	if err != nil {
		return Certificate{}, err
	}
	if r.Choose != nil {
		if r.CSR, err = r.Choose(signedLast(record)); err != nil {
			return Certificate{}, err
		}
	}
	if err := identity.CheckCSR(r.CSR, r.Want); err != nil {
		return Certificate{}, reconcile.Terminate(authv1beta1.ReasonInvalidCSR, err)
	}
	public, err := identity.RequestKey(r.CSR)
	if err != nil {
		return Certificate{}, reconcile.Terminate(authv1beta1.ReasonInvalidCSR, err)
	}
	if certificate, ok := i.recorded(record, r, public); ok {
		return certificate, i.keep(ctx, record, r, record.Data)
	}
	issued, name, err := i.sign(ctx, r, public)
	if err != nil {
		return Certificate{}, err
	}
	demand, err := nextDemand(record, r.CSR, issued, i.Clock.Now())
	if err != nil {
		return Certificate{}, err
	}
	data := map[string][]byte{authv1beta1.CSRKey: r.CSR, authv1beta1.CertificateKey: issued}
	demand.put(data)
	if err := i.keep(ctx, record, r, data); err != nil {
		return Certificate{}, err
	}
	if err := i.remove(ctx, name); err != nil {
		return Certificate{}, err
	}
	_, at, err := needsRenewal(issued, r.Late, i.Clock.Now())
	if err != nil {
		return Certificate{}, fmt.Errorf("reading an issued certificate: %w", err)
	}
	return Certificate{PEM: issued, RenewAt: at, Fresh: true, Demand: demand}, nil
}

// recordOf reads the record of a certificate; nil if there is none.
func (i *Issuer) recordOf(ctx context.Context, r Request) (*corev1.Secret, error) {
	record, err := i.Secrets.Get(ctx, r.Namespace, r.Record)
	if err != nil {
		return nil, err
	}
	if record != nil && record.Labels[corev1beta1.ManagedLabel] != "true" {
		return nil, reconcile.NotOurs(authv1beta1.ReasonNotOurs, "Secret", client.ObjectKeyFromObject(record))
	}
	return record, nil
}

func signedLast(record *corev1.Secret) []byte {
	if record == nil {
		return nil
	}
	return record.Data[authv1beta1.CSRKey]
}

// recorded returns the recorded certificate if it still serves.
func (i *Issuer) recorded(record *corev1.Secret, r Request, public crypto.PublicKey) (Certificate, bool) {
	if record == nil || !bytes.Equal(record.Data[authv1beta1.CSRKey], r.CSR) {
		return Certificate{}, false
	}
	now, stored := i.Clock.Now(), record.Data[authv1beta1.CertificateKey]
	if identity.CheckCertificate(stored, public, r.Want.Subject, now) != nil {
		return Certificate{}, false
	}
	due, at, err := needsRenewal(stored, r.Late, now)
	return Certificate{PEM: stored, RenewAt: at, Demand: demandOf(record)}, err == nil && !due
}

// keep has the record hold this, and the present owner: it does not go with an earlier one of the name.
func (i *Issuer) keep(ctx context.Context, record *corev1.Secret, r Request, data map[string][]byte) error {
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Record,
			Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: r.RemoteID},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
	if err := controllerutil.SetOwnerReference(r.Owner, want, i.Client.Scheme()); err != nil {
		return fmt.Errorf("recording a certificate: %w", err)
	}
	return i.Secrets.Known(ctx, record, keep.Wanted{Object: want})
}

// sign takes a request one step further through the CSR API, and returns the certificate once it is there.
func (i *Issuer) sign(ctx context.Context, r Request, public crypto.PublicKey) (issued []byte, name string, err error) {
	name = requestName(r)
	csr := &certificatesv1.CertificateSigningRequest{}
	err = i.Reader.Get(ctx, client.ObjectKey{Name: name}, csr)
	if apierrors.IsNotFound(err) {
		if wait := i.spend(r.RemoteID); wait > 0 {
			return nil, "", reconcile.Wait(authv1beta1.ReasonCertificatePending,
				"waiting because this consumer was issued many certificates in a short time", wait)
		}
		csr = i.render(name, r)
		err = i.Client.Create(ctx, csr)
	}
	if err != nil {
		return nil, "", fmt.Errorf("asking for certificate %s: %w", name, err)
	}
	want, err := i.expectation(ctx, r, public)
	if err != nil {
		return nil, "", err
	}
	if err := checkStored(csr, r, want); err != nil {
		return nil, "", reconcile.Refuse(authv1beta1.ReasonAuthParamsFailed,
			fmt.Errorf("the CertificateSigningRequest %s is not the one that we made: %w", name, err))
	}
	state := stateOf(csr, i.Clock.Now())
	switch state {
	case stateNew:
		if err := i.approve(ctx, csr); err != nil {
			return nil, "", err
		}
		return nil, "", reconcile.Wait(authv1beta1.ReasonCertificatePending, "waiting for the cluster's signer", pollInterval)
	case statePending:
		return nil, "", reconcile.Wait(authv1beta1.ReasonCertificatePending, "waiting for the cluster's signer", pollInterval)
	case stateLate:
		return nil, "", reconcile.Wait(authv1beta1.ReasonCertificatePending, fmt.Sprintf(
			"the cluster does not sign certificate requests of the signer %s (see CertificateSigningRequest %s): "+
				"check that its kube-controller-manager runs with a signing key",
			certificatesv1.KubeAPIServerClientSignerName, name), 10*time.Second)
	case stateFailed:
		if err := i.remove(ctx, name); err != nil {
			return nil, "", err
		}
		return nil, "", reconcile.Refuse(authv1beta1.ReasonAuthParamsFailed, fmt.Errorf("the cluster refused to sign the certificate request %s", name))
	}
	if err := identity.CheckCertificate(csr.Status.Certificate, public, r.Want.Subject, i.Clock.Now()); err != nil {
		if err := i.remove(ctx, name); err != nil {
			return nil, "", err
		}
		return nil, "", reconcile.Refuse(authv1beta1.ReasonAuthParamsFailed, fmt.Errorf("the cluster signed another certificate than asked for: %w", err))
	}
	return csr.Status.Certificate, name, nil
}

func (i *Issuer) render(name string, r Request) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: r.RemoteID},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           r.CSR,
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: ptr.To(i.lifetimeSeconds()),
			Usages:            r.Want.Usages,
		},
	}
}

func (i *Issuer) lifetimeSeconds() int32 {
	lifetime := i.Lifetime
	if lifetime <= 0 {
		lifetime = DefaultLifetime
	}
	return int32(max(lifetime, MinLifetime) / time.Second) //nolint:gosec // bounded: a lifetime of 68 years does not overflow
}

func (i *Issuer) expectation(ctx context.Context, r Request, public crypto.PublicKey) (identity.RequestExpectation, error) {
	username, err := i.username(ctx)
	if err != nil {
		return identity.RequestExpectation{}, err
	}
	want := identity.RequestExpectation{
		Expectation: r.Want, SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Username: username, MaxExpirationSeconds: i.lifetimeSeconds(),
	}
	want.PublicKey = public
	return want, nil
}

func (i *Issuer) username(ctx context.Context) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.Username == "" {
		review := &authenticationv1.SelfSubjectReview{}
		if err := i.Client.Create(ctx, review); err != nil {
			return "", fmt.Errorf("asking the API server who we are: %w", err)
		}
		if review.Status.UserInfo.Username == "" {
			return "", errors.New("asking the API server who we are: it gave no name")
		}
		i.Username = review.Status.UserInfo.Username
	}
	return i.Username, nil
}

func (i *Issuer) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: authv1beta1.ReasonRequestApproved,
		Message: "requested and checked by liqo-controller-manager", LastUpdateTime: metav1.NewTime(i.Clock.Now()),
	})
	if err := i.Client.SubResource("approval").Update(ctx, csr); err != nil {
		return fmt.Errorf("approving CertificateSigningRequest %s: %w", csr.Name, err)
	}
	return nil
}

func (i *Issuer) remove(ctx context.Context, name string) error {
	err := i.Client.Delete(ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting CertificateSigningRequest %s: %w", name, err)
	}
	return nil
}

// checkStored compares the request as the API server stored it with what was asked for.
func checkStored(csr *certificatesv1.CertificateSigningRequest, r Request, want identity.RequestExpectation) error {
	if !bytes.Equal(csr.Spec.Request, r.CSR) {
		return errors.New("it holds another request")
	}
	return identity.CheckRequest(csr, want)
}

// requestName depends on everything that makes the request, so that nobody else's object has it by accident.
func requestName(r Request) string {
	hash := sha256.New()
	for _, part := range [][]byte{[]byte(r.Namespace), []byte(r.Record), r.CSR} {
		sum := sha256.Sum256(part)
		hash.Write(sum[:])
	}
	return NamePrefix + hex.EncodeToString(hash.Sum(nil)[:16])
}
