package v1alpha1

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// minCertificateLifetime is what the API server signs at least (certificates.k8s.io, spec.expirationSeconds).
const minCertificateLifetime = 10 * time.Minute

// The bounds of the lifetime of pods' tokens: what an API server issues at least, and what leaves a cluster at most.
const (
	minTokenLifetime = 10 * time.Minute
	maxTokenLifetime = time.Hour
)

// debugCapability is what kubectl debug asks for by default. A container traces the processes of its pod by it, and no others: the
// host's process namespace is shared with none.
const debugCapability = "SYS_PTRACE"

// Load reads a configuration file. Fields that the file names and this version does not know are errors.
func Load(path string) (*ControllerManager, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return Parse(raw)
}

// Parse reads a configuration and completes it from the profile.
func Parse(raw []byte) (*ControllerManager, error) {
	c := &ControllerManager{}
	if err := yaml.UnmarshalStrict(raw, c); err != nil {
		return nil, fmt.Errorf("parsing the configuration: %w", err)
	}
	c.complete()
	if errs := c.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("the configuration is invalid: %w", errs.ToAggregate())
	}
	return c, nil
}

// Read reads the configuration of a program that may be of another release, and completes it as the program does: what this version does not
// know is left out, and nothing is refused.
func Read(raw []byte) (*ControllerManager, error) {
	c := &ControllerManager{}
	if err := yaml.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("parsing the configuration: %w", err)
	}
	c.complete()
	return c, nil
}

func (p *Providers) complete(hardened bool) {
	for _, believed := range []**bool{&p.AcceptLabels, &p.AssumePrivateAddresses} {
		if *believed == nil {
			*believed = ptr.To(!hardened)
		}
	}
}

func (n *Networking) complete(hardened bool) {
	if n.Isolation == "" {
		n.Isolation = IsolationOpen
		if hardened {
			n.Isolation = IsolationOffloaded
		}
	}
	if n.DenyDirectConnections == nil {
		n.DenyDirectConnections = &hardened
	}
	if n.ReflectIPs == nil {
		n.ReflectIPs = ptr.To(true)
	}
	if n.GenevePort == 0 {
		n.GenevePort = DefaultOverlayPort
	}
}

// complete fills in what the profile decides.
func (c *ControllerManager) complete() {
	hardened := c.Profile == ProfileHardened
	if c.Offloading.TwinNamespaces.PodSecurity == "" && hardened {
		c.Offloading.TwinNamespaces.PodSecurity = "baseline"
	}
	if c.Offloading.TwinNamespaces.RequireSuffix == nil {
		c.Offloading.TwinNamespaces.RequireSuffix = &hardened
	}
	if c.Offloading.TwinNamespaces.Network.Isolate == nil {
		c.Offloading.TwinNamespaces.Network.Isolate = &hardened
	}
	if enforcement := &c.ControllerManager.DefaultLimitsEnforcement; *enforcement == "" {
		*enforcement = offloadingv1beta1.NoLimitsEnforcement
		if hardened {
			*enforcement = offloadingv1beta1.HardLimitsEnforcement
		}
	}
	c.Offloading.Consumers.complete(hardened)
	c.Offloading.Providers.complete(hardened)
	if c.VirtualKubelet.NodeIdentity == "" {
		c.VirtualKubelet.NodeIdentity = NodeIdentityNode
	}
	c.Networking.complete(hardened)
	if len(c.IPAM.Pools) == 0 {
		c.IPAM.Pools = []string{"10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12"}
	}
	if tokens := &c.Offloading.ServiceAccountTokens; tokens.MaxLifetime == nil {
		tokens.MaxLifetime = &metav1.Duration{Duration: maxTokenLifetime}
		if hardened {
			tokens.MaxLifetime.Duration = minTokenLifetime
		}
	}
	policy := offloadingv1beta1.DenyList
	if hardened {
		policy = offloadingv1beta1.AllowList
	}
	reflected := &c.Offloading.Reflection
	for _, kind := range []*offloadingv1beta1.ReflectorConfig{
		&reflected.ConfigMap, &reflected.Secret, &reflected.Service.ReflectorConfig, &reflected.Ingress.ReflectorConfig,
		&reflected.NetworkPolicy,
	} {
		if kind.Type == "" {
			kind.Type = policy
		}
	}
}

