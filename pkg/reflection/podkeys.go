package reflection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// anyKey among prefixes stands for all keys, but for labels that give something.
const anyKey = "*"

// ourDomain is that of our own labels and annotations: who may write which is decided key by key elsewhere.
const ourDomain = "liqo.io"

// grantingKeys are keys, and prefixes of keys, without a domain by which somebody gives something, against Kubernetes' convention that such keys
// mean something to the user alone: aadpodidbinding is that of Azure's pod identities, the others are those by which GKE puts file systems' agents
// into pods.
var grantingKeys = []string{"aadpodidbinding", "gke-gcsfuse/", "gke-parallelstore/"}

// givingLabels are prefixes of labels by which a pod gets something from whoever runs the cluster that it runs in: those of the domain itself,
// and of all below it. "*" does not stand for them. The table in docs/reflection.md is this list.
var givingLabels = []string{
	// What puts containers, agents or secrets into pods.
	"vault.hashicorp.com/", "banzaicloud.io/", "banzaicloud.com/", "conjur.org/", "admission.datadoghq.com/", "dynatrace.com/", "newrelic.com/",
	"instana.io/", "opentelemetry.io/", "jaegertracing.io/", "dapr.io/", "getambassador.io/", "injector.tumblr.com/", "kyverno.io/", "teleport.dev/",
	// Meshes.
	"istio.io/", "linkerd.io/", "consul.hashicorp.com/", "kuma.io/", "openservicemesh.io/", "flomesh.io/", "kmesh.net/", "maistra.io/", "networkservicemesh.io/",
	// Networks and addresses.
	"cni.cncf.io/", "multus-cni.io/", "projectcalico.org/", "tigera.io/", "cilium.io/", "io.cilium/", "io.cilium.", "ovn.org/", "ovn.kubernetes.io/",
	"antrea.io/", "kube-router.io/", "kuryr.openstack.org/", "harvesterhci.io/", "metallb.io/", "metallb.universe.tf/", "kube-vip.io/", "submariner.io/",
	// Identities, and what clouds and platforms give.
	"azure.workload.identity/", "azure.com/", "amazonaws.com/", "k8s.aws/", "gke.io/", "cloud.google.com/", "cloud.ibm.com/", "aliyun.com/",
	"alibabacloud.com/", "spiffe.io/", "openshift.io/",
	// Autoscalers, schedulers and queues.
	"cluster-autoscaler.kubernetes.io/", "karpenter.sh/", "autoscaling.k8s.io/", "kueue.x-k8s.io/", "koordinator.sh/", "volcano.sh/",
	"yunikorn.apache.org/", "katalyst.kubewharf.io/",
	// Devices and runtimes.
	"io.kubernetes.cri-o.", "io.katacontainers.", "nvidia.com/", "amd.com/", "intel.com/", "run.ai/", "hami.io/", "resource.kubernetes.io/",
	// Kubernetes' own, and other ways to have pods run elsewhere.
	"alpha.kubernetes.io/", "beta.kubernetes.io/", "node.kubernetes.io/", "node-role.kubernetes.io/", "pod-security.kubernetes.io/", "admiralty.io/",
	"karmada.io/", "virtual-kubelet.io/",
}

// givingDomains are the same of which what is below gives nothing.
var givingDomains = []string{"kubernetes.io/", "k8s.io/"}

// componentLabels are those of our own labels by which gateways and virtual kubelets are found: to be asked how they are, or scraped with a token.
var componentLabels = []string{offloadingv1beta1.ComponentLabel, offloadingv1beta1.VirtualNodeLabel, networkingv1beta1.GatewayComponentLabel,
	networkingv1beta1.GatewayNameLabel, networkingv1beta1.ActiveLabel}

// BoundLabels are labels that an API server puts on a pod as it is bound, of the node that it is bound to: each cluster says its own.
var BoundLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// grants tells whether a key without a domain is one by which somebody gives something.
func grants(key string) bool {
	return slices.ContainsFunc(grantingKeys, func(granting string) bool {
		return key == granting || strings.HasSuffix(granting, "/") && strings.HasPrefix(key, granting)
	})
}

