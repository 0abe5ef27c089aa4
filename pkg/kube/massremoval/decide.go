package massremoval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// Few is how many copies of a kind may always go.
	Few = 5
	// Unlimited is the share, in percent, from which nothing is held.
	Unlimited = 100
	// DefaultShare is the share of the copies of a kind, in percent, that may go unless something else is said.
	DefaultShare = 50
	// named is how many namespaces a message names.
	named = 5
)

// Copy is a copy at the provider, by its original.
type Copy struct {
	// Kind, as users configure it, Namespace and Name of the original.
	Kind, Namespace, Name string
	// Origin is the UID of the original.
	Origin types.UID
}

// Inventory is what there is of a kind at the provider.
type Inventory struct {
	// Missing are the copies whose original is not there, and was not seen to go.
	Missing []Copy
	// All is how many copies there are of each namespace, those that are missing an original included.
	All map[string]int
	// Data says that data goes with them: of such copies not even a few go.
	Data bool
}

// TooMany tells whether the copies that are missing an original, by namespace, are more than may go at once by an administrator's share in
// percent: of all that there are, or of those of one namespace. Of those with data none may.
func TooMany(missing, all map[string]int, share int, data bool) bool {
	if share >= Unlimited {
		return false
	}
	more := func(missing, all int) bool {
		return data && missing > 0 || missing > Few && missing*100 > share*all
	}
	sum, total := 0, 0
	for namespace, count := range missing {
		if more(count, all[namespace]) {
			return true
		}
		sum += count
	}
	for _, count := range all {
		total += count
	}
	return more(sum, total)
}

// token names a set of copies.
func token(held []Copy) string {
	if len(held) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, c := range held {
		fmt.Fprintln(sum, c.Kind, c.Namespace, c.Name, c.Origin)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// summary says how many copies of which kinds in which namespaces are held.
func summary(held []Copy) string {
	kinds, namespaces := map[string]int{}, map[string]bool{}
	for _, c := range held {
		kinds[c.Kind]++
		namespaces[c.Namespace] = true
	}
	counts := make([]string, 0, len(kinds))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		counts = append(counts, fmt.Sprintf("%d of kind %s", kinds[kind], kind))
	}
	where := slices.Sorted(maps.Keys(namespaces))
	more := ""
	if left := len(where) - named; left > 0 {
		where, more = where[:named], fmt.Sprintf(" and %d more", left)
	}
	return fmt.Sprintf("%s in namespaces %s%s", strings.Join(counts, ", "), strings.Join(where, ", "), more)
}

// compare orders copies.
func compare(a, b Copy) int {
	return strings.Compare(a.Kind+" "+a.Namespace+" "+a.Name+" "+string(a.Origin), b.Kind+" "+b.Namespace+" "+b.Name+" "+string(b.Origin))
}
