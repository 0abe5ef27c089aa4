package target

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/failure"
)

// Named is an object that a name may stand for, and the peer whose it is.
type Named struct {
	client.Object
	PeerID string
}

// Choice says which object of one kind the user means.
type Choice struct {
	// Kind in lower case, and the command that lists its objects.
	Kind, ListedBy string
	// Name of the object.
	Name string
	// PeerID of the peer whose it is; empty means whoever has something of the name. Role is what the peer is: consumer, provider or peer.
	PeerID, Role string
}

// Choose returns the one object that has the name, of the peer if one was named.
func (c *Cluster) Choose(o Choice, all []Named) (client.Object, error) {
	var found []Named
	var known, places []string
	for _, named := range all {
		if o.PeerID != "" && named.PeerID != o.PeerID {
			continue
		}
		known = append(known, named.GetName())
		if named.GetName() == o.Name {
			found, places = append(found, named), append(places, fmt.Sprintf("that of %s in namespace %s", named.PeerID, named.GetNamespace()))
		}
	}
	switch {
	case len(found) == 0:
		return nil, c.NoneNamed(o, known)
	case len(found) > 1:
		return nil, failure.Unmet("say whose is meant with --remote-cluster-id", "%s has several %ss of the name %s: %s",
			c.Name, o.Kind, o.Name, strings.Join(places, ", "))
	default:
		return found[0].Object, nil
	}
}

// NoneNamed says that nothing has the name, and what may be meant.
func (c *Cluster) NoneNamed(o Choice, known []string) error {
	next := "list them with '" + c.Command(o.ListedBy) + "'"
	if likely := failure.Nearest(o.Name, known); len(likely) > 0 {
		next = "did you mean " + likely[0] + "?"
	}
	whose := ""
	if o.PeerID != "" {
		whose = " of " + o.Role + " " + o.PeerID
	}
	return failure.Unmet(next, "%s has no %s %s%s", c.Name, o.Kind, o.Name, whose)
}
