package resourceplugin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	resourcesv1 "liqo.io/liqo/pkg/apis/resources/v1"
	"liqo.io/liqo/pkg/capacity"
)

// stock is what a cluster has.
type stock struct {
	mu   sync.Mutex
	free corev1.ResourceList
}

func (s *stock) Free(string) corev1.ResourceList {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

func (s *stock) Used(capacity.Owner) corev1.ResourceList { return list("pods", "1") }

func (s *stock) has(free corev1.ResourceList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = free
}

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func question(name string) Question {
	return Question{Slice: types.NamespacedName{Namespace: "liqo-tenant-rome", Name: name}, Of: capacity.Owner{Consumer: "rome", Slice: "user-of-" + name},
		Class: "gold", Asked: list("cpu", "4"), Granted: list("cpu", "2")}
}

// answering is a plugin as a function.
type answering func(context.Context, *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error)

// Decide implements resourcesv1.GrantsClient.
func (a answering) Decide(ctx context.Context, in *resourcesv1.DecideRequest, _ ...grpc.CallOption) (*resourcesv1.DecideResponse, error) {
	return a(ctx, in)
}

// grants has a plugin grant what is said by pairs.
func grants(in *resourcesv1.DecideRequest, pairs ...string) *resourcesv1.DecideResponse {
	out := &resourcesv1.DecideResponse{ClusterId: in.GetClusterId(), Namespace: in.GetNamespace(), Name: in.GetName(), Grant: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		out.Grant[pairs[i]] = pairs[i+1]
	}
	return out
}

// server is a plugin as a gRPC server.
type server struct {
	resourcesv1.UnimplementedGrantsServer
	answer answering
}

func (s server) Decide(ctx context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
	return s.answer(ctx, in)
}

// serve starts a plugin, which ends with the test, and returns what it says of its health.
func serve(t *testing.T, listener net.Listener, answer answering, options ...grpc.ServerOption) *health.Server {
	t.Helper()
	served, healthy := grpc.NewServer(options...), health.NewServer()
	healthy.SetServingStatus(resourcesv1.Grants_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	resourcesv1.RegisterGrantsServer(served, server{answer: answer})
	healthv1.RegisterHealthServer(served, healthy)
	go func() { _ = served.Serve(listener) }()
	t.Cleanup(served.Stop)
	return healthy
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// socket is a path that is short enough for one.
func socket(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "plugin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, "s")
}

func connect(t *testing.T, address, folder string) *Plugin {
	t.Helper()
	client, err := Connect(address, folder)
	if err != nil {
		t.Fatal(err)
	}
	return New(client, &stock{free: list("cpu", "100", "memory", "200Gi")})
}

// next asks, waits until the plugin says something else, and returns it.
func next(t *testing.T, p *Plugin, q Question) Decision {
	t.Helper()
	p.Decide(t.Context(), q)
	t.Cleanup(func() { p.Forget(q.Slice) })
	select {
	case changed := <-p.Changed():
		if got := changed.Object.GetNamespace() + "/" + changed.Object.GetName(); got != q.Slice.String() {
			t.Fatalf("told of %s", got)
		}
		return p.Decide(t.Context(), q)
	case <-time.After(10 * time.Second):
		t.Fatalf("waited 10s for a decision; last seen: %+v", p.Decide(t.Context(), q))
		return Decision{}
	}
}

// said is a decision as one line.
func said(d Decision) string {
	text := "nothing"
	if d.Grant != nil {
		text = capacity.Text(d.Grant)
	}
	if d.Words != "" {
		text += " (" + d.Words + ")"
	}
	if d.Trouble != (Trouble{}) {
		text += "; " + d.Trouble.Reason + ": " + d.Trouble.Message
	}
	return text
}

func many(n int) []string {
	var pairs []string
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("example.org/%d", i), "1")
	}
	return pairs
}

// A plugin is believed as a whole or not at all, and what it said before holds.
func TestAnswersOfAPlugin(t *testing.T) {
	const unreachable, late, wrong = authv1beta1.ReasonPluginUnreachable, authv1beta1.ReasonPluginLate, authv1beta1.ReasonPluginAnswerRefused
	grant := func(pairs ...string) answering {
		return func(_ context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
			return grants(in, pairs...), nil
		}
	}
	about := func(change func(*resourcesv1.DecideResponse)) answering {
		return func(_ context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
			out := grants(in, "cpu", "3")
			change(out)
			return out, nil
		}
	}
	fails := func(code codes.Code) answering {
		return func(context.Context, *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
			return nil, status.Error(code, "secret details")
		}
	}
	for name, tc := range map[string]struct {
		answer answering
		want   string
		reason string
	}{
		"a grant":                        {grant("cpu", "3", "memory", "8Gi"), "cpu 3, memory 8Gi", ""},
		"a grant of nothing":             {grant("cpu", "0"), "cpu 0", ""},
		"a grant of what is not known":   {grant("example.org/fpga", "2"), "example.org/fpga 2", ""},
		"a grant with as many as may be": {grant(many(maxResources)...), "example.org/0 1", ""},
		"an exponent":                    {grant("memory", "1e3"), "memory 1e3", ""},
		"words":                          {about(func(r *resourcesv1.DecideResponse) { r.Reason = "half of what is free" }), "cpu 3 (half of what is free)", ""},
		"words that are none":            {about(func(r *resourcesv1.DecideResponse) { r.Reason = "\x1b[31m\n\u202eno" }), "cpu 3 ([31m  no)", ""},
		"words without an end":           {about(func(r *resourcesv1.DecideResponse) { r.Reason = strings.Repeat("a", 60<<10) }), "cpu 3 (" + strings.Repeat("a", maxReason) + ")", ""},
		"another consumer":               {about(func(r *resourcesv1.DecideResponse) { r.ClusterId = "turin" }), "not about this consumer's slice", wrong},
		"another namespace":              {about(func(r *resourcesv1.DecideResponse) { r.Namespace = "liqo-tenant-turin" }), "not about this consumer's slice", wrong},
		"another slice":                  {about(func(r *resourcesv1.DecideResponse) { r.Name = "b" }), "not about this consumer's slice", wrong},
		"nobody":                         {about(func(r *resourcesv1.DecideResponse) { *r = resourcesv1.DecideResponse{} }), "not about this consumer's slice", wrong},
		"an empty grant":                 {grant(), "it names no resource; to grant nothing, name one with 0", wrong},
		"no number":                      {grant("cpu", "NaN"), "what it says of cpu is no quantity such as 1500m or 8Gi", wrong},
		"no number at all":               {grant("cpu", ""), "what it says of cpu is no quantity", wrong},
		"infinity":                       {grant("memory", "+Inf"), "what it says of memory is no quantity", wrong},
		"words in place of a number":     {grant("cpu", "3 cores"), "what it says of cpu is no quantity", wrong},
		"less than nothing":              {grant("cpu", "-1"), "the quantity -1 of cpu is negative", wrong},
		"one good and one bad":           {grant("cpu", "3", "memory", "-8Gi"), "of memory is negative", wrong},
		"more than can be":               {grant("cpu", "1e99"), "of cpu is more than can be", wrong},
		"more memory than can be":        {grant("memory", "2Pi"), "2Pi of memory is more than can be", wrong},
		"a number that takes minutes":    {grant("cpu", "1e-999999999"), "what it says of cpu is no quantity", wrong},
		"a number without an end":        {grant("cpu", strings.Repeat("9", 40<<10)), "what it says of cpu is no quantity", wrong},
		"half a device":                  {grant("nvidia.com/gpu", "500m"), "500m of nvidia.com/gpu is no whole number", wrong},
		"one resource too many":          {grant(many(maxResources + 1)...), "it names 65 resources: at most 64 are granted", wrong},
		"ten thousand resources":         {grant(many(10_000)...), "it has more than 64 KiB", wrong},
		"a name that is none":            {grant("two words", "1"), "a resource whose name is not valid", wrong},
		"an empty name":                  {grant("", "1"), "a resource whose name is not valid", wrong},
		"an error":                       {fails(codes.Internal), "it is the error Internal", wrong},
		"a refusal":                      {fails(codes.PermissionDenied), "it is the error PermissionDenied", wrong},
		"too much to do":                 {fails(codes.ResourceExhausted), "it is the error ResourceExhausted", wrong},
		"another service":                {resourcesv1.UnimplementedGrantsServer{}.Decide, "it is the error Unimplemented", wrong},
		"not now":                        {fails(codes.Unavailable), "is not reached", unreachable},
		"nothing": {func(ctx context.Context, _ *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "does not answer within 2s", late},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, before := socket(t), atomic.Bool{}
			serve(t, listen(t, "unix", path), func(ctx context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
				if before.CompareAndSwap(false, true) {
					return grants(in, "cpu", "7"), nil
				}
				return tc.answer(ctx, in)
			})
			p, slice := connect(t, UnixScheme+path, ""), &subject{question: question("a")}
			for range 2 {
				now, _ := p.ask(t.Context(), slice.question, nil)
				p.take(t.Context(), slice, now)
			}
			got := slice.decision
			if got.Trouble.Reason != tc.reason || !strings.Contains(said(got), tc.want) {
				t.Errorf("said %s, want %s %s", said(got), tc.reason, tc.want)
			}
			if tc.reason != "" && (capacity.Text(got.Grant) != "cpu 7" || !strings.Contains(got.Trouble.Message, "stays")) {
				t.Errorf("what was granted before does not stay: %s", said(got))
			}
			if len(said(got)) > 1500 || strings.Contains(said(got), "secret") {
				t.Errorf("it is told as %s", said(got))
			}
		})
	}
}