// Validate finds what cannot work, with the path of each value.
func (c *ControllerManager) Validate() field.ErrorList {
	var errs field.ErrorList
	if c.Profile != ProfileCompatible && c.Profile != ProfileHardened {
		errs = append(errs, field.NotSupported(field.NewPath("profile"), c.Profile, []Profile{ProfileCompatible, ProfileHardened}))
	}
	errs = append(errs, c.APIServer.validate(field.NewPath("apiServer"))...)
	if d := c.Authentication.CertificateLifetime.Duration; d < minCertificateLifetime {
		errs = append(errs, field.Invalid(field.NewPath("authentication", "certificateLifetime"), d.String(), "must be at least 10m"))
	}
	if plain := field.NewPath("metrics", "plainHTTP"); c.Metrics.PlainHTTP && !c.Metrics.Enabled {
		errs = append(errs, field.Invalid(plain, true, "nothing is served without metrics.enabled"))
	} else if c.Metrics.PlainHTTP && c.Profile == ProfileHardened {
		errs = append(errs, field.Invalid(plain, true, "profile hardened shows metrics to nobody without a token"))
	}
	errs = append(errs, c.IPAM.validate(field.NewPath("ipam"), c.Networking.Enabled)...)
	if port := c.Networking.GenevePort; port < 1 || port > 65535 {
		errs = append(errs, field.Invalid(field.NewPath("networking", "genevePort"), port, "must be a port, from 1 to 65535"))
	}
	if kinds := []Isolation{IsolationOpen, IsolationOffloaded}; !slices.Contains(kinds, c.Networking.Isolation) {
		errs = append(errs, field.NotSupported(field.NewPath("networking", "isolation"), c.Networking.Isolation, kinds))
	}
	errs = append(errs, c.Offloading.validate(field.NewPath("offloading"))...)
	errs = append(errs, c.VirtualKubelet.validate(field.NewPath("virtualKubelet"))...)
	levels := []offloadingv1beta1.LimitsEnforcement{
		offloadingv1beta1.NoLimitsEnforcement, offloadingv1beta1.SoftLimitsEnforcement, offloadingv1beta1.HardLimitsEnforcement,
	}
	if level := c.ControllerManager.DefaultLimitsEnforcement; !slices.Contains(levels, level) {
		errs = append(errs, field.NotSupported(field.NewPath("controllerManager", "config", "defaultLimitsEnforcement"), level, levels))
	}
	return errs
}

func (a APIServer) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a.Address != "" {
		if u, err := url.Parse(a.Address); err != nil || u.Scheme != "https" || u.Host == "" {
			errs = append(errs, field.Invalid(path.Child("address"), a.Address, "must be a URL such as https://203.0.113.7:6443"))
		}
	}
	if _, err := base64.StdEncoding.DecodeString(a.CA); err != nil {
		errs = append(errs, field.Invalid(path.Child("ca"), "(not shown)", "must be base64"))
	}
	return errs
}

func (i IPAM) validate(path *field.Path, networking bool) field.ErrorList {
	var errs field.ErrorList
	check := func(path *field.Path, cidr string) {
		if prefix, err := netip.ParsePrefix(cidr); err != nil || prefix != prefix.Masked() {
			errs = append(errs, field.Invalid(path, cidr, "must be a network such as 10.0.0.0/16"))
		}
	}
	for name, cidrs := range map[string][]string{"podCIDRs": i.PodCIDRs, "reservedSubnets": i.ReservedSubnets, "pools": i.Pools} {
		for n, cidr := range cidrs {
			check(path.Child(name).Index(n), cidr)
		}
	}
	for name, cidr := range map[string]string{
		"podCIDR": i.PodCIDR, "serviceCIDR": i.ServiceCIDR, "externalCIDR": i.ExternalCIDR, "internalCIDR": i.InternalCIDR,
	} {
		if cidr != "" {
			check(path.Child(name), cidr)
		}
	}
	// What is not known to be used here could be given to a peer.
	switch pods := i.Prefixes(); {
	case networking && len(i.PodCIDRs) == 0 && i.PodCIDR == "":
		errs = append(errs, field.Required(path.Child("podCIDRs"), "the network module has to know which addresses the cluster's pods have"))
	case networking && len(pods) > 0 && !slices.ContainsFunc(pods, func(p netip.Prefix) bool { return p.Addr().Is4() }):
		errs = append(errs, field.Invalid(path.Child("podCIDRs"), pods,
			"the network module carries IPv4 alone: name a range of IPv4, or set networking.enabled=false"))
	}
	if networking && i.ServiceCIDR == "" {
		errs = append(errs, field.Required(path.Child("serviceCIDR"), "the network module has to know which addresses the cluster's Services have"))
	}
	return errs
}

