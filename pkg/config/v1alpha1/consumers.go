package v1alpha1

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

// Any in a list of names stands for all of them.
const Any = "*"

// DefaultMaxStoredBytes leaves room for ten consumers and more in an etcd of 2 GiB.
const DefaultMaxStoredBytes = "128Mi"

// Consumers configures what pods of consumers may use in this cluster. What is not listed they may not.
type Consumers struct {
	// RuntimeClasses that they may ask for.
	RuntimeClasses []string `json:"runtimeClasses"`
	// ServiceAccounts that they may run as in their twin namespaces.
	ServiceAccounts []string `json:"serviceAccounts"`
	// Capabilities that their containers may add, besides those of Pod Security's baseline; nil means what the profile says.
	Capabilities []string `json:"capabilities"`
	// Limits of what each of them gets, unless its Tenant says otherwise. The limit of namespaces is that of TwinNamespaces.
	Limits authv1beta1.TenantLimits `json:"limits"`
	// RequestShares are those of the API server's places that the requests of each of them are served in (nominalConcurrencyShares); zero means one.
	RequestShares int32 `json:"requestShares"`
	// Tolerations are keys of taints that they may tolerate, besides those of nodes that fail.
	Tolerations []string `json:"tolerations"`
	// NodeLabels are keys of nodes' labels, or prefixes that end in a slash, that nodes may be chosen by, besides those of kinds of nodes.
	NodeLabels []string `json:"nodeLabels"`
	// CSIDrivers that they may have inline volumes of.
	CSIDrivers []string `json:"csiDrivers"`
	// MaxStoredBytes is how many bytes this cluster stores for each consumer; zero sets no bound, nil means DefaultMaxStoredBytes.
	MaxStoredBytes *resource.Quantity `json:"maxStoredBytes"`
	// MaxTerminationGracePeriod is how long they may take to end; zero means one hour.
	MaxTerminationGracePeriod metav1.Duration `json:"maxTerminationGracePeriod"`
	// PodLabelPrefixes are those of labels that they may have, besides Liqo's own and those without a domain; nil means what the profile says.
	PodLabelPrefixes []string `json:"podLabelPrefixes"`
	// PodAnnotationPrefixes are the same for annotations.
	PodAnnotationPrefixes []string `json:"podAnnotationPrefixes"`
}

// hardenedLabelPrefixes are those of labels of Kubernetes' own controllers and of common tools.
var hardenedLabelPrefixes = []string{"app.kubernetes.io/", "apps.kubernetes.io/", "batch.kubernetes.io/", "statefulset.kubernetes.io/",
	"topology.kubernetes.io/", "helm.sh/", "io.kompose."}

func (c *Consumers) complete(hardened bool) {
	if c.MaxStoredBytes == nil {
		c.MaxStoredBytes = new(resource.MustParse(DefaultMaxStoredBytes))
	}
	if c.RequestShares == 0 {
		c.RequestShares = 1
	}
	if c.Capabilities == nil && !hardened {
		c.Capabilities = []string{debugCapability}
	}
	if c.PodLabelPrefixes == nil {
		c.PodLabelPrefixes = []string{Any}
		if hardened {
			c.PodLabelPrefixes = hardenedLabelPrefixes
		}
	}
}

func (c Consumers) validate(path *field.Path) field.ErrorList {
	errs := append(validateNames(path.Child("runtimeClasses"), c.RuntimeClasses), validateNames(path.Child("serviceAccounts"), c.ServiceAccounts)...)
	for i, capability := range c.Capabilities {
		if !capabilityName.MatchString(capability) || strings.HasPrefix(capability, "CAP_") || capability == "ALL" {
			errs = append(errs, field.Invalid(path.Child("capabilities").Index(i), capability, "must name one Linux capability without CAP_, such as SYS_PTRACE"))
		}
	}
	errs = append(errs, validateNames(path.Child("csiDrivers"), c.CSIDrivers)...)
	errs = append(errs, validateKeys(path.Child("tolerations"), c.Tolerations, false)...)
	errs = append(errs, validateKeys(path.Child("nodeLabels"), c.NodeLabels, true)...)
	if c.MaxStoredBytes != nil && c.MaxStoredBytes.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("maxStoredBytes"), c.MaxStoredBytes.String(), "must not be negative"))
	}
	if c.RequestShares < 0 {
		errs = append(errs, field.Invalid(path.Child("requestShares"), c.RequestShares, "must be at least 1"))
	}
	if d := c.MaxTerminationGracePeriod; d.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("maxTerminationGracePeriod"), d.Duration.String(), "must not be negative"))
	}
	for name, prefixes := range map[string][]string{"podLabelPrefixes": c.PodLabelPrefixes, "podAnnotationPrefixes": c.PodAnnotationPrefixes} {
		for i, prefix := range prefixes {
			if prefix == "" {
				errs = append(errs, field.Invalid(path.Child(name).Index(i), prefix, "must not be empty: * stands for all keys"))
			}
		}
	}
	return append(errs, validateLimits(path.Child("limits"), c.Limits)...)
}

// validateKeys looks at keys of labels or taints; * stands for all. Where prefixes may be, they end in a slash.
func validateKeys(path *field.Path, keys []string, prefixes bool) field.ErrorList {
	var errs field.ErrorList
	for i, key := range keys {
		one := key
		if prefixes && strings.HasSuffix(key, "/") {
			one += "x"
		}
		for _, problem := range validation.IsQualifiedName(one) {
			if key != Any {
				errs = append(errs, field.Invalid(path.Index(i), key, problem))
			}
		}
	}
	return errs
}

func validateLimits(path *field.Path, limits authv1beta1.TenantLimits) field.ErrorList {
	errs := validateQuantities(path.Child("resources"), limits.Resources)
	if n := limits.ResourceSlices; n != nil && *n < 1 {
		errs = append(errs, field.Invalid(path.Child("resourceSlices"), *n, "must be at least 1"))
	}
	if limits.Namespaces != nil {
		errs = append(errs, field.Forbidden(path.Child("namespaces"), "set offloading.twinNamespaces.maxPerTenant"))
	}
	return errs
}

func validateQuantities(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for name, quantity := range list {
		if quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Child(string(name)), quantity.String(), "must not be negative"))
		}
	}
	return errs
}

var capabilityName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

func validateNames(path *field.Path, names []string) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		if name == Any {
			continue
		}
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(path.Index(i), name, problem))
		}
	}
	return errs
}
