package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/netlink"
	"liqo.io/liqo/test/fakeapi"
)

func nodeState(t *testing.T, change func(*dataplane.NodeInput)) dataplane.State {
	t.Helper()
	input := dataplane.NodeInput{
		Self:    dataplane.InternalNode{VTEP: netip.MustParseAddr("172.31.1.2"), External: netip.MustParseAddr("10.70.0.2"), Pods: []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24")}},
		Fabrics: []dataplane.InternalFabric{{Gateway: netip.MustParseAddr("10.244.1.200"), Remote: []netip.Prefix{netip.MustParsePrefix("10.61.0.0/16")}, MTU: 1440}}, MTU: 1500, Port: 6091,
	}
	if change != nil {
		change(&input)
	}
	state, problems := dataplane.Node(input)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return state
}

func TestDifferences(t *testing.T) {
	wanted := nodeState(t, nil)
	if text := Differences(wanted, nodeState(t, nil)); text != "" {
		t.Errorf("of the same: %s", text)
	}
	other := nodeState(t, func(i *dataplane.NodeInput) { i.Fabrics[0].MTU = 1300 })
	other.Rules = []dataplane.Rule{{Priority: 98, Table: dataplane.FormerTable}}
	other.Firewall[0].Chains[1].Rules = other.Firewall[0].Chains[1].Rules[1:]
	want := `+ ip route replace 10.61.0.0/16 via 10.244.1.200 dev cni-liqo onlink src 10.70.0.2 mtu 1300 table 255 protocol 79
+ ip rule add pref 98 lookup 5163 protocol 79
- ip route replace 10.61.0.0/16 via 10.244.1.200 dev cni-liqo onlink src 10.70.0.2 mtu 1440 table 255 protocol 79
- table ip liqo: chain input: udp dport 6091 ip saddr @pods ip saddr != @gateways counter name spoofed drop
`
	if text := Differences(wanted, other); text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	turned := nodeState(t, nil)
	rules := turned.Firewall[0].Chains[1].Rules
	rules[0], rules[1] = rules[1], rules[0]
	if text := Differences(wanted, turned); text != "rules of the firewall are in another order\n" {
		t.Errorf("of rules in another order: %s", text)
	}
	routes := nodeState(t, func(i *dataplane.NodeInput) {
		i.Fabrics[0].Remote = append(i.Fabrics[0].Remote, netip.MustParsePrefix("10.62.0.0/16"))
	})
	slices.Reverse(routes.Routes)
	if text := Differences(nodeState(t, func(i *dataplane.NodeInput) {
		i.Fabrics[0].Remote = append(i.Fabrics[0].Remote, netip.MustParsePrefix("10.62.0.0/16"))
	}), routes); text != "" {
		t.Errorf("of routes in another order: %s", text)
	}
	if text := Differences(wanted, dataplane.State{}); strings.Contains(text, "+") || strings.Count(text, "- ") < 10 {
		t.Errorf("of nothing: %s", text)
	}
}

// reader is a kernel.
type reader struct {
	state dataplane.State
	err   error
}

func (r *reader) Read(dataplane.State) (dataplane.State, error) { return r.state, r.err }

// answered runs a question and returns what it prints and how it ends.
func answered(t *testing.T, port int, name string) string {
	t.Helper()
	for _, command := range Questions(&port) {
		if command.Name() != name {
			continue
		}
		var out strings.Builder
		command.SetOut(&out)
		command.SetArgs(nil)
		err := command.ExecuteContext(t.Context())
		return fmt.Sprintf("%s%v", out.String(), err)
	}
	t.Fatalf("there is no question %s", name)
	return ""
}

func TestQuestions(t *testing.T) {
	port := freePort(t)
	if text := answered(t, port, "health"); !strings.Contains(text, "the agent does not answer") {
		t.Errorf("nobody is there: %s", text)
	}
	health, kernel := &Health{}, &reader{}
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return health.Serve(ctx, port, kernel) })
	var text string
	for text = answered(t, port, "health"); strings.Contains(text, "does not answer") && ctx.Err() == nil; {
		text = answered(t, port, "health")
	}
	if text != "the agent has not read all that it needs yet\n" {
		t.Errorf("at first: %q", text)
	}
	health.Set(errors.New("refused"))
	if text := answered(t, port, "health"); text != "refused\n" {
		t.Errorf("refused: %q", text)
	}
	health.Set(nil)
	if text := answered(t, port, "health"); text != "<nil>" {
		t.Errorf("well: %q", text)
	}
	wanted := nodeState(t, nil)
	health.Want(wanted)
	if text := answered(t, port, "state"); text != wanted.String()+"<nil>" {
		t.Errorf("the state: %s", text)
	}
	if text := answered(t, port, "diff"); !strings.Contains(text, "- ip route replace 10.61.0.0/16") || !strings.HasSuffix(text, ErrDiffers.Error()) {
		t.Errorf("the differences: %s", text)
	}
	kernel.state = wanted
	if text := answered(t, port, "diff"); text != "<nil>" {
		t.Errorf("no differences: %s", text)
	}
	kernel.err = errors.New("unreadable")
	if text := answered(t, port, "diff"); text != "unreadable\n" {
		t.Errorf("an unreadable kernel: %q", text)
	}
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// What is followed is listed, followed and stripped; what is applied is seen.
func TestFollowAndApply(t *testing.T) {
	api := fakeapi.NewREST()
	served := httptest.NewServer(http.HandlerFunc(api.ServeHTTP))
	t.Cleanup(func() { served.CloseClientConnections(); served.Close() })
	cluster, err := Connect(&rest.Config{Host: served.URL})
	if err != nil {
		t.Fatal(err)
	}
	nodes := networkingv1beta1.GroupVersion.WithResource("internalnodes")
	put := func(name string) {
		api.Put(t, "networking.liqo.io/v1beta1/internalnodes/"+name, &networkingv1beta1.InternalNode{TypeMeta: metav1.TypeMeta{Kind: "InternalNode"}, ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		}})
	}
	put("b")
	put("a")
	changed := signal.New()
	all := Follow[networkingv1beta1.InternalNode](cluster, nodes, "", "", changed.Raise)
	one := Follow[networkingv1beta1.InternalNode](cluster, nodes, "", "b", changed.Raise)
	if Synced(all, one) {
		t.Error("what was not listed is synced")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	if err := Sync(ctx, group, all, one); err != nil {
		t.Fatal(err)
	}
	names := func() string {
		var texts []string
		for _, node := range all.All() {
			texts = append(texts, node.Name)
			if node.ManagedFields != nil || node.Annotations != nil {
				t.Errorf("kept %+v", node)
			}
		}
		return strings.Join(texts, " ") + ", " + one.One().Name
	}
	if got := names(); got != "a b, b" {
		t.Errorf("followed: %s", got)
	}
	put("c")
	deadline := time.After(10 * time.Second)
	for names() != "a b c, b" {
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("followed: %s", names())
		}
	}
	err = cluster.Apply(ctx, "me", Object{Resource: nodes, Kind: "InternalNode", Name: "b", Part: "status"}, nil, map[string]any{"status": map[string]any{"addresses": []string{"192.0.2.1"}}})
	if err != nil {
		t.Fatal(err)
	}
	for len(one.One().Status.Addresses) == 0 {
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%+v", one.One())
		}
	}
	err = cluster.Apply(ctx, "me", Object{Resource: nodes, Kind: "InternalNode", Name: "nobody", Part: "status"}, nil, map[string]any{"status": map[string]any{}})
	if err == nil || !strings.Contains(err.Error(), "writing InternalNode nobody") {
		t.Errorf("the error is %v", err)
	}
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestPlacement(t *testing.T) {
	var p Placement
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for i, tc := range []struct {
		report netlink.Report
		want   string
		// fails is for how long passes have failed by then.
		fails time.Duration
	}{
		{netlink.Report{Err: errors.New("refused")}, "false refused true", 0},
		{netlink.Report{Err: errors.New("refused otherwise")}, "false refused otherwise true", time.Second},
		{netlink.Report{Changes: []string{"a"}}, "true <nil> true", -1},
		{netlink.Report{Repair: true}, "true <nil> true", -1},
		{netlink.Report{Repair: true, Changes: []string{"a"}}, "true <nil> false", -1},
		{netlink.Report{Err: errors.New("refused")}, "false refused false", 0},
		{netlink.Report{}, "true <nil> false", -1},
	} {
		at := now.Add(time.Duration(i) * time.Second)
		p.See(t.Context(), tc.report, at)
		if fails := at.Sub(p.Failing); tc.fails >= 0 && fails != tc.fails || p.Failing.IsZero() != (tc.fails < 0) {
			t.Errorf("after report %d: passes fail since %s, not for %s", i, p.Failing, tc.fails)
		}
		if got := fmt.Sprintf("%t %v %t", p.Placed, p.Err, p.Repaired.IsZero()); got != tc.want {
			t.Errorf("after report %d: %s, want %s", i, got, tc.want)
		}
	}
	// Whoever fights with us changes what is told of it once a minute only.
	for _, tc := range []struct {
		after time.Duration
		what  string
		want  string
	}{{10 * time.Second, "b", "[a]"}, {70 * time.Second, "c", "[c]"}, {80 * time.Second, "d", "[c]"}} {
		p.See(t.Context(), netlink.Report{Repair: true, Changes: []string{tc.what}}, now.Add(tc.after))
		if got := fmt.Sprint(p.PutBack); got != tc.want || !p.Repaired.Equal(now.Add(tc.after)) {
			t.Errorf("after %s: %s at %s, want %s", tc.after, got, p.Repaired, tc.want)
		}
	}
}