// gives tells whether a pod gets something by a label.
func gives(key string) bool {
	return grants(key) ||
		slices.ContainsFunc(givingDomains, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		slices.ContainsFunc(givingLabels, func(prefix string) bool { return strings.HasPrefix(key, prefix) || strings.Contains(key, "."+prefix) })
}

// Keys are the labels and annotations that a provider lets pods of other clusters have: by those of other domains a pod gets
// networks, devices, identities and sidecars of the node that it runs on. Each list holds prefixes of keys, or "*": for all annotations, and for
// all labels but those by which a pod gets something, which have to be named besides. Always allowed are our own keys but those of our components, and keys
// without a domain (without a dot before the slash).
type Keys struct {
	Labels, Annotations []string
}

// Allowed returns which of a pod's labels and annotations it may have, and in one sentence which it may not; no sentence if it may have
// them all.
func (k Keys) Allowed(labels, annotations map[string]string) (ofLabels, ofAnnotations map[string]string, refused string) {
	ofLabels, withoutLabels := allowed(labels, k.Labels, gives)
	ofAnnotations, withoutAnnotations := allowed(annotations, k.Annotations, nil)
	var lacks, components []string
	for _, key := range componentLabels {
		if _, there := ofLabels[key]; there {
			delete(ofLabels, key)
			components = append(components, key)
		}
	}
	if len(components) > 0 {
		lacks = append(lacks, "the labels "+enumerated(components)+" (by which Liqo finds its own pods)")
	}
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
		": the provider does not let pods from other clusters have them; its administrator can, with the values in brackets if there are any"
}

// allowed returns what has an allowed key, and the sorted keys of the rest. What gives something (nil: nothing does) has to be
// named by its prefix.
func allowed(all map[string]string, prefixes []string, gives func(key string) bool) (pass map[string]string, refused []string) {
	pass = make(map[string]string, len(all))
	for key, value := range all {
		if keyAllowed(key, prefixes, gives) {
			pass[key] = value
		} else {
			refused = append(refused, key)
		}
	}
	slices.Sort(refused)
	return pass, refused
}

// ofOurDomain tells our own keys.
func ofOurDomain(key string) bool {
	domain, _, inDomain := strings.Cut(key, "/")
	return inDomain && (domain == ourDomain || strings.HasSuffix(domain, "."+ourDomain))
}

// keyAllowed is what admission policy liqo-consumer-exposure says of annotations of Services, too, to which nobody gives anything by keys without a
// domain.
func keyAllowed(key string, prefixes []string, gives func(key string) bool) bool {
	domain, _, _ := strings.Cut(key, "/")
	private := !strings.Contains(domain, ".") && !grants(key)
	return ofOurDomain(key) || private || slices.ContainsFunc(prefixes, func(prefix string) bool {
		return strings.HasPrefix(key, prefix) || prefix == anyKey && (gives == nil || !gives(key))
	})
}

// keysNot is the reason, in the words of admission policy liqo-consumer-objects, that an object may not have the labels and annotations that follow it.
const keysNot = "KeyNotAllowed: "

// withoutRefusedKeys takes the labels and annotations away that the provider names in a refusal, and returns their keys.
func withoutRefusedKeys(wanted metav1.Object, refusal string) (refused []string) {
	labels, annotations := wanted.GetLabels(), wanted.GetAnnotations()
	for line := range strings.Lines(refusal) {
		_, words, found := strings.Cut(line, keysNot)
		for word := range strings.FieldsSeq(words) {
			_, label := labels[word]
			_, annotation := annotations[word]
			if found && (label || annotation) && !ofOurDomain(word) {
				refused = append(refused, word)
			}
		}
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	for _, key := range refused {
		delete(labels, key)
		delete(annotations, key)
	}
	return refused
}

// relaxKeys has an object cross without the labels and annotations that the provider does not let objects of others have: something of its own might act
// on it by them.
func relaxKeys(wantedObject Object, refusal string) (relaxed Object, given string) {
	without := wantedObject.DeepCopyObject().(Object)
	refused := withoutRefusedKeys(without, refusal)
	if len(refused) == 0 {
		return nil, ""
	}
	return without, "it does not allow the labels and annotations " + enumerated(refused)
}
