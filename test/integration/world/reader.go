package world

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// scrapeTimeout bounds one scrape, the review of the token included.
const scrapeTimeout = 15 * time.Second

// TokenOf makes a ServiceAccount at rome, bound to a ClusterRole unless that is empty, and returns a token.
func (s *Shared) TokenOf(t *testing.T, role string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fixture.Unique("reader")}}
	fixture.Must(t, "creating a ServiceAccount", s.Rome.Client.Create(t.Context(), account))
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}},
		}
		fixture.Must(t, "binding ClusterRole "+role, s.Rome.Client.Create(t.Context(), binding))
		t.Cleanup(func() { _ = s.Rome.Client.Delete(context.WithoutCancel(t.Context()), binding) })
	}
	token, err := s.Rome.Kube.CoreV1().ServiceAccounts(account.Namespace).CreateToken(t.Context(), account.Name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	fixture.Must(t, "asking for a token", err)
	return token.Status.Token
}

// Scrape reads a page as Prometheus does; an empty token is not sent.
func Scrape(ctx context.Context, url, token string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The process listens on another address than its certificate names; whose it is, is not what is tested.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 8<<20))
	return response.StatusCode, string(text), err
}

// Answer tries until it is answered as wanted: right after an upgrade the API server may not know the policy yet.
func Answer(t *testing.T, what, want string, try func(ctx context.Context) error) {
	t.Helper()
	fixture.Await(t, fixture.Patience, fmt.Sprintf("the answer %q to %s", want, what), func(ctx context.Context) (bool, string) {
		err := try(ctx)
		if want == "" {
			return err == nil, fmt.Sprint(err)
		}
		return apierrors.IsForbidden(err) && slices.ContainsFunc(strings.Split(want, "|"), func(one string) bool {
			return strings.Contains(err.Error(), one)
		}), fmt.Sprint(err)
	})
}

// Patched patches the status of an object as an account, which changes nothing.
func Patched(account *fixture.User, object client.Object, patch string) func(context.Context) error {
	return func(ctx context.Context) error {
		return account.Status().Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.DryRunAll)
	}
}

// KubeletClients hold what a virtual kubelet has at rome: the certificate of the node that it is, and the token of its account.
func (s *Shared) KubeletClients(t *testing.T) (node, account kubernetes.Interface) {
	t.Helper()
	s.Peered(t)
	k := s.peering.Kubelet
	config := rest.AnonymousClientConfig(s.Rome.Config)
	pair := filepath.Join(k.PKI, "node-client-current.pem")
	config.CertFile, config.KeyFile = pair, pair
	node, err := kubernetes.NewForConfig(config)
	fixture.Must(t, "making the node's client", err)
	for _, arg := range k.Args {
		if path, found := strings.CutPrefix(arg, "--home-kubeconfig="); found {
			config, err := clientcmd.BuildConfigFromFlags("", path)
			fixture.Must(t, "reading the account's kubeconfig", err)
			account, err = kubernetes.NewForConfig(config)
			fixture.Must(t, "making the account's client", err)
			return node, account
		}
	}
	t.Fatal("the virtual kubelet was given no kubeconfig")
	return nil, nil
}

// AccountKubeconfig writes a kubeconfig with a token of a ServiceAccount.
func (s *Shared) AccountKubeconfig(t *testing.T, c *fixture.Cluster, namespace, account string) string {
	t.Helper()
	return s.environment.AccountKubeconfig(t, c, namespace, account)
}
