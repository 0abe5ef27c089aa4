package reconcile

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// NotOurs says that an object of a name that is needed exists and was made by, or for, somebody else. It is left alone and, as nobody
// tells when it goes, looked at again like anything that is refused. The reason is one of the exported condition reasons.
func NotOurs(reason, kind string, key types.NamespacedName) error {
	return notOurs(reason, kind, key, "")
}

// NotOursAt is NotOurs for an object in another cluster.
func NotOursAt(cluster, reason, kind string, key types.NamespacedName) error {
	return notOurs(reason, kind, key, fmt.Sprintf(" in cluster %q", cluster))
}

func notOurs(reason, kind string, key types.NamespacedName, where string) error {
	name := key.Name
	if key.Namespace != "" {
		name = key.String()
	}
	return Refuse(reason, fmt.Errorf("%s %s%s exists and is not ours, so it is left alone: rename or delete it, or use another name", kind, name, where))
}
