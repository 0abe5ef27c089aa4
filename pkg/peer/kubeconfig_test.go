package peer

import (
	"strings"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"liqo.io/liqo/pkg/identity"
)

func TestParseKubeconfig(t *testing.T) {
	s := newServer(t)
	type cluster = clientcmdapi.Cluster
	type user = clientcmdapi.AuthInfo
	for name, tc := range map[string]struct {
		change func(*cluster, *user)
		raw    []byte
		policy identity.EndpointPolicy
		want   string // part of the error; empty means accepted
	}{
		"a token and a CA are accepted":            {policy: identity.EndpointPolicy{AllowLoopback: true}},
		"loopback is refused unless it is allowed": {want: "loopback"},
		"a program for the credentials": {change: func(_ *cluster, u *user) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1"}
		}, want: "runs a program"},
		"an auth provider":                            {change: func(_ *cluster, u *user) { u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"} }, want: "auth provider"},
		"a token in a file":                           {change: func(_ *cluster, u *user) { u.TokenFile = "/etc/passwd" }, want: "refers to a file"},
		"a certificate in a file":                     {change: func(_ *cluster, u *user) { u.ClientCertificate = "/etc/passwd" }, want: "refers to a file"},
		"a key in a file":                             {change: func(_ *cluster, u *user) { u.ClientKey = "/etc/shadow" }, want: "refers to a file"},
		"a CA in a file":                              {change: func(c *cluster, _ *user) { c.CertificateAuthorityData, c.CertificateAuthority = nil, "/etc/passwd" }, want: "refers to a file"},
		"an unverified server":                        {change: func(c *cluster, _ *user) { c.InsecureSkipTLSVerify = true }, want: "verification"},
		"plain http":                                  {change: func(c *cluster, _ *user) { c.Server = "http://192.0.2.1" }, want: "use https"},
		"the address of the cloud's metadata":         {change: func(c *cluster, _ *user) { c.Server = "https://169.254.169.254" }, want: "link-local"},
		"our own API server":                          {change: func(c *cluster, _ *user) { c.Server = "https://kubernetes.default.svc" }, want: "inside this cluster"},
		"a CA that is none":                           {change: func(c *cluster, _ *user) { c.CertificateAuthorityData = []byte("x") }, want: "CA bundle"},
		"a proxy on loopback":                         {change: func(c *cluster, _ *user) { c.Server, c.ProxyURL = "https://192.0.2.1", "http://127.0.0.1:1" }, want: "loopback"},
		"a proxy of an unknown scheme":                {change: func(c *cluster, _ *user) { c.Server, c.ProxyURL = "https://192.0.2.1", "ftp://192.0.2.2" }, want: "scheme"},
		"impersonation":                               {change: func(_ *cluster, u *user) { u.Impersonate = "system:admin" }, want: "impersonates"},
		"a password":                                  {change: func(_ *cluster, u *user) { u.Username = "a"; u.Password = "b" }, want: "password"},
		"no credentials at all":                       {change: func(_ *cluster, u *user) { u.Token = "" }, want: "neither"},
		"a certificate without its key":               {change: func(_ *cluster, u *user) { u.Token, u.ClientCertificateData = "", []byte("x") }, want: "neither"},
		"nothing":                                     {raw: []byte{}, want: "0 bytes"},
		"something enormous":                          {raw: make([]byte, MaxKubeconfig+1), want: "bytes"},
		"something else":                              {raw: []byte("a: b: c"), want: "cannot be parsed"},
		"a kubeconfig without a current context":      {raw: []byte("kind: Config\napiVersion: v1\n"), want: "no current context"},
		"a context of clusters that are not in there": {raw: []byte("kind: Config\napiVersion: v1\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\n"), want: "does not hold"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := tc.raw
			if raw == nil {
				raw = s.kubeconfig(t, func(c *cluster, u *user) {
					if tc.change != nil {
						c.Server = "https://192.0.2.1:6443"
						tc.change(c, u)
					}
				})
			}
			config, err := ParseKubeconfig(raw, tc.policy)
			switch {
			case tc.want == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("got config %v and error %v, want %q", config, err, tc.want)
			case err != nil && strings.Contains(err.Error(), "one"+"secret"):
				t.Fatal("the error tells a secret")
			}
		})
	}
}

func TestDialerChecksResolvedAddresses(t *testing.T) {
	s := newServer(t)
	address := strings.TrimPrefix(s.URL, "https://")
	strict := checkedDialer(identity.EndpointPolicy{})
	if conn, err := strict.DialContext(t.Context(), "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("a strict dialer reached loopback")
	}
	conn, err := checkedDialer(identity.EndpointPolicy{AllowLoopback: true}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("an allowing dialer did not: %v", err)
	}
	_ = conn.Close()
}
