package mirror

import (
	"fmt"
	"strings"

	"liqo.io/liqo/pkg/reflection"
)

// action is what has to be done with a remote object.
type action int

const (
	// leave: nothing has to be done.
	leave action = iota
	// create it.
	create
	// change some fields.
	change
	// replace it: remove it, then create it.
	replace
	// remove it.
	remove
	// await its end, which is under way.
	await
	// conflict: it is not ours.
	conflict
)

// decision is what to do, and why.
type decision struct {
	action  action
	changes []reflection.Change
	why     string
	// immutable says that it is to be replaced only because a field cannot be changed: it stands for the object that is there now.
	immutable bool
}

// decide says what makes the live object the wanted one; nil stands for none on either side.
func decide(kind *reflection.Kind, home, remote string, wanted, live reflection.Object) decision {
	switch {
	case live == nil && wanted == nil:
		return decision{action: leave}
	case live == nil:
		return decision{action: create, why: "it is missing"}
	case !reflection.IsOurs(live, home, remote) && wanted == nil:
		return decision{action: leave, why: "it is not ours"}
	case !reflection.IsOurs(live, home, remote):
		return decision{action: conflict, why: "it is not ours"}
	case live.GetDeletionTimestamp() != nil:
		return decision{action: await, why: "it is being deleted"}
	case wanted == nil:
		return decision{action: remove, why: "its origin is gone or stays at home"}
	case reflection.OriginUID(live) != reflection.OriginUID(wanted):
		return decision{action: replace, why: "its origin was replaced by another of the same name"}
	}
	if field := kind.Immutable(live, wanted); field != "" {
		return decision{action: replace, why: fmt.Sprintf("field %s", field), immutable: true}
	}
	changes := kind.Differences(live, wanted)
	if len(changes) == 0 {
		return decision{action: leave}
	}
	return decision{action: change, changes: changes, why: "field " + strings.Join(changes[0].Path, ".")}
}
