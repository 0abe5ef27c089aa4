package replication

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// kind is one replicated kind.
type kind struct {
	gvk      schema.GroupVersionKind
	resource string
	object   func() client.Object
	list     func() client.ObjectList
	// copySpec copies the spec, and tells whether that changed anything; earlier says that the copy was made in another peering.
	copySpec func(from, to client.Object, earlier bool) bool
	// pull merges the checked status of the copy into the local object.
	pull func(local, remote client.Object, now time.Time)
	// unsent says on the local object why it could not be replicated.
	unsent func(local client.Object, reason, message string, now time.Time)
}

func typed[T any, O interface {
	*T
	client.Object
}](gvk schema.GroupVersionKind, resource string, list func() client.ObjectList, spec func(O) any, copySpec func(from, to O, earlier bool),
	pull func(local, remote O, now time.Time), unsent func(local O, reason, message string, now time.Time),
) kind {
	return kind{
		gvk: gvk, resource: resource, list: list,
		object: func() client.Object { return O(new(T)) },
		copySpec: func(from, to client.Object, earlier bool) bool {
			before := spec(to.(O))
			copySpec(from.(O), to.(O), earlier)
			return !equality.Semantic.DeepEqual(before, spec(to.(O)))
		},
		pull: func(local, remote client.Object, now time.Time) { pull(local.(O), remote.(O), now) },
		unsent: func(local client.Object, reason, message string, now time.Time) {
			unsent(local.(O), reason, message, now)
		},
	}
}

// kinds are all that is replicated.
func kinds() []kind {
	auth, offloading := authv1beta1.GroupVersion, offloadingv1beta1.GroupVersion
	return []kind{
		typed(auth.WithKind("ResourceSlice"), "resourceslices",
			func() client.ObjectList { return &authv1beta1.ResourceSliceList{} },
			func(o *authv1beta1.ResourceSlice) any { return o.Spec },
			func(from, to *authv1beta1.ResourceSlice, _ bool) { from.Spec.DeepCopyInto(&to.Spec) }, pullSlice, unsentSlice),
		typed(offloading.WithKind("NamespaceMap"), "namespacemaps",
			func() client.ObjectList { return &offloadingv1beta1.NamespaceMapList{} },
			func(o *offloadingv1beta1.NamespaceMap) any { return o.Spec },
			copyMap, pullMap, unsentMap),
		typed(auth.WithKind("Renew"), "renews",
			func() client.ObjectList { return &authv1beta1.RenewList{} },
			func(o *authv1beta1.Renew) any { return o.Spec },
			func(from, to *authv1beta1.Renew, _ bool) { from.Spec.DeepCopyInto(&to.Spec) }, pullRenew, unsentRenew),
	}
}

// mapper knows the replicated kinds, so that nothing needs to be discovered at a peer.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds() {
		m.AddSpecific(k.gvk, k.gvk.GroupVersion().WithResource(k.resource), k.gvk.GroupVersion().WithResource(k.resource), meta.RESTScopeNamespace)
	}
	return m
}
