package peer

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/clientcmd"
)

// server is an API server that answers /version as told.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	status  int
	after   string
	hang    chan struct{}
	tokens  []string
	arrived chan struct{}
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{status: http.StatusOK, arrived: make(chan struct{}, 1000)}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	status, hang, after := s.status, s.hang, s.after
	s.tokens = append(s.tokens, r.Header.Get("Authorization"))
	s.mu.Unlock()
	s.arrived <- struct{}{}
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return
	}
	if status != http.StatusOK {
		if status == http.StatusFound {
			w.Header().Set("Location", s.URL+"/elsewhere")
		}
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(version.Info{GitVersion: "v1.36.3"})
}

func (s *server) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *server) lastToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[len(s.tokens)-1]
}

// kubeconfig for the server, changed as wished.
func (s *server) kubeconfig(t *testing.T, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	t.Helper()
	cluster := &clientcmdapi.Cluster{
		Server:                   s.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	}
	user := &clientcmdapi.AuthInfo{Token: "one"}
	if change != nil {
		change(cluster, user)
	}
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": user},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
