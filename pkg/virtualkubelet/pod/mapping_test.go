package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// D8: only pods of the namespaces that a new mapping is about are looked at again; what the provider refuses of others is not tried
// because of it.
func TestWhatAMappingChanges(t *testing.T) {
	old := Mapping{Known: true, Desired: map[string]string{"a": "a-1", "b": "b-1"}, Effective: map[string]string{"a": "a-1"}}
	for name, tc := range map[string]struct {
		next Mapping
		want []string
	}{
		"nothing":                 {old, nil},
		"one is accepted":         {Mapping{Known: true, Desired: old.Desired, Effective: map[string]string{"a": "a-1", "b": "b-1"}}, []string{"b"}},
		"one is accepted no more": {Mapping{Known: true, Desired: old.Desired}, []string{"a"}},
		"one is offloaded anew":   {Mapping{Known: true, Desired: map[string]string{"a": "a-1", "b": "b-1", "c": ""}, Effective: old.Effective}, []string{"c"}},
		"two go":                  {Mapping{Known: true}, []string{"a", "b"}},
		"another twin":            {Mapping{Known: true, Desired: map[string]string{"a": "a-2", "b": "b-1"}, Effective: old.Effective}, []string{"a"}},
		"it is not known":         {Mapping{}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, old.changes(tc.next)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
