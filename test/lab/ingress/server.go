package ingress

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/klog/v2"
)

// callTimeout bounds each call of the API server.
const callTimeout = 10 * time.Second

// server answers the requests of users.
type server struct {
	class     string
	client    kubernetes.Interface
	ingresses networkinglisters.IngressLister
	services  corelisters.ServiceLister
	slices    discoverylisters.EndpointSliceLister
	turn      atomic.Uint64
}

// served are the Ingresses of the server's class.
func (s *server) served() ([]*networkingv1.Ingress, error) {
	all, err := s.ingresses.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var mine []*networkingv1.Ingress
	for _, i := range all {
		if isOf(s.class, i) {
			mine = append(mine, i)
		}
	}
	return mine, nil
}

func isOf(class string, i *networkingv1.Ingress) bool {
	return i.Spec.IngressClassName != nil && *i.Spec.IngressClassName == class
}

// ServeHTTP brings a request to one endpoint of the Service that an Ingress names for it.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mine, err := s.served()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	to, found := route(mine, hostName(r.Host), r.URL.Path)
	if !found {
		http.Error(w, fmt.Sprintf("no Ingress of class %s leads from here", s.class), http.StatusNotFound)
		return
	}
	addresses, err := s.addresses(to)
	if err != nil || len(addresses) == 0 {
		klog.FromContext(r.Context()).Info("A request finds nothing behind its Service", "namespace", to.namespace, "service", to.service.Name, "err", err)
		http.Error(w, fmt.Sprintf("Service %s has no ready endpoint", to.service.Name), http.StatusServiceUnavailable)
		return
	}
	address := addresses[s.turn.Add(1)%uint64(len(addresses))]
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", address, p.In.Host
		p.SetXForwarded()
	}}
	proxy.ServeHTTP(w, r)
}

// addresses are the ready endpoints behind the port of a Service, as host:port.
func (s *server) addresses(to target) ([]string, error) {
	service, err := s.services.Services(to.namespace).Get(to.service.Name)
	if err != nil {
		return nil, err
	}
	port, err := portName(service, to.service.Port)
	if err != nil {
		return nil, err
	}
	of := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	list, err := s.slices.EndpointSlices(to.namespace).List(of)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, slice := range list {
		found = append(found, readyIn(slice, port)...)
	}
	slices.Sort(found) // lists come in no order, which would keep the turns from being fair
	return found, nil
}

func portName(service *corev1.Service, wanted networkingv1.ServiceBackendPort) (string, error) {
	for _, p := range service.Spec.Ports {
		if wanted.Name != "" && p.Name == wanted.Name || wanted.Name == "" && p.Port == wanted.Number {
			return p.Name, nil
		}
	}
	return "", fmt.Errorf("service %s/%s has no port %s%d", service.Namespace, service.Name, wanted.Name, wanted.Number)
}

func readyIn(slice *discoveryv1.EndpointSlice, port string) []string {
	var found []string
	for _, p := range slice.Ports {
		if p.Port == nil || p.Name == nil && port != "" || p.Name != nil && *p.Name != port {
			continue
		}
		for _, e := range slice.Endpoints {
			if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
				found = append(found, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))))
			}
		}
	}
	return found
}

// certificate reads the certificate for a handshake.
func (s *server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	mine, err := s.served()
	if err != nil {
		return nil, err
	}
	namespace, name, found := certificateOf(mine, hostName(hello.ServerName))
	if !found {
		return nil, fmt.Errorf("no Ingress of class %s has a certificate for %q", s.class, hello.ServerName)
	}
	ctx, cancel := context.WithTimeout(hello.Context(), callTimeout)
	defer cancel()
	secret, err := s.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for %q: %w", hello.ServerName, err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate in Secret %s/%s: %w", namespace, name, err)
	}
	return &pair, nil
}
