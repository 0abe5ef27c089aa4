package reflection

import (
	"slices"
	"strings"
)

// anyKey among prefixes stands for all keys.
const anyKey = "*"

// ourDomain is that of our own labels and annotations: who may write which is decided key by key elsewhere.
const ourDomain = "liqo.io"

// grantingKeys are keys without a domain by which somebody gives rights, against Kubernetes' convention that such keys mean something
// to the user alone: aadpodidbinding is that of Azure's pod identities.
var grantingKeys = []string{"aadpodidbinding"}

// Keys are the labels and annotations that a provider lets pods of other clusters have: by those of other domains a pod gets
// networks, devices, identities and sidecars of the node that it runs on. Each list holds prefixes of keys ("*" for all keys).
// Always allowed are our own keys, and those without a domain (without a dot before the slash).
type Keys struct {
	Labels, Annotations []string
}

// Allowed returns which of a pod's labels and annotations it may have, and in one sentence which it may not; no sentence if it may have
// them all.
func (k Keys) Allowed(labels, annotations map[string]string) (ofLabels, ofAnnotations map[string]string, refused string) {
	ofLabels, withoutLabels := allowed(labels, k.Labels)
	ofAnnotations, withoutAnnotations := allowed(annotations, k.Annotations)
	var lacks []string
	if len(withoutLabels) > 0 {
		lacks = append(lacks, "the labels "+enumerated(withoutLabels)+" (offloading.consumers.podLabelPrefixes)")
	}
	if len(withoutAnnotations) > 0 {
		lacks = append(lacks, "the annotations "+enumerated(withoutAnnotations)+" (offloading.consumers.podAnnotationPrefixes)")
	}
	if len(lacks) == 0 {
		return ofLabels, ofAnnotations, ""
	}
	return ofLabels, ofAnnotations, "the pod is without " + strings.Join(lacks, " and ") +
		": the provider does not let pods from other clusters have them; its administrator can, with the values in brackets"
}

// allowed returns what has an allowed key, and the sorted keys of the rest.
func allowed(all map[string]string, prefixes []string) (pass map[string]string, refused []string) {
	pass = make(map[string]string, len(all))
	for key, value := range all {
		if keyAllowed(key, prefixes) {
			pass[key] = value
		} else {
			refused = append(refused, key)
		}
	}
	slices.Sort(refused)
	return pass, refused
}

// keyAllowed is what admission policy liqo-consumer-exposure says of annotations of Services, too.
func keyAllowed(key string, prefixes []string) bool {
	domain, _, _ := strings.Cut(key, "/")
	ours := key != domain && (domain == ourDomain || strings.HasSuffix(domain, "."+ourDomain))
	private := !strings.Contains(domain, ".") && !slices.Contains(grantingKeys, key)
	return ours || private || slices.ContainsFunc(prefixes, func(prefix string) bool { return prefix == anyKey || strings.HasPrefix(key, prefix) })
}
