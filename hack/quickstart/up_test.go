package main

import (
	"slices"
	"testing"
)

// A tour after the end of a peering finds all pods at home: half of them are made anew, so that the other half of the screen is not empty.
func TestPodsThatAreAllAtHomeAreSpread(t *testing.T) {
	for sentence, test := range map[string]struct {
		pods string
		want []string
	}{
		"in both clusters":            {"a rome-1 \nb milan \nc rome-1 \nd milan \n", nil},
		"all came home":               {"a rome-1 \nb rome-1 \nc rome-1 \nd rome-1 \n", []string{"a", "b"}},
		"all but one that is leaving": {"a rome-1 \nb rome-1 \nc milan 2026-01-01T00:00:00Z\nd rome-1 \ne rome-1 \n", []string{"a", "b"}},
		"none is there yet":           {"", nil},
	} {
		if got := tooMany(test.pods); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", sentence, got, test.want)
		}
	}
}