// The plugin is told what it may want to know, and says whose slices are served.
func TestThePluginIsToldWhatThereIs(t *testing.T) {
	path, asked := socket(t), make(chan *resourcesv1.DecideRequest, 1)
	serve(t, listen(t, "unix", path), func(_ context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
		asked <- in
		return grants(in, "cpu", "1"), nil
	})
	next(t, connect(t, UnixScheme+path, ""), question("a"))
	in := <-asked
	got := []any{in.GetClusterId(), in.GetNamespace(), in.GetName(), in.GetClass(), in.GetAsked(), in.GetFree(), in.GetUsed(), in.GetGranted()}
	want := []any{"rome", "liqo-tenant-rome", "a", "gold", map[string]string{"cpu": "4"}, map[string]string{"cpu": "100", "memory": "200Gi"},
		map[string]string{"pods": "1"}, map[string]string{"cpu": "2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A plugin that is down is found again; one that says that it is not serving is not asked.
func TestAPluginGoesAndComes(t *testing.T) {
	path := socket(t)
	p := connect(t, UnixScheme+path, "")
	if got := said(next(t, p, question("a"))); !strings.HasPrefix(got, "nothing; "+authv1beta1.ReasonPluginUnreachable) {
		t.Errorf("without a plugin: %s", got)
	}
	var mu sync.Mutex
	asked := 0
	healthy := serve(t, listen(t, "unix", path), func(_ context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return grants(in, "cpu", fmt.Sprint(asked)), nil
	})
	if got := said(next(t, p, question("a"))); got != "cpu 1" {
		t.Errorf("with one: %s", got)
	}
	healthy.Shutdown()
	q := question("a")
	q.Asked = list("cpu", "5")
	if got := said(next(t, p, q)); !strings.HasPrefix(got, "cpu 1; "+authv1beta1.ReasonPluginUnreachable) {
		t.Errorf("with one that is not serving: %s", got)
	}
}

// authority signs certificates.
type authority struct {
	*testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	a := authority{T: t}
	a.cert, a.key = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: t.Name()}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}, newKey(t)
	raw, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// folder has a certificate of this authority, its key, and the CA that is trusted.
func (a authority) folder(trusted authority) string {
	key := newKey(a.T)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	folder := a.TempDir()
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: raw}, "tls.key": {Type: "PRIVATE KEY", Bytes: private},
		"ca.crt": {Type: "CERTIFICATE", Bytes: trusted.cert.Raw}} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			a.Fatal(err)
		}
	}
	return folder
}

