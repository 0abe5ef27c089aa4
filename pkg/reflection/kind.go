package reflection

import (
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Object is any Kubernetes object with metadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// ObjectList is any list of Kubernetes objects.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// Kind says how one kind of object crosses. Everything in it is a pure function or a constant, so that whoever wants to know
// what would happen to an object (an engine, explain, a test) asks here.
type Kind struct {
	// Name is the lower-case name by which users configure the kind, such as configmap.
	Name string
	// GVR is the resource, the same in both clusters.
	GVR schema.GroupVersionResource
	// GVK is the kind, the same in both clusters.
	GVK schema.GroupVersionKind
	// Ledger names the ConfigMap in the twin namespace that stands in for reading a kind that may only be written. Empty
	// for kinds that may be read.
	Ledger string
	// DefaultPolicy applies where the user configured none.
	DefaultPolicy offloadingv1beta1.ReflectionType
	// ByReference says that pods use objects of the kind by name, so that the policy Referenced makes sense.
	ByReference bool
	// Names lists the objects in the same namespace that one of the kind leads to by name, its parent aside. While one of them is somebody
	// else's at the provider, the object does not cross. Those of kind UsesKind it uses wherever it crosses to, besides what pods use. Nil
	// means none.
	Names    func(Object) []Reference
	UsesKind string
	// DefaultWorkers is how many objects are handled at a time where the user configured nothing.
	DefaultWorkers int32
	// NewObject makes an empty object.
	NewObject func() Object
	// NewList makes an empty list.
	NewList func() ObjectList
	// Translate says what the remote object must look like, or why there must be none.
	Translate func(Input) Result
	// Changes lists what, beyond labels and annotations, must change in the live object. A nil live object stands for one
	// that cannot be read: then everything is listed.
	Changes func(live, wanted Object) []Change
	// MustRecreate names the immutable field that keeps the live object from being changed into the wanted one; empty if
	// nothing does. Nil means that no field of the kind is immutable.
	MustRecreate func(live, wanted Object) string
	// Hash identifies the content of an object as the Ledger shows it. Nil for kinds without Ledger.
	Hash func(Object) string
	// RemoteName is the name of the remote object. Nil means the local name.
	RemoteName func(home, name string) string
	// LocalName undoes RemoteName.
	LocalName func(home, name string) string
	// Relax gives up the part of a wanted object that the provider refused with these words, if it works without; a nil result
	// means that it does not. What is given up is said for people, of the same part in the same words, which are noted on the remote object.
	// Nil means that every part is needed.
	Relax func(wanted Object, refusal string) (relaxed Object, given string)
	// Keep says what of a live object stays although it would not be made like this any more: to change it would take more away than
	// it is worth. kept is the wanted object with that, noted on it; a nil one means that nothing stays. Nil means that nothing ever does.
	Keep func(live, wanted Object) (kept Object, what string)
	// Lacks says, for people, what a remote object that was just made does not have, though the local one has it and the provider could
	// have given it; empty if it lacks nothing. Nil means that nothing of the kind is the provider's to give.
	Lacks func(local, made Object) string
	// Back says what comes back. Nil means that nothing does.
	Back *Back
	// SelectsTwins says that objects of the kind choose namespaces: they are looked at again whenever Input.Twins may have changed.
	SelectsTwins bool
	// Twin is what the remote object is, where it is of another kind than the local one. Nil means the same kind.
	Twin *Twin
	// Parent names the kind without which objects of this one mean nothing, such as the Service of an EndpointSlice; empty if
	// there is none. A namespace is watched for the kind once it holds a parent, or its twin holds something of the kind.
	Parent string
	// ParentName is the name of the object of kind Parent, in the same namespace, that decides about an object; empty if none
	// does. Objects of the kind are looked at again whenever their parent changes. Nil means that no parent decides about any
	// object: it only has to be there, and only if its kind is reflected.
	ParentName func(Object) string
	// Remark tells, for people, what is wrong with the parent of an object at home, now that these are all of its objects; an empty reason
	// says that nothing is. It keeps nothing from crossing. Nil means that nothing ever is.
	Remark func(in Input, siblings func() []Object) (reason, message string)
	// Calm is how long an object that was just written is left alone while it changes at home, so that a burst of changes
	// becomes few writes; the first one is made at once. Zero writes each change at once.
	Calm time.Duration
}

// Back is what comes back from remote objects into local ones.
type Back struct {
	// Take takes it from the live remote object into a copy of the local one; a nil result means that nothing changes. What it takes is
	// bounded and valid.
	Take func(local, live Object) Object
	// Field are the names of the fields that lead to the one that is written.
	Field []string
}

// Twin is the kind of remote objects that differ from local ones.
type Twin struct {
	GVR       schema.GroupVersionResource
	GVK       schema.GroupVersionKind
	NewObject func() Object
	NewList   func() ObjectList
}

// RemoteKind is what the remote object is.
func (k Kind) RemoteKind() Twin {
	if k.Twin != nil {
		return *k.Twin
	}
	return Twin{GVR: k.GVR, GVK: k.GVK, NewObject: k.NewObject, NewList: k.NewList}
}

// Policies are those that a user may choose for the kind, the default first; none if it follows rules of its own
// or its parent.
func (k Kind) Policies() []offloadingv1beta1.ReflectionType {
	switch {
	case k.ParentName != nil || k.DefaultPolicy == "" || k.DefaultPolicy == offloadingv1beta1.CustomLiqo:
		return nil
	case k.ByReference:
		return []offloadingv1beta1.ReflectionType{offloadingv1beta1.DenyList, offloadingv1beta1.AllowList, offloadingv1beta1.Referenced}
	default:
		return []offloadingv1beta1.ReflectionType{offloadingv1beta1.DenyList, offloadingv1beta1.AllowList}
	}
}

// WriteOnly tells whether the remote objects can be written, but not read.
func (k Kind) WriteOnly() bool { return k.Ledger != "" }

// Remote returns the name at the provider of the local object with the given name.
func (k Kind) Remote(home, name string) string {
	if k.RemoteName == nil {
		return name
	}
	return k.RemoteName(home, name)
}

// Local returns the name of the local object that the remote object with the given name stands for.
func (k Kind) Local(home, name string) string {
	if k.LocalName == nil {
		return name
	}
	return k.LocalName(home, name)
}

// Differences lists all that must change in the live object so that it holds what is wanted, metadata included. Nothing to
// change means that nothing has to be written. A nil live object stands for one that cannot be read; once its answer to these
// changes is known, what differs still is asked for again.
func (k Kind) Differences(live, wanted Object) []Change {
	return append(metadataChanges(live, wanted), k.Changes(live, wanted)...)
}

// Contains tells whether the live object already holds what is wanted.
func (k Kind) Contains(live, wanted Object) bool { return len(k.Differences(live, wanted)) == 0 }

// Immutable names the field that keeps the live object from being changed into the wanted one; empty if nothing does.
func (k Kind) Immutable(live, wanted Object) string {
	if k.MustRecreate == nil {
		return ""
	}
	return k.MustRecreate(live, wanted)
}

// Input is all that Translate may depend on.
type Input struct {
	// Local is the local object; it is not changed.
	Local Object
	// NamespaceAnnotations are the annotations of the local object's namespace.
	NamespaceAnnotations map[string]string
	// Home is this cluster's ID.
	Home string
	// Remote is the provider's cluster ID.
	Remote string
	// RemoteNamespace is the twin of the local object's namespace.
	RemoteNamespace string
	// Policy is the configured policy; empty means the kind's default.
	Policy offloadingv1beta1.ReflectionType
	// NotReflected is what stays at home of every object.
	NotReflected NotReflected
	// Parent is the local object that decides about this one; nil if the kind has none or it does not exist.
	Parent Object
	// ParentPolicy is the configured policy of the parent's kind.
	ParentPolicy offloadingv1beta1.ReflectionType
	// Referenced says that a pod bound to a virtual node of the provider uses the object, or another object that crosses.
	Referenced bool
	// Provider is what this cluster knows of the provider.
	Provider Provider
	// Twins are the labels that namespaces have at home, by the names of all their twins at the provider; nil unless the kind selects twins.
	Twins map[string]map[string]string
}

// Provider is what this cluster knows of a provider, and pinned: nothing in it is read from the provider at the moment of
// the translation.
type Provider struct {
	// IngressClass is the class that Ingresses get there; empty leaves it to the provider.
	IngressClass string
	// LoadBalancerClass is the class that Services of type LoadBalancer get there; empty leaves it to the provider.
	LoadBalancerClass string
	// Nodes are the virtual nodes of this cluster that stand for the provider: it knows the endpoints on them by itself.
	Nodes map[string]bool
	// Addresses says how an address of this cluster is reached from the provider; nil means as it is.
	Addresses Addresses
	// Elsewhere tells which other provider has the pod of an address of this cluster, and the address that the pod has there; nil if that is
	// not known.
	Elsewhere interface {
		Home(seen netip.Addr) (cluster string, own netip.Addr, found bool)
	}
	// Ranges says what a range of addresses that this cluster knows is called at the provider, false if that is not known; nil means as it is.
	Ranges interface {
		Range(here netip.Prefix) (there netip.Prefix, known bool)
	}
}

// Addresses says how an address of one cluster is reached from another one; false means not at all. It is plain data, compared by value.
type Addresses interface {
	Translate(own netip.Addr) (seen netip.Addr, ok bool)
}

// Result is what Translate decided: either Apply or Skip is set.
type Result struct {
	// Apply is the remote object that is wanted.
	Apply Object
	// Skip says why there is none.
	Skip *Skip
}

// Skip says why an object stays at home.
type Skip struct {
	// Reason for machines, one of the exported reasons of the offloading group.
	Reason string
	// Message for people, with the way out.
	Message string
	// Keep leaves a remote object from better times as it is, where false removes it.
	Keep bool
	// Routine says that objects come to stay at home in this way as a matter of course, without anybody's decision: a remote
	// object that goes because of it is not worth an Event.
	Routine bool `json:",omitempty"`
}

// Change is one field of a remote object that has to be set or removed.
type Change struct {
	// Path are the names of the fields that lead to the changed one.
	Path []string
	// Value is what the field must be; nil means that it must not be there.
	Value any
}

// Kinds returns the table of all reflected kinds.
func Kinds() []Kind {
	return []Kind{configMapKind(), secretKind(), serviceKind(), endpointSliceKind(), ingressKind(), networkPolicyKind()}
}

// Lookup finds a kind by the name that users configure it with.
func Lookup(name string) (Kind, bool) {
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}
