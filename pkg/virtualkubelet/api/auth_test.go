package api

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	clientremote "k8s.io/client-go/tools/remotecommand"
)

// every route, with the questions that the local API server is asked before it is served, when all are answered no.
var everyRoute = []struct {
	method, path string
	verb         string
	subresources []string
	granted      int // the answer to an allowed caller who does not upgrade
}{
	{http.MethodGet, "/healthz", "get", []string{"healthz", "proxy"}, 200},
	{http.MethodGet, "/metrics", "get", []string{"metrics"}, 200},
	{http.MethodGet, "/pods", "get", []string{"pods", "proxy"}, 200},
	{http.MethodGet, "/runningpods", "get", []string{"pods", "proxy"}, 200},
	{http.MethodGet, "/runningpods/", "get", []string{"pods", "proxy"}, 200},
	{http.MethodHead, "/pods", "get", []string{"pods", "proxy"}, 200},
	{http.MethodGet, "/containerLogs/local/pod/main", "get", []string{"proxy"}, 200},
	{http.MethodGet, "/exec/local/pod/main?command=x&output=1", "create", []string{"proxy"}, 400},
	{http.MethodPost, "/exec/local/pod/main?command=x&output=1", "create", []string{"proxy"}, 400},
	{http.MethodGet, "/exec/local/pod/uid-1/main?command=x&output=1", "create", []string{"proxy"}, 400},
	{http.MethodPost, "/exec/local/pod/uid-1/main?command=x&output=1", "create", []string{"proxy"}, 400},
	{http.MethodGet, "/attach/local/pod/main?output=1", "create", []string{"proxy"}, 400},
	{http.MethodPost, "/attach/local/pod/main?output=1", "create", []string{"proxy"}, 400},
	{http.MethodGet, "/attach/local/pod/uid-1/main?output=1", "create", []string{"proxy"}, 400},
	{http.MethodPost, "/attach/local/pod/uid-1/main?output=1", "create", []string{"proxy"}, 400},
	{http.MethodGet, "/portForward/local/pod", "create", []string{"proxy"}, 400},
	{http.MethodPost, "/portForward/local/pod", "create", []string{"proxy"}, 400},
	{http.MethodGet, "/portForward/local/pod/uid-1", "create", []string{"proxy"}, 400},
	{http.MethodPost, "/portForward/local/pod/uid-1", "create", []string{"proxy"}, 400},
	{http.MethodGet, "/run/local/pod/main", "create", []string{"proxy"}, 404},
	{http.MethodGet, "/stats/summary", "get", []string{"stats"}, 404},
	{http.MethodGet, "/metrics/cadvisor", "get", []string{"metrics"}, 404},
	{http.MethodGet, "/logs/messages", "get", []string{"log"}, 404},
	{http.MethodGet, "/", "get", []string{"proxy"}, 404},
	{http.MethodPut, "/exec/local/pod/main", "update", []string{"proxy"}, 404},
	{http.MethodPatch, "/debug/pprof/", "patch", []string{"proxy"}, 404},
	{http.MethodDelete, "/pods", "delete", []string{"proxy"}, 404},
	{http.MethodOptions, "/pods", "", []string{"proxy"}, 404},
}

func TestEveryRouteAsksWhoIsThere(t *testing.T) {
	p := startProvider(t)
	p.logs = func(http.ResponseWriter, *http.Request) {}
	n := startNode(t, nodeOptions{remote: p.remote(t)})
	foreign := newAuthority(t, "client-ca") // as ours by name
	apiserver := pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}}
	none := tls.Certificate{}
	for name, c := range map[string]struct {
		certificate tls.Certificate
		token       string
		want        int // 0: what the route grants
	}{
		"no credentials":             {none, "", 401},
		"self-signed certificate":    {newCertificate(t, nil, apiserver, false), "", 401},
		"another CA's certificate":   {newCertificate(t, foreign, apiserver, false), "", 401},
		"foreign token":              {none, "foreign", 401},
		"known user without a right": {newCertificate(t, n.ca, pkix.Name{CommonName: "denied"}, false), "", 403},
		"known token without right":  {none, "denied", 403},
		"the kube-apiserver":         {newCertificate(t, n.ca, apiserver, false), "", 0},
		"a token with rights":        {none, "good", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, route := range everyRoute {
				want := c.want
				if want == 0 {
					want = route.granted
				}
				if got := n.do(t, route.method, route.path, c.certificate, c.token); got.code != want {
					t.Errorf("%s %s: got %d (%s), want %d", route.method, route.path, got.code, strings.TrimSpace(got.body), want)
				}
			}
		})
	}
}

func TestEveryRouteAsksForTheRightOfAKubelet(t *testing.T) {
	for _, route := range everyRoute {
		t.Run(route.method+" "+route.path, func(t *testing.T) {
			n := startNode(t, nodeOptions{remote: startProvider(t).remote(t)})
			equal(t, 403, n.do(t, route.method, route.path, tls.Certificate{}, "denied").code)
			var want []authorizationv1.ResourceAttributes
			for _, subresource := range route.subresources {
				want = append(want, authorizationv1.ResourceAttributes{
					Verb: route.verb, Version: "v1", Resource: "nodes", Subresource: subresource, Name: "virtual"})
			}
			equal(t, want, n.reviewer.questions())
		})
	}
}

// A WebSocket upgrade is a GET; who may only read the node must not get a shell by it.
func TestAWebSocketNeedsTheRightToCreate(t *testing.T) {
	n := startNode(t, nodeOptions{remote: startProvider(t).remote(t)})
	config := n.caller()
	config.BearerToken = "denied"
	executor, err := clientremote.NewWebSocketExecutor(config, http.MethodGet, n.url+"/exec/local/pod/main?command=sh&output=1")
	if err != nil {
		t.Fatal(err)
	}
	err = executor.StreamWithContext(t.Context(), clientremote.StreamOptions{Stdout: io.Discard})
	want := "Forbidden (user=denied, verb=create, resource=nodes, subresource(s)=[proxy])"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v", err)
	}
}
