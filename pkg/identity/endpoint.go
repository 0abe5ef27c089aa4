package identity

import (
	"bytes"
	"crypto/x509"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const maxURL = 2048

var (
	// forbiddenNames mean this machine, this cluster or its cloud, wherever they are resolved.
	forbiddenNames = []string{
		"localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback",
		"kubernetes", "kubernetes.default", "metadata", "metadata.google.internal", "instance-data",
	}
	forbiddenSuffixes = []string{".localhost", ".localdomain", ".svc", ".cluster.local"}

	// embedding4 are ranges of IPv6 that carry an IPv4 address, each with the byte where it starts.
	embedding4 = map[netip.Prefix]int{
		netip.MustParsePrefix("64:ff9b::/96"): 12,
		netip.MustParsePrefix("2002::/16"):    2,
		netip.MustParsePrefix("::/96"):        12,
	}
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
)

// Endpoint is where and how a peer's API server is reached.
type Endpoint struct {
	// APIServer is its URL.
	APIServer string
	// CA is the bundle that its certificate is checked with, in PEM; empty means the roots that the machine trusts.
	CA []byte
	// ProxyURL is the proxy on the way, empty for none.
	ProxyURL string
}

// EndpointPolicy says which endpoints a peer may name. The zero value is the strictest but for Deny.
type EndpointPolicy struct {
	// Deny are ranges of this cluster in which no peer lives: its service and pod addresses.
	Deny []netip.Prefix
	// AllowLoopback accepts loopback addresses, for clusters that run on one machine in tests.
	AllowLoopback bool
}

// CheckAPIServerURL is EndpointPolicy{Deny: deny}.CheckAPIServer.
func CheckAPIServerURL(raw string, deny []netip.Prefix) error {
	return EndpointPolicy{Deny: deny}.CheckAPIServer(raw)
}

// CheckProxyURL is EndpointPolicy{Deny: deny}.CheckProxy.
func CheckProxyURL(raw string, deny []netip.Prefix) error {
	return EndpointPolicy{Deny: deny}.CheckProxy(raw)
}

// CheckAPIServer returns nil if raw is an https URL, without user, query or fragment, of a host to which a peer may send us;
// else a *Refusal with ReasonEndpoint. Names are not resolved here: what they resolve to is for the dialer to check.
func (p EndpointPolicy) CheckAPIServer(raw string) error {
	u, err := parseURL(raw, "https")
	if err != nil {
		return err
	}
	if u.User != nil {
		return refuse(ReasonEndpoint, "the URL %s holds a user: give it without", quote(u.Redacted()))
	}
	return p.checkHost(u)
}

// CheckProxy is CheckAPIServer for a proxy: http, https or socks5, and a user with password may be part of it.
func (p EndpointPolicy) CheckProxy(raw string) error {
	u, err := parseURL(raw, "http", "https", "socks5")
	if err != nil {
		return err
	}
	if u.Path != "" && u.Path != "/" {
		return refuse(ReasonEndpoint, "the URL of the proxy %s holds a path: give it without", quote(u.Redacted()))
	}
	return p.checkHost(u)
}

// SameEndpoint returns nil if offered is the pinned endpoint. URLs are compared in their usual form. Of CA bundles, which are sets of
// certificates, one is enough that is in both: a peer that changes its CA shows the old and the new one together for a while. Otherwise the
// error is a *Refusal with ReasonEndpointChanged that says what differs.
func SameEndpoint(pinned, offered Endpoint) error {
	const remedy = "a change must be approved in this cluster: peer again with the new value"
	if canonicalURL(pinned.APIServer) != canonicalURL(offered.APIServer) {
		return refuse(ReasonEndpointChanged, "the peer's API server is now %s instead of %s; %s",
			quote(redact(offered.APIServer)), quote(redact(pinned.APIServer)), remedy)
	}
	if canonicalURL(pinned.ProxyURL) != canonicalURL(offered.ProxyURL) {
		return refuse(ReasonEndpointChanged, "the proxy to the peer is now %s instead of %s; %s",
			quote(redact(offered.ProxyURL)), quote(redact(pinned.ProxyURL)), remedy)
	}
	if !overlap(pinned.CA, offered.CA) {
		return refuse(ReasonEndpointChanged, "no CA of the peer's API server is among the pinned ones; %s", remedy)
	}
	return nil
}

func parseURL(raw string, schemes ...string) (*url.URL, error) {
	if raw == "" || len(raw) > maxURL {
		return nil, refuse(ReasonEndpoint, "the URL has %d characters: give one of 1 to %d", len(raw), maxURL)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`?#\`, r) }) {
		return nil, refuse(ReasonEndpoint,
			"the URL holds a query, a fragment, a space or a character that does not belong into one: give only scheme, host, port and path")
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Hostname() == "" {
		// The parser's words are left out: they repeat the URL, password included.
		return nil, refuse(ReasonEndpoint, "the URL cannot be parsed: it must look like %s://host:port", schemes[0])
	}
	if !slices.Contains(schemes, u.Scheme) {
		return nil, refuse(ReasonEndpoint, "the URL has the scheme %s: use %s", quote(u.Scheme), strings.Join(schemes, " or "))
	}
	if slices.Contains(strings.Split(u.Path, "/"), "..") {
		return nil, refuse(ReasonEndpoint, "the URL's path holds %q: give it without", "..")
	}
	if strings.HasSuffix(u.Host, ":") {
		return nil, refuse(ReasonEndpoint, "the URL has an empty port: leave out the colon or give a port")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, refuse(ReasonEndpoint, "the URL has the port %s: give one from 1 to 65535", quote(port))
		}
	}
	return u, nil
}

func (p EndpointPolicy) checkHost(u *url.URL) error {
	host := strings.ToLower(u.Hostname())
	if addr, err := netip.ParseAddr(host); err == nil {
		return p.checkAddress(addr)
	}
	if strings.ContainsAny(u.Host, "[]") {
		return refuse(ReasonEndpoint, "the host %s is not an IPv6 address", quote(host))
	}
	name := strings.TrimSuffix(host, ".")
	labels := strings.Split(name, ".")
	for _, label := range labels {
		// Underscores are not in names of hosts by the standard, but resolvers take them.
		if len(label) > maxLabelLength || !labelPattern.MatchString(strings.ReplaceAll(label, "_", "-")) {
			return refuse(ReasonEndpoint, "the host %s is neither an address nor a name", quote(host))
		}
	}
	if last := labels[len(labels)-1]; isNumber(last) {
		// Resolvers read 127.1, 0x7f.1 and 2130706433 as addresses.
		return refuse(ReasonEndpoint, "the host %s is an address in an unusual form: write it out", quote(host))
	}
	local := name == "localhost" || strings.HasSuffix(name, ".localhost")
	if p.AllowLoopback && local {
		return nil
	}
	if slices.Contains(forbiddenNames, name) || slices.Contains(labels[1:], "svc") ||
		slices.ContainsFunc(forbiddenSuffixes, func(s string) bool { return strings.HasSuffix(name, s) }) {
		return refuse(ReasonEndpoint,
			"the host %s means something inside this cluster or machine: give a name or address by which other clusters reach it", quote(host))
	}
	return nil
}

func (p EndpointPolicy) checkAddress(addr netip.Addr) error {
	if addr.Zone() != "" {
		return refuse(ReasonEndpoint, "the address %s has a zone, which only this machine understands: give one without", quote(addr.String()))
	}
	addr = addr.Unmap()
	if addr.IsLoopback() && p.AllowLoopback {
		return nil
	}
	if addr.IsLoopback() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() ||
		thisNetwork.Contains(addr) || addr == broadcast {
		return refuse(ReasonEndpoint, "the address %s is loopback, link-local, multicast or none: give one by which other clusters reach it", addr)
	}
	for _, prefix := range p.Deny {
		if contains(prefix, addr) {
			return refuse(ReasonEndpoint, "the address %s lies in %s, which belongs to this cluster: give one by which other clusters reach it", addr, prefix)
		}
	}
	for prefix, start := range embedding4 {
		if prefix.Contains(addr) {
			raw := addr.As16()
			inner, _ := netip.AddrFromSlice(raw[start : start+4])
			return p.checkAddress(inner)
		}
	}
	return nil
}

// contains also understands a prefix written as IPv4 inside IPv6.
func contains(prefix netip.Prefix, addr netip.Addr) bool {
	if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	return prefix.Contains(addr)
}

func isNumber(label string) bool {
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// canonicalURL makes equal what means the same: case of scheme and host, the default port, a slash at the end.
func canonicalURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80", "socks5": "1080"}[u.Scheme]
	}
	u.Host = "[" + host + "]:" + port
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = ""
	return u.String()
}

// redact hides a password.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}

// overlap tells whether two CA bundles are equal or have a certificate in common. None at all, which means the machine's roots, is like no
// other.
func overlap(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	first, errA := decodeCertificates(a)
	second, errB := decodeCertificates(b)
	return errA == nil && errB == nil && slices.ContainsFunc(first, func(one *x509.Certificate) bool { return slices.ContainsFunc(second, one.Equal) })
}