// Prefixes returns the pod CIDRs of the cluster; the configuration must be valid.
func (i IPAM) Prefixes() []netip.Prefix {
	cidrs := i.PodCIDRs
	if len(cidrs) == 0 && i.PodCIDR != "" {
		cidrs = []string{i.PodCIDR}
	}
	prefixes := make([]netip.Prefix, 0, len(cidrs))
	for _, cidr := range cidrs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

func (o Offloading) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	levels := []string{"", "privileged", "baseline", "restricted"}
	if twins := path.Child("twinNamespaces"); !slices.Contains(levels, o.TwinNamespaces.PodSecurity) {
		errs = append(errs, field.NotSupported(twins.Child("podSecurity"), o.TwinNamespaces.PodSecurity, levels))
	} else if o.TwinNamespaces.MaxPerTenant < 1 {
		errs = append(errs, field.Invalid(twins.Child("maxPerTenant"), o.TwinNamespaces.MaxPerTenant, "must be at least 1"))
	}
	for name, kind := range map[string]offloadingv1beta1.ReflectorConfig{
		"configmap": o.Reflection.ConfigMap, "secret": o.Reflection.Secret,
		"service": o.Reflection.Service.ReflectorConfig, "ingress": o.Reflection.Ingress.ReflectorConfig, "networkpolicy": o.Reflection.NetworkPolicy,
	} {
		policies := []offloadingv1beta1.ReflectionType{offloadingv1beta1.DenyList, offloadingv1beta1.AllowList}
		if name == "configmap" || name == "secret" {
			policies = append(policies, offloadingv1beta1.Referenced)
		}
		if !slices.Contains(policies, kind.Type) {
			errs = append(errs, field.NotSupported(path.Child("reflection", name, "type"), kind.Type, policies))
		}
	}
	if share := o.Reflection.MaxRemovals; share != nil && (*share < 0 || *share > 100) {
		errs = append(errs, field.Invalid(path.Child("reflection", "maxRemovals"), *share, "must be a share in percent, from 0 to 100"))
	}
	errs = append(errs, validateClasses(path.Child("reflection", "ingress", "ingressClasses"), o.Reflection.Ingress.IngressClasses)...)
	errs = append(errs, validateClasses(path.Child("reflection", "service", "loadBalancerClasses"), o.Reflection.Service.LoadBalancerClasses)...)
	errs = append(errs, o.Consumers.validate(path.Child("consumers"))...)
	if d := o.ServiceAccountTokens.MaxLifetime; d != nil && (d.Duration < minTokenLifetime || d.Duration > maxTokenLifetime) {
		errs = append(errs, field.Invalid(path.Child("serviceAccountTokens", "maxLifetime"), d.Duration.String(), "must be between 10m and 1h"))
	}
	errs = append(errs, o.validateSharing(path)...)
	errs = append(errs, o.ResourcePlugin.validate(path.Child("resourcePlugin"))...)
	errs = append(errs, validateQuantities(path.Child("twinNamespaces", "quota"), o.TwinNamespaces.Quota)...)
	return append(errs, validateQuantities(path.Child("defaultNodeResources"), o.DefaultNodeResources)...)
}

// validateSharing checks what is said of how much is offered.
func (o *Offloading) validateSharing(path *field.Path) (errs field.ErrorList) {
	percentage := func(path *field.Path, percent int32) {
		if percent < 0 || percent > 100 {
			errs = append(errs, field.Invalid(path, percent, "must be a percentage, from 0 to 100"))
		}
	}
	if o.SharingPercentage != nil {
		percentage(path.Child("sharingPercentage"), *o.SharingPercentage)
	}
	for class, percent := range o.SharingPercentages {
		percentage(path.Child("sharingPercentages").Key(class), percent)
	}
	if ways := []Sharing{SharedOffers, ExclusiveOffers}; o.Sharing != "" && !slices.Contains(ways, o.Sharing) {
		errs = append(errs, field.NotSupported(path.Child("sharing"), o.Sharing, ways))
	}
	if o.Consumers.Limits.SharingPercentage != nil {
		errs = append(errs, field.Forbidden(path.Child("consumers", "limits", "sharingPercentage"), "set offloading.sharingPercentage"))
	}
	return errs
}
