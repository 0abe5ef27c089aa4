package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// TwinRules are a provider's rules for the namespaces that its consumers may have.
type TwinRules struct {
	// SystemNamespaces can never be twins, whoever asks: Liqo's own namespace and that of volumes belong here, if they are not
	// named as by default, which is reserved anyway.
	SystemNamespaces []string
	// MaxNamespaces per tenant; 0 means no limit.
	MaxNamespaces int
	// RequireTenantSuffix allows only names that end in -<tenant's cluster ID>, as those of strategy DefaultName do, so that
	// no tenant can take a name that somebody else may need.
	RequireTenantSuffix bool
	// Tenants are all that the provider has. With RequireTenantSuffix a name is that of the tenant with the longest ID that it ends
	// in: shop-eu-prod is not for tenant prod where there is a tenant eu-prod.
	Tenants []corev1beta1.ClusterID
}

// ownNamespaces are reserved before they exist, too: who has one first has what is put into it later.
var ownNamespaces = []string{corev1beta1.DefaultNamespace, offloadingv1beta1.DefaultStorageNamespace}

// SuffixOf tells whether the names of one tenant's namespaces may be taken for another's: the other's ID ends in the tenant's own.
func SuffixOf(tenant, other corev1beta1.ClusterID) bool {
	return strings.HasSuffix(string(other), "-"+string(tenant))
}

// ofAnother tells whether a name is that of another tenant by its suffix, although it ends in the tenant's own as well.
func (r TwinRules) ofAnother(tenant corev1beta1.ClusterID, name string) bool {
	return slices.ContainsFunc(r.Tenants, func(other corev1beta1.ClusterID) bool {
		return SuffixOf(tenant, other) && strings.HasSuffix(name, "-"+string(other))
	})
}

// IsNamedFor tells whether a name is that of a tenant's namespace by its suffix, as those of strategy DefaultName are.
func (r TwinRules) IsNamedFor(tenant corev1beta1.ClusterID, name string) bool {
	return strings.HasSuffix(name, "-"+string(tenant)) && !r.ofAnother(tenant, name)
}

// Refusal is why a twin is not made.
type Refusal struct {
	// Reason is one of the reasons of the offloading group.
	Reason string
	// Message tells the consumer's user what to do.
	Message string
}

// Error is the message.
func (r *Refusal) Error() string { return r.Message }

// RefuseName returns why a tenant may not have a namespace of a name, or nil if it may.
func (r TwinRules) RefuseName(tenant corev1beta1.ClusterID, name string) *Refusal {
	refuse := func(why string) *Refusal {
		return &Refusal{Reason: offloadingv1beta1.ReasonNamespaceNotAllowed, Message: fmt.Sprintf("the provider does not allow the namespace name %q: %s", name, why)}
	}
	switch {
	case len(name) > maxNamespaceName:
		return &Refusal{Reason: offloadingv1beta1.ReasonNamespaceNotAllowed,
			Message: fmt.Sprintf("the provider does not allow namespace names of more than %d characters", maxNamespaceName)}
	case len(validation.IsDNS1123Label(name)) > 0:
		return refuse("it cannot name a namespace; use lower-case letters, digits and '-'")
	case name == "default" || strings.HasPrefix(name, "kube-"):
		return refuse("it is reserved for Kubernetes; choose another name with strategy SelectedName, or use strategy DefaultName")
	case strings.HasPrefix(name, corev1beta1.TenantNamespacePrefix), slices.Contains(ownNamespaces, name), slices.Contains(r.SystemNamespaces, name):
		return refuse("it is reserved for the provider's own components; choose another name with strategy SelectedName, or use strategy DefaultName")
	case r.RequireTenantSuffix && !strings.HasSuffix(name, "-"+string(tenant)):
		return refuse(fmt.Sprintf("it must end in -%s; use strategy DefaultName", tenant))
	case r.RequireTenantSuffix && r.ofAnother(tenant, name):
		return refuse("it ends like the names of another consumer's namespaces; choose another name with strategy SelectedName")
	}
	return nil
}

// Admit decides about everything that a tenant's NamespaceMap asks for: which local namespaces of the consumer get their twin,
// and why the others do not. existing are the twins that the tenant has, by local namespace; they come before new ones, so
// that a growing wish never takes away what is there. others is how many namespaces the tenant has besides: those of other maps, and
// those that it does not want any more and that are not gone yet. Two local namespaces cannot share a twin.
func (r TwinRules) Admit(tenant corev1beta1.ClusterID, desired, existing map[string]string, others int,
) (admitted map[string]string, refused map[string]*Refusal) {
	admitted, refused = map[string]string{}, map[string]*Refusal{}
	takenBy := map[string]string{}
	for _, local := range inOrder(desired, existing) {
		twin := desired[local]
		// The rules are for new twins: what exists is taken away only when the tenant does not want it any more.
		old := has(existing, local, twin)
		if refusal := r.RefuseName(tenant, twin); refusal != nil && !old {
			refused[local] = refusal
			continue
		}
		// A consumer asks for these only if somebody wrote them into its NamespaceMap by hand.
		if why := (HomeNamespaces{}).WhyNeverOffloaded(local, nil); why != "" && !old {
			refused[local] = &Refusal{Reason: offloadingv1beta1.ReasonNamespaceNeverOffloaded, Message: why}
			continue
		}
		if other, taken := takenBy[twin]; taken {
			refused[local] = &Refusal{Reason: offloadingv1beta1.ReasonNamespaceConflict,
				Message: fmt.Sprintf("namespace %q is already the twin of your namespace %q; choose another name", twin, other)}
			continue
		}
		if !old && r.MaxNamespaces > 0 && len(admitted)+others >= r.MaxNamespaces {
			refused[local] = &Refusal{Reason: offloadingv1beta1.ReasonNamespaceLimit,
				Message: fmt.Sprintf("the provider lets you have %d namespaces and you have them all; unoffload one, or ask its administrator for more", r.MaxNamespaces)}
			continue
		}
		admitted[local] = twin
		takenBy[twin] = local
	}
	return admitted, refused
}

// inOrder returns the local namespaces, those with an existing twin of the wanted name first, each group by name.
func inOrder(desired, existing map[string]string) []string {
	var old, fresh []string
	for _, local := range slices.Sorted(maps.Keys(desired)) {
		if has(existing, local, desired[local]) {
			old = append(old, local)
		} else {
			fresh = append(fresh, local)
		}
	}
	return append(old, fresh...)
}

func has(existing map[string]string, local, twin string) bool {
	name, there := existing[local]
	return there && name == twin
}