// Over TCP both sides show a certificate that the other one trusts.
func TestAPluginOverTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	for name, tc := range map[string]struct {
		plugin, manager string
		host            string
		want            string
	}{
		"both are trusted":              {ours.folder(ours), ours.folder(ours), "localhost", "cpu 1"},
		"a plugin of somebody else":     {others.folder(ours), ours.folder(ours), "localhost", "nothing; PluginUnreachable"},
		"a manager of somebody else":    {ours.folder(ours), others.folder(ours), "localhost", "nothing; PluginUnreachable"},
		"a plugin of another name":      {ours.folder(ours), ours.folder(ours), "127.0.0.1", "nothing; PluginUnreachable"},
		"a manager without certificate": {ours.folder(ours), t.TempDir(), "localhost", "nothing; PluginUnreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			certificate, err := tls.LoadX509KeyPair(filepath.Join(tc.plugin, "tls.crt"), filepath.Join(tc.plugin, "tls.key"))
			if err != nil {
				t.Fatal(err)
			}
			trusted := x509.NewCertPool()
			trusted.AddCert(ours.cert)
			listener := listen(t, "tcp", "127.0.0.1:0")
			serve(t, listener, func(_ context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
				return grants(in, "cpu", "1"), nil
			}, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted})))
			_, port, err := net.SplitHostPort(listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if got := said(next(t, connect(t, net.JoinHostPort(tc.host, port), tc.manager), question("a"))); !strings.HasPrefix(got, tc.want) {
				t.Errorf("said %s, want %s", got, tc.want)
			}
		})
	}
}

