package v1beta1

import (
	"fmt"
	"net/netip"
)

// The rules of this file do without CEL's own functions for addresses: an API server of Kubernetes 1.30 refuses definitions that use them.

// IP is an address of IPv4 or IPv6, such as 10.0.0.1 or fd00::1.
// +kubebuilder:validation:MaxLength=39
// +kubebuilder:validation:XValidation:rule="self.contains(':') ? (self.contains('::') ? self.matches('^([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?::([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?$') && self.matches('^:*([0-9a-f]+:*){0,7}$') : self.matches('^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}$')) : self.matches('^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$')",message="must be an address such as 10.0.0.1 or fd00::1, in lower case and without leading zeros"
type IP string

// Addr returns the address. The error names it.
func (i IP) Addr() (netip.Addr, error) {
	address, err := netip.ParseAddr(string(i))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("reading address %.50q: %w", string(i), err)
	}
	return address, nil
}

// PodIP is the address of a pod, as its status tells it. Unlike an IP it is judged by who reads it: there may be too many for rules.
// +kubebuilder:validation:MaxLength=39
type PodIP string

// CIDR is a range of addresses of IPv4 or IPv6, such as 10.244.0.0/16 or fd00:1::/48.
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="self.contains(':') ? (self.contains('::') ? self.matches('^([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?::([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$') && self.matches('^:*([0-9a-f]+:*){0,7}/') : self.matches('^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$')) : self.matches('^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])/(3[0-2]|[12]?[0-9])$')",message="must be a range such as 10.244.0.0/16 or fd00:1::/48, in lower case and without leading zeros"
type CIDR string

// Prefix returns the range, its bits beyond the length cleared. The error names it.
func (c CIDR) Prefix() (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(string(c))
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("reading range %.50q: %w", string(c), err)
	}
	return prefix.Masked(), nil
}

// Host is an address or a DNS name.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.contains(':') ? self.matches('^[0-9a-f]{0,4}(:[0-9a-f]{0,4}){2,7}$') : (self.matches('^[0-9.]+$') ? self.matches('^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$') : self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*[.]?$'))",message="must be an address such as 10.0.0.1 or fd00::1, or a DNS name"
type Host string

// Port is a port of TCP or UDP.
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type Port int32

// MTU is the size of the largest packet, in bytes.
// +kubebuilder:validation:Minimum=576
// +kubebuilder:validation:Maximum=65535
type MTU int32

// DeviceName is the name of a network device, as Linux takes it.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:Pattern=`^[^/\s:%]+$`
type DeviceName string
