package massremoval

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
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
	// maxSummary is how many bytes a summary may have: it is part of a condition's message, with the way out.
	maxSummary = 600
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

// TooMany are the namespaces of which more copies are missing an original than may go at once by an administrator's share in percent. Of those with
// data none may. A namespace of which more than its share is missing waits if these are more than a few: of it alone, or together with those of other such
// namespaces, unless these wait by themselves. What one namespace's users do to it holds nothing of another one.
func TooMany(missing, all map[string]int, share int, data bool) map[string]bool {
	held := map[string]bool{}
	if share >= Unlimited {
		return held
	}
	for namespace, count := range missing {
		if data && count > 0 || count > Few && count*100 > share*all[namespace] {
			held[namespace] = true
		}
	}
	sum, total := 0, 0
	for namespace, count := range missing {
		if !held[namespace] {
			sum += count
		}
	}
	for namespace, count := range all {
		if !held[namespace] {
			total += count
		}
	}
	if sum <= Few || sum*100 <= share*total {
		return held
	}
	for namespace, count := range missing {
		if count*100 > share*all[namespace] {
			held[namespace] = true
		}
	}
	return held
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

// summary says how many copies of which kinds are held in which namespaces.
func summary(held []Copy) string {
	counts := map[string]map[string]int{}
	for _, c := range held {
		if counts[c.Namespace] == nil {
			counts[c.Namespace] = map[string]int{}
		}
		counts[c.Namespace][c.Kind]++
	}
	var said []string
	size := 0
	for _, namespace := range slices.Sorted(maps.Keys(counts)) {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(counts[namespace])) {
			kinds = append(kinds, fmt.Sprintf("%d of kind %s", counts[namespace][kind], kind))
		}
		part := strings.Join(kinds, ", ") + " in namespace " + namespace
		if size += len(part); size > maxSummary {
			said = append(said, beyond)
			break
		}
		said = append(said, part)
	}
	return strings.Join(said, "; ")
}

// beyond ends a summary that has no room for all.
const beyond = "and more in other namespaces"

var (
	inNamespace = regexp.MustCompile(`((?:\d+ of kind \S+ )+)in namespace ([^ ,;]+)`)
	ofKind      = regexp.MustCompile(`of kind ([^ ,]+)`)
)

// heldBefore reads a summary, with whatever is around it: the kinds and namespaces of what is held, and whether these are all.
func heldBefore(said string) (places map[place]bool, all bool) {
	places = map[place]bool{}
	for _, part := range inNamespace.FindAllStringSubmatch(said, -1) {
		for _, kind := range ofKind.FindAllStringSubmatch(part[1], -1) {
			places[place{kind: kind[1], namespace: part[2]}] = true
		}
	}
	return places, len(places) > 0 && !strings.Contains(said, beyond)
}

// compare orders copies.
func compare(a, b Copy) int {
	return strings.Compare(a.Kind+" "+a.Namespace+" "+a.Name+" "+string(a.Origin), b.Kind+" "+b.Namespace+" "+b.Name+" "+string(b.Origin))
}
