package upstream

import (
	"strings"
	"testing"
)

// TestTheListsAgree keeps the lists from drifting apart: names are written down once, and every reason belongs to a test that is run.
func TestTheListsAgree(t *testing.T) {
	count, reasons, quick := map[string]int{}, 0, 0
	seen := map[string]bool{}
	for _, test := range Tests() {
		if seen[test.Name] {
			t.Errorf("%s is listed twice", test.Name)
		}
		seen[test.Name] = true
		count[test.Set]++
		if test.Fails != "" {
			reasons++
		}
		if test.Quick {
			quick++
			if test.Fails != "" {
				t.Errorf("%s is expected to fail, and cannot speak for the others", test.Name)
			}
		}
		if conformance := strings.Contains(test.Name, "[Conformance]"); conformance != (test.Set == Conformance) {
			t.Errorf("%s is in set %s", test.Name, test.Set)
		}
	}
	if count[Conformance] != 278 || count[Node] != 84 {
		t.Errorf("there are %d conformance and %d node tests, want 278 and 84: figures could not be compared", count[Conformance], count[Node])
	}
	if want := len(expectations()); reasons != want {
		t.Errorf("%d tests have a reason for their failure, and %d are written down: a name is wrong, or a reason empty", reasons, want)
	}
	if want := len(lines("quick.txt")); quick != want || quick != 40 {
		t.Errorf("%d quick tests are found of %d, want 40: a name is wrong", quick, want)
	}
}
