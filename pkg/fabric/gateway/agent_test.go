package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/networking/inputs"
	"liqo.io/liqo/test/fakeapi"
)

// What counts for the peer goes by the label and by age, whatever it is called. The role may come later than the gateway: until then its lists are
// forbidden, and tried again.
func TestWhatCountsForThePeer(t *testing.T) {
	api, refused := fakeapi.NewREST(), atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/configurations") && refused.Add(1) == 1 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		api.ServeHTTP(w, request)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	cluster, err := agent.Connect(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	a := New(Options{Cluster: cluster, Namespace: "liqo-tenant-milan", Name: "server", Peer: "milan"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	if err := agent.Sync(ctx, group, a.followers()...); err != nil {
		t.Fatal(err)
	}
	is := func(wantConfiguration, wantKey, wantMissing string) {
		t.Helper()
		eventually(t, func() string {
			configuration, key := "none", "none"
			if c := a.configuration(); c != nil {
				configuration = c.Name
			}
			if k := a.key(); k != nil {
				key = k.Name
			}
			_, _, missing := a.wanted(inputs.GatewayPod{})
			if configuration == wantConfiguration && key == wantKey && missing.Error() == wantMissing+" is not known yet" {
				return ""
			}
			return fmt.Sprintf("got %s, %s, %v; want %s, %s, %s", configuration, key, missing, wantConfiguration, wantKey, wantMissing)
		})
	}
	// put makes one of each, that many hours after noon.
	put := func(meta metav1.ObjectMeta, hours time.Duration) {
		meta.CreationTimestamp = metav1.NewTime(noon.Add(hours * time.Hour))
		api.Put(t, here+"configurations/"+meta.Name, &networkingv1beta1.Configuration{TypeMeta: metav1.TypeMeta{Kind: "Configuration"}, ObjectMeta: meta})
		api.Put(t, here+"publickeies/"+meta.Name, &networkingv1beta1.PublicKey{TypeMeta: metav1.TypeMeta{Kind: "PublicKey"}, ObjectMeta: meta})
	}
	const unlabelled, unseen = "a Configuration with label liqo.io/remote-cluster-id=milan", "how the two clusters see each other (Configuration)"
	is("none", "none", unlabelled)
	for hours, name := range []string{"first", "second", "a-third"} {
		put(metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: name}, time.Duration(hours))
	}
	is("none", "none", unlabelled)
	put(ofMilan("a-third"), 2)
	is("a-third", "a-third", unseen)
	put(ofMilan("first"), 0)
	is("first", "first", unseen)
	put(ofMilan("second"), 1)
	api.Delete(here + "configurations/first")
	is("second", "first", unseen)
	api.Delete(here + "publickeies/first")
	is("second", "second", unseen)
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// fixedSide is a side whose object never changes.
type fixedSide struct {
	agent.Follower
	is own
}

func (f fixedSide) own() (own, bool) { return f.is, true }

// Who stands by wants nothing of the kernel, also if it had the tunnel a moment ago, and is as well as can be: a Deployment goes on then.
func TestWhoStandsByWantsNothing(t *testing.T) {
	mine, others := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.99")
	for sentence, test := range map[string]struct {
		active netip.Addr
		want   bool
	}{
		"nobody said who has the tunnel": {netip.Addr{}, false},
		"this pod has it":                {mine, false},
		"another one has it":             {others, true},
	} {
		if got := (own{active: test.active}).isAnothers(mine); got != test.want {
			t.Errorf("%s: %t", sentence, got)
		}
	}
	health := &agent.Health{}
	l := &loop{
		Agent:    &Agent{Options: Options{Health: health, Pod: inputs.GatewayPod{Address: mine, Server: true}}, side: fixedSide{is: own{active: others}}},
		resolver: newResolver(), live: newLiveness(noon), kept: &dataplane.State{}, pod: inputs.GatewayPod{MTU: 1500},
	}
	l.program()
	l.tell()
	if l.kept != nil || l.pod.MTU != 0 {
		t.Errorf("who stands by wants %+v as %+v", l.kept, l.pod)
	}
}