// When the plugin is asked: on changes, every half a minute, and less and less often while it fails.
func TestWhenAPluginIsAsked(t *testing.T) {
	down := errors.New("down")
	for name, tc := range map[string]struct {
		fails []error // of the first questions
		does  func(p *Plugin, has *stock)
		want  string // seconds after the start
	}{
		"nothing changes": {nil, func(*Plugin, *stock) { time.Sleep(95 * time.Second) }, "0 30 60 90"},
		"it is down for long": {[]error{down, down, down, down, down, down, down, down},
			func(*Plugin, *stock) { time.Sleep(125 * time.Second) }, "0 1 3 7 15 31 61 91 121"},
		"it is down for a moment": {[]error{down, down, nil, down}, func(*Plugin, *stock) { time.Sleep(65 * time.Second) }, "0 1 3 33 34 64"},
		"the slice changes": {nil, func(p *Plugin, _ *stock) {
			time.Sleep(5500 * time.Millisecond)
			q := question("a")
			q.Asked = list("cpu", "5")
			p.Decide(context.Background(), q)
			time.Sleep(35 * time.Second)
		}, "0 5 35"},
		"the slice changes at once, and often": {nil, func(p *Plugin, _ *stock) {
			for i := range 19 {
				q := question("a")
				q.Asked = list("cpu", fmt.Sprint(i))
				p.Decide(context.Background(), q)
				time.Sleep(100 * time.Millisecond)
			}
		}, "0 1"},
		"it is looked at, and does not change": {nil, func(p *Plugin, _ *stock) {
			for range 200 {
				p.Decide(context.Background(), question("a"))
				time.Sleep(100 * time.Millisecond)
			}
		}, "0"},
		"less is free": {nil, func(_ *Plugin, has *stock) {
			time.Sleep(2 * time.Second)
			has.has(list("cpu", "90"))
			time.Sleep(25 * time.Second)
		}, "0 11"},
		"a little less is free": {nil, func(_ *Plugin, has *stock) {
			time.Sleep(2 * time.Second)
			has.has(list("cpu", "99500m"))
			time.Sleep(25 * time.Second)
		}, "0"},
		"it is gone": {nil, func(p *Plugin, _ *stock) {
			time.Sleep(2 * time.Second)
			p.Forget(question("a").Slice)
			time.Sleep(time.Hour)
		}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []string
				start, has := time.Now(), &stock{free: list("cpu", "100")}
				p := New(answering(func(_ context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
					at = append(at, fmt.Sprint(int(time.Since(start).Seconds())))
					if len(at) <= len(tc.fails) && tc.fails[len(at)-1] != nil {
						return nil, tc.fails[len(at)-1]
					}
					return grants(in, "cpu", "1"), nil
				}), has)
				told := make(chan struct{})
				go func() {
					for {
						select {
						case <-p.Changed():
						case <-told:
							return
						}
					}
				}()
				p.Decide(t.Context(), question("a"))
				tc.does(p, has)
				p.Forget(question("a").Slice)
				close(told)
				synctest.Wait()
				if got := strings.Join(at, " "); got != tc.want {
					t.Errorf("asked at %s, want %s", got, tc.want)
				}
			})
		})
	}
}

// What is told is what is another decision: nothing is to be written while a plugin repeats itself, in whatever words.
func TestAPluginThatRepeatsItselfIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, told := 0, 0
		p := New(answering(func(_ context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
			asked++
			if asked > 10 {
				return nil, fmt.Errorf("down for the %dth time", asked)
			}
			out := grants(in, "cpu", "1")
			out.Reason = fmt.Sprint("for the time number ", asked)
			return out, nil
		}), &stock{})
		ended := make(chan struct{})
		go func() {
			for {
				select {
				case <-p.Changed():
					told++
				case <-ended:
					return
				}
			}
		}()
		p.Decide(t.Context(), question("a"))
		time.Sleep(20 * time.Minute)
		got := p.Decide(t.Context(), question("a"))
		p.Forget(question("a").Slice)
		close(ended)
		synctest.Wait()
		if told != 2 || asked < 30 || got.Words != "for the time number 1" || got.Trouble.Reason != authv1beta1.ReasonPluginAnswerRefused {
			t.Errorf("asked %d times, told %d times; last seen: %s", asked, told, said(got))
		}
	})
}

// A plugin that is late about many slices is asked about a few at a time, and nobody waits for it.
func TestAPluginIsNotAskedAboutAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		p := New(answering(func(ctx context.Context, _ *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			now--
			mu.Unlock()
			return nil, status.FromContextError(ctx.Err()).Err()
		}), &stock{})
		start := time.Now()
		for i := range 100 {
			p.Decide(t.Context(), question(fmt.Sprint(i)))
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("questions took %s", waited)
		}
		late := map[string]bool{}
		for len(late) < 100 {
			late[(<-p.Changed()).Object.GetName()] = true
		}
		mu.Lock()
		if took := time.Since(start); most != maxQuestions || took > 30*time.Second {
			t.Errorf("%d questions at a time, all were answered after %s", most, took)
		}
		mu.Unlock()
		for i := range 100 {
			p.Forget(question(fmt.Sprint(i)).Slice)
		}
		synctest.Wait()
	})
}
