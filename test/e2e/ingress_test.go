package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/lab/pki"
)

const (
	// bookshop and bookshopAbroad are the hosts of the Ingresses of the example.
	bookshop       = "bookshop.example.com"
	bookshopAbroad = "abroad.bookshop.example.com"
)

// throughIngresses asks the front end for its page through the ingress controllers of both clusters, until each of its pods
// has answered through each: the one at home and the one at the provider.
func throughIngresses(t *testing.T, namespace, twin string, authority *x509.CertPool) {
	home := the.rome.balancer(t, namespace, "front")
	remote := the.milan.balancer(t, twin, "front")
	if home == remote {
		t.Fatalf("both clusters have their Ingress at %s", home)
	}
	for _, name := range []string{"front", "front-abroad"} {
		copied := &networkingv1.Ingress{ObjectMeta: named(twin, name)}
		the.milan.sees(t, copied, "the Ingress")
		if class := copied.Spec.IngressClassName; class == nil || *class != offeredClass {
			t.Errorf("Ingress %s has class %v at the provider, which offers %s", name, class, offeredClass)
		}
	}
	if back := the.rome.balancer(t, namespace, "front-abroad"); back != remote {
		t.Errorf("the Ingress that only the provider serves is said to be at %s, but it is at %s", back, remote)
	}
	pods := the.rome.ready(t, namespace, "front", 2)
	if pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		t.Errorf("the front end is not in two clusters: %s", describe(pods))
	}
	for what, c := range map[string]struct{ address, site string }{
		"plain, at home":              {home, "http://" + bookshop},
		"encrypted, at home":          {home, "https://" + bookshop},
		"plain, at the provider":      {remote, "http://" + bookshop},
		"encrypted, at the provider":  {remote, "https://" + bookshop},
		"served by the provider only": {remote, "http://" + bookshopAbroad},
	} {
		t.Run(what, func(t *testing.T) {
			browser := browserAt(c.address, authority)
			for i := range pods {
				answers(t, browser, c.site, pods[i].Name)
			}
		})
	}
	t.Run("with another certificate", func(t *testing.T) {
		the.rome.deletes(t, &corev1.Secret{ObjectMeta: named(namespace, "bookshop")})
		renewed := the.certifies(t, namespace, "bookshop", bookshop)
		answers(t, browserAt(home, renewed), "https://"+bookshop, pods[0].Name)
		answers(t, browserAt(remote, renewed), "https://"+bookshop, pods[0].Name)
	})
}

// answers waits until a pod of the front end has passed on what the API and the database say.
func answers(t *testing.T, browser *http.Client, site, pod string) {
	t.Helper()
	eventually(t, patience, "an answer of "+site+" by "+pod, func(ctx context.Context) (bool, string) {
		return pageBy(ctx, browser, site+"/cgi-bin/front.cgi", func(body string) bool {
			return strings.HasPrefix(body, "welcome stock-") && strings.Contains(body, "by "+pod+"\n")
		})
	})
}

// balancer waits until an Ingress has the address of a load balancer, and returns it.
func (c *side) balancer(t *testing.T, namespace, name string) (address string) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("the address of Ingress %s/%s at %s", namespace, name, c.name), func(ctx context.Context) (bool, string) {
		ingress := &networkingv1.Ingress{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ingress); err != nil {
			return false, err.Error()
		}
		addresses := ingress.Status.LoadBalancer.Ingress
		if len(addresses) == 1 {
			address = addresses[0].IP
		}
		return address != "", fmt.Sprint(addresses)
	})
	return address
}

// certifies makes a certificate for a host, and a Secret with it as a user does. It returns the authority that signed it.
func (s *suite) certifies(t *testing.T, namespace, secret, host string) *x509.CertPool {
	t.Helper()
	store, err := pki.New(t.TempDir(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.EnsureCA(pki.ClusterCA, "authority"); err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(pki.Certificate{Name: host, CommonName: host, DNSNames: []string{host}}); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, s.rome, soon, "create", "secret", "tls", secret, "-n", namespace, "--cert", store.Cert(host), "--key", store.Key(host)).succeeds(t)
	s.kubectl(t, s.rome, soon, "annotate", "secret", secret, "-n", namespace, "liqo.io/allow-reflection=").succeeds(t)
	authority, err := os.ReadFile(store.Cert(pki.ClusterCA))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		t.Fatal("the authority's certificate is not PEM")
	}
	return pool
}

// browserAt is a client for which every name leads to one address. Each request is a new connection.
func browserAt(address string, trusted *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, target string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(target)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(address, port))
		},
	}}
}
