package ingress

import (
	"net"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// target is where a request goes.
type target struct {
	namespace string
	service   networkingv1.IngressServiceBackend
}

// rank orders the paths that match one request: by host, then by length, then by being exact.
type rank struct{ host, length, exact int }

func (r rank) less(o rank) bool {
	return slices.Compare([]int{r.host, r.length, r.exact}, []int{o.host, o.length, o.exact}) < 0
}

// route finds where a request goes among the Ingresses of a class. Of several equal ones the oldest wins.
func route(ingresses []*networkingv1.Ingress, host, path string) (found target, ok bool) {
	var best rank
	consider := func(i *networkingv1.Ingress, backend *networkingv1.IngressBackend, r rank) {
		if backend != nil && backend.Service != nil && (!ok || best.less(r)) {
			found, best, ok = target{namespace: i.Namespace, service: *backend.Service}, r, true
		}
	}
	for _, i := range byAge(ingresses) {
		consider(i, i.Spec.DefaultBackend, rank{host: -1})
		for _, rule := range i.Spec.Rules {
			r := rank{host: hostRank(rule.Host, host)}
			if rule.HTTP == nil || r.host < 0 {
				continue
			}
			for _, p := range rule.HTTP.Paths {
				if matched, exact := matchesPath(p, path); matched {
					r.length, r.exact = len(strings.TrimSuffix(p.Path, "/")), exact
					consider(i, &p.Backend, r)
				}
			}
		}
	}
	return found, ok
}

func byAge(ingresses []*networkingv1.Ingress) []*networkingv1.Ingress {
	return slices.SortedStableFunc(slices.Values(ingresses), func(a, b *networkingv1.Ingress) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}

// hostRank tells how well the host of a rule fits a request: negative if not at all.
func hostRank(pattern, host string) int {
	suffix, wildcard := strings.CutPrefix(pattern, "*.")
	_, parent, _ := strings.Cut(host, ".")
	switch {
	case pattern == "":
		return 0
	case wildcard && parent == suffix:
		return 1
	case pattern == host:
		return 2
	}
	return -1
}

// matchesPath compares by elements: /foo leads to /foo/bar and not to /foobar.
func matchesPath(p networkingv1.HTTPIngressPath, path string) (matched bool, exact int) {
	if p.PathType != nil && *p.PathType == networkingv1.PathTypeExact {
		return p.Path == path, 1
	}
	prefix := strings.TrimSuffix(p.Path, "/")
	rest, found := strings.CutPrefix(path, prefix)
	return found && (rest == "" || rest[0] == '/'), 0
}

// certificateOf names the Secret with the certificate for a server name.
func certificateOf(ingresses []*networkingv1.Ingress, server string) (namespace, secret string, ok bool) {
	best := -1
	for _, i := range byAge(ingresses) {
		for _, entry := range i.Spec.TLS {
			for _, pattern := range entry.Hosts {
				if r := hostRank(pattern, server); r > best && entry.SecretName != "" {
					namespace, secret, ok, best = i.Namespace, entry.SecretName, true, r
				}
			}
		}
	}
	return namespace, secret, ok
}

// hostName is the host of a request without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(host)
}
