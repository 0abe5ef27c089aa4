package inputs

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

// Host is one that carries out what administrators ask for: a node, or a gateway.
type Host struct {
	// Category is CategoryFabric or CategoryGateway. Unique is the node's name, or the cluster ID of the gateway's peer.
	Category, Unique string
	// Namespace is where objects for all hosts of the category are, and those for one node: Liqo's own.
	Namespace string
	// Own is where objects for this host alone are: for a node the same, for a gateway the tenant namespace of its peer.
	Own string
}

// AdministratorObjects are all FirewallConfigurations and RouteConfigurations that a host may have to carry out.
type AdministratorObjects struct {
	Firewalls []networkingv1beta1.FirewallConfiguration
	Routes    []networkingv1beta1.RouteConfiguration
}

// Request is an object that asks a host for something.
type Request struct {
	Kind string
	Meta metav1.ObjectMeta
	// Part is the part of the host's State that carries it out; none if Refused says why it cannot be carried out.
	Part    string
	Refused error
	// Conditions are those of its status.
	Conditions []networkingv1beta1.HostCondition
}

// labels are the keys of those that say who is meant.
type labels struct{ category, subcategory, unique string }

var (
	firewallLabels = labels{networkingv1beta1.FirewallCategoryLabel, networkingv1beta1.FirewallSubcategoryLabel, networkingv1beta1.FirewallUniqueLabel}
	routeLabels    = labels{networkingv1beta1.RouteCategoryLabel, networkingv1beta1.RouteSubcategoryLabel, networkingv1beta1.RouteUniqueLabel}
)

// asked tells whether an object is meant for a host.
func (h Host) asked(object metav1.ObjectMeta, by labels) bool {
	category, subcategory, unique := object.Labels[by.category], object.Labels[by.subcategory], object.Labels[by.unique]
	all := networkingv1beta1.SubcategoryAllNodes
	if h.Category == networkingv1beta1.CategoryGateway {
		all = networkingv1beta1.SubcategoryAllGateways
	}
	switch {
	case category != h.Category || !object.DeletionTimestamp.IsZero():
		return false
	case unique != "":
		return unique == h.Unique && object.Namespace == h.Own && subcategory != all
	default:
		return subcategory == all && object.Namespace == h.Namespace
	}
}

// Administrators says what a host is to do besides what it needs itself, and what it makes of each object that is meant for it. One that cannot be
// carried out changes nothing: what the kernel has of it from before stays.
func Administrators(host Host, objects AdministratorObjects) (state dataplane.State, requests []Request) {
	taken := map[string]bool{}
	// request takes a name for an object, unless one that is older has it.
	request := func(kind string, meta metav1.ObjectMeta, part, table string, conditions []networkingv1beta1.HostCondition, refused error) bool {
		r := Request{Kind: kind, Meta: meta, Part: part, Refused: refused, Conditions: conditions}
		switch {
		case taken[part]:
			r.Part, r.Refused = "", fmt.Errorf("an older %s for this host has a table with the name %q, or with one that cannot be told from it", kind, table)
		case refused != nil:
			state.Kept = append(state.Kept, part)
			r.Part = ""
		}
		taken[part] = true
		requests = append(requests, r)
		return r.Refused == nil
	}
	for _, object := range eldest(objects.Firewalls, func(o *networkingv1beta1.FirewallConfiguration) metav1.ObjectMeta { return o.ObjectMeta }) {
		if !host.asked(object.ObjectMeta, firewallLabels) {
			continue
		}
		table, err := firewall(host, object.Spec.Table)
		if request("FirewallConfiguration", object.ObjectMeta, table.Part(), string(object.Spec.Table.Name), object.Status.Conditions, err) {
			state.Firewall = append(state.Firewall, table)
		}
	}
	for _, object := range eldest(objects.Routes, func(o *networkingv1beta1.RouteConfiguration) metav1.ObjectMeta { return o.ObjectMeta }) {
		if !host.asked(object.ObjectMeta, routeLabels) {
			continue
		}
		name := object.Spec.Table.Name
		routes, rules, err := routing(host, object.Spec.Table)
		part := dataplane.Route{Table: dataplane.AdministratorTable(name)}.Part()
		if request("RouteConfiguration", object.ObjectMeta, part, name, object.Status.Conditions, err) {
			state.Routes, state.Rules = append(state.Routes, routes...), append(state.Rules, rules...)
		}
	}
	return state, requests
}

// eldest sorts objects by their age; of those of one age by their names.
func eldest[T any](objects []T, meta func(*T) metav1.ObjectMeta) []T {
	return slices.SortedFunc(slices.Values(objects), func(a, b T) int {
		one, other := meta(&a), meta(&b)
		return cmp.Or(one.CreationTimestamp.Compare(other.CreationTimestamp.Time), cmp.Compare(one.Namespace, other.Namespace), cmp.Compare(one.Name, other.Name))
	})
}
