package stored

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTally(t *testing.T) {
	tally, at := newTally(), time.Unix(0, 0)
	expect := func(what string, want map[string]sum) {
		t.Helper()
		if diff := cmp.Diff(want, tally.sums(at), cmp.AllowUnexported(sum{})); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	tally.change("shop-rome", 0, 10, at)
	tally.change("default", 0, 1000, at)
	expect("whose twin it is, is not known yet", map[string]sum{})
	tally.belongs("shop-rome", "rome")
	tally.belongs("store-rome", "rome")
	tally.belongs("shop-naples", "naples")
	tally.change("store-rome", 0, 5, at)
	tally.change("shop-naples", 0, 7, at)
	expect("twins of one consumer are summed up", map[string]sum{"rome": {held: 15}, "naples": {held: 7}})
	tally.change("shop-rome", 10, 20, at)
	tally.change("shop-naples", 7, 0, at)
	expect("what was overwritten or deleted is kept", map[string]sum{"rome": {held: 25, past: 10}, "naples": {past: 7}})
	at = at.Add(compaction)
	tally.change("shop-rome", 20, 1, at)
	expect("it is kept until it is compacted", map[string]sum{"rome": {held: 6, past: 30}, "naples": {past: 7}})
	at = at.Add(2 * grain)
	expect("then what is younger is", map[string]sum{"rome": {held: 6, past: 20}})
	if tally.accounts["shop-naples"] != nil || tally.accounts["default"] == nil {
		t.Errorf("the accounts are %v", tally.accounts)
	}
}

func TestOver(t *testing.T) {
	k := &keeper{limit: 100}
	for name, tc := range map[string]struct {
		sum       sum
		was, want bool
	}{
		"little":                      {sum{held: 50, past: 100}, false, false},
		"all that is allowed":         {sum{held: 100, past: 300}, false, false},
		"more":                        {sum{held: 101}, false, true},
		"more with the past":          {sum{held: 50, past: 351}, false, true},
		"a little less than too much": {sum{held: 95}, true, true},
		"a tenth less than too much":  {sum{held: 90, past: 270}, true, false},
	} {
		if got := k.over(tc.sum, tc.was); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Of an object nothing is kept but which it is and how large.
func TestSized(t *testing.T) {
	text := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b","resourceVersion":"7","labels":{"c":"d"},"annotations":{"e":"f"}},"data":{"g":"h"}}`
	var got sized
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := sized{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "a", ResourceVersion: "7"}, bytes: int64(len(text))}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sized{})); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}`), &got); err != nil || got.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("the end of a first list is lost: %v, %v", got.Annotations, err)
	}
	if err := json.Unmarshal([]byte(`{"metadata":[]}`), &got); err == nil {
		t.Error("what is no object is taken for one")
	}
}
