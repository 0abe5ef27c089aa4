package supply

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/capacity"
)

// Two consumers are each promised 90 % of what is free: 1.8 times as much as there is.
func TestWhatIsOfferedIsMeasured(t *testing.T) {
	s := New(Options{})
	s.Node(node("n", "100"))
	if n := testutil.CollectAndCount(s); n != 0 {
		t.Errorf("%d metrics are shown before all is counted", n)
	}
	s.Counted()
	s.Pod(pod("own", "20"))
	s.Pod(ofRome(pod("theirs", "10")))
	s.asks(t, capacity.Wish{})
	turin := types.NamespacedName{Namespace: "liqo-tenant-turin", Name: "b"}
	if _, err := s.Offer(turin, Of("turin", "liqo.io:slice:b-turin"), capacity.Wish{}, nil); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP liqo_node_free What a consumer could use here: what nodes have, less what pods of others request.
# TYPE liqo_node_free gauge
liqo_node_free{cluster_id="rome",resource="cpu"} 80
liqo_node_free{cluster_id="rome",resource="pods"} 1099
liqo_node_free{cluster_id="turin",resource="cpu"} 70
liqo_node_free{cluster_id="turin",resource="pods"} 1098
# HELP liqo_node_offered What the virtual node of a consumer's ResourceSlice is offered here.
# TYPE liqo_node_offered gauge
liqo_node_offered{cluster_id="rome",resource="cpu",resource_slice="a"} 72
liqo_node_offered{cluster_id="rome",resource="pods",resource_slice="a"} 989
liqo_node_offered{cluster_id="turin",resource="cpu",resource_slice="b"} 63
liqo_node_offered{cluster_id="turin",resource="pods",resource_slice="b"} 988
# HELP liqo_node_used What the pods of a consumer's ResourceSlice request here.
# TYPE liqo_node_used gauge
liqo_node_used{cluster_id="rome",resource="cpu",resource_slice="a"} 10
liqo_node_used{cluster_id="rome",resource="pods",resource_slice="a"} 1
liqo_node_used{cluster_id="turin",resource="cpu",resource_slice="b"} 0
liqo_node_used{cluster_id="turin",resource="pods",resource_slice="b"} 0
# HELP liqo_provider_overcommitment All that consumers are offered together, in parts of what they could use: more than 1 is promised more than once.
# TYPE liqo_provider_overcommitment gauge
liqo_provider_overcommitment{resource="cpu"} 1.6875
liqo_provider_overcommitment{resource="pods"} 1.7989080982711556
`
	if err := testutil.CollectAndCompare(s, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
