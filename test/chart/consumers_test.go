package chart

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"liqo.io/liqo/pkg/reflection"
)

func consumers(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop-rome", Name: name, Labels: map[string]string{"offloading.liqo.io/origin": "rome"},
		Annotations: map[string]string{"liqo.io/origin-uid": "u", "note": "harmless", "checksum/config": "harmless"}}
}

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: consumers("data"),
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")}}
	if change != nil {
		change(c)
	}
	return c
}

func service(change func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: consumers("web")}
	if change != nil {
		change(s)
	}
	return s
}

func annotated(key, value string) func(metav1.Object) {
	return func(o metav1.Object) {
		annotations := map[string]string{key: value}
		for k, v := range o.GetAnnotations() {
			annotations[k] = v
		}
		o.SetAnnotations(annotations)
	}
}

// claimFields are what a consumer may choose of a claim neither when it makes it nor later, and why.
var claimFields = map[string]struct {
	reason string
	set    func(*corev1.PersistentVolumeClaim)
}{
	"volumeName": {"VolumeNotAllowed", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "payroll" }},
	"selector":   {"VolumeNotAllowed", func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }},
	"dataSource": {"VolumeNotAllowed", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "theirs"}
	}},
	"dataSourceRef": {"VolumeNotAllowed", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "theirs", Namespace: ptr.To("payroll")}
	}},
	"the empty class":           {"StorageClassNotAllowed", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To("") }},
	"no class":                  {"StorageClassNotAllowed", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }},
	"volumeAttributesClassName": {"StorageClassNotAllowed", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To("gold") }},
	"that it is bound":          {"VolumeNotAllowed", func(c *corev1.PersistentVolumeClaim) { annotated("pv.kubernetes.io/bind-completed", "yes")(c) }},
	"its class, the old way":    {"VolumeNotAllowed", func(c *corev1.PersistentVolumeClaim) { annotated("volume.beta.kubernetes.io/storage-class", "")(c) }},
	"whose data it has": {"VolumeNotAllowed", func(c *corev1.PersistentVolumeClaim) {
		annotated("cdi.kubevirt.io/storage.clone.source", "payroll/books")(c)
	}},
	"where its data is":  {"VolumeNotAllowed", func(c *corev1.PersistentVolumeClaim) { annotated("nfs.io/storage-path", "../payroll")(c) }},
	"who may not delete": {"FinalizerNotAllowed", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"rome.it/never"} }},
}

// What a consumer may not say of a claim when it makes it, it may not say later, and not by a subresource; nor may it take back what
// Kubernetes' own controllers said. Requests that change nothing of it pass.
func TestConsumersChooseNoVolumes(t *testing.T) {
	policy := policyNamed(t, "", "admissionpolicies.yaml", "liqo-consumer-objects")
	ask := func(operation admission.Operation, subresource string, now, old *corev1.PersistentVolumeClaim) string {
		var before runtime.Object
		if old != nil {
			before = old
		}
		return policy.asked(t, operation, "persistentvolumeclaims", subresource, now, before)
	}
	if why := ask(admission.Create, "", claim(nil), nil); why != "" {
		t.Errorf("an honest claim is refused: %s", why)
	}
	for name, field := range claimFields {
		t.Run(name, func(t *testing.T) {
			for way, why := range map[string]string{
				"create": ask(admission.Create, "", claim(field.set), nil),
				"update": ask(admission.Update, "", claim(field.set), claim(nil)),
			} {
				if !strings.Contains(why, field.reason) {
					t.Errorf("%s: refused with %q, want %s", way, why, field.reason)
				}
			}
			if why := ask(admission.Update, "status", claim(field.set), claim(nil)); !strings.Contains(why, "NotYourObject") {
				t.Errorf("the status can be written: %q", why)
			}
			// What somebody else said of the claim does not hinder the consumer, who lets it grow.
			if why := ask(admission.Update, "", claim(field.set), claim(field.set)); why != "" {
				t.Errorf("what is there hinders the consumer: %s", why)
			}
		})
	}
	if why := ask(admission.Update, "", claim(nil), claim(claimFields["volumeName"].set)); !strings.Contains(why, "VolumeNotAllowed") {
		t.Errorf("it takes the volume away again: %q", why)
	}
	other := claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To("slow") })
	if why := ask(admission.Update, "", other, claim(nil)); !strings.Contains(why, "StorageClassNotAllowed") {
		t.Errorf("it changes the class: %q", why)
	}
}

// In both profiles the annotations of a consumer's Service are those that the provider lists, when it is made and later.
func TestConsumersAnnotateNoServices(t *testing.T) {
	refused := map[string]string{
		"external-dns.alpha.kubernetes.io/hostname":                      "bank.example.org",
		"getambassador.io/config":                                        "apiVersion: ambassador/v2\nkind: Mapping\nhost: bank.example.org\nprefix: /\nservice: evil",
		"service.beta.kubernetes.io/aws-load-balancer-security-groups":   "sg-admin",
		"service.beta.kubernetes.io/azure-load-balancer-internal-subnet": "core",
		"metallb.io/loadBalancerIPs":                                     "192.0.2.1",
		"metallb.universe.tf/allow-shared-ip":                            "bank",
		"networking.gke.io/internal-load-balancer-allow-global-access":   "true",
		"io.cilium/lb-ipam-ips":                                          "192.0.2.1",
		"kube-vip.io/loadbalancerIPs":                                    "192.0.2.1",
		"service.kubernetes.io/local-svc-only-bind-node-with-pod":        "true",
		"traefik.ingress.kubernetes.io/service.serversscheme":            "h2c",
		"evil-liqo.io/a": "a domain that ends like ours",
	}
	for profile, values := range map[string]string{"compatible": "", "hardened": "profile: hardened"} {
		policy := policyNamed(t, values, "exposurepolicies.yaml", "liqo-consumer-exposure")
		ask := func(operation admission.Operation, now, old *corev1.Service) string {
			var before runtime.Object
			if old != nil {
				before = old
			}
			return policy.asked(t, operation, "services", "", now, before)
		}
		// A load balancer is made without what keeps none internal, if there is nothing else.
		written := func(more ...string) *corev1.Service {
			return service(func(s *corev1.Service) {
				for _, key := range append(more, "metallb.universe.tf/ip-allocated-from-pool", "external-dns.alpha.kubernetes.io/hostname") {
					annotated(key, "x")(s)
				}
			})
		}
		if why := ask(admission.Create, written(), nil); !strings.Contains(why, "(ServiceAnnotationIgnored: ") || !strings.Contains(why, "ServiceAnnotationNotAllowed: ") {
			t.Errorf("%s: what a load balancer may do without: %q", profile, why)
		}
		if why := ask(admission.Create, written("service.beta.kubernetes.io/aws-load-balancer-internal"), nil); !strings.Contains(why, "aws-load-balancer-internal") || strings.Contains(why, "ServiceAnnotationIgnored") {
			t.Errorf("%s: with one that keeps it internal: %q", profile, why)
		}
		honest := service(func(s *corev1.Service) { annotated("prometheus.io/scrape", "true")(s) })
		if why := ask(admission.Create, honest, nil); why != "" {
			t.Errorf("%s: an honest Service is refused: %s", profile, why)
		}
		for key, value := range refused {
			with := service(func(s *corev1.Service) { annotated(key, value)(s) })
			other := service(func(s *corev1.Service) { annotated(key, value+"-other")(s) })
			for way, why := range map[string]string{"create": ask(admission.Create, with, nil), "update": ask(admission.Update, with, service(nil)), "another value": ask(admission.Update, with, other)} {
				if !strings.Contains(why, "ServiceAnnotationNotAllowed") || !strings.Contains(why, key) {
					t.Errorf("%s, %s: a Service with annotation %s is refused with %q", profile, way, key, why)
				}
			}
			if why := ask(admission.Update, with, with); why != "" {
				t.Errorf("%s: annotation %s, which is there, hinders the consumer: %s", profile, key, why)
			}
			listed := policyNamed(t, values+"\noffloading: {consumers: {serviceAnnotationPrefixes: ["+key+"]}}", "exposurepolicies.yaml", "liqo-consumer-exposure")
			if why := listed.asked(t, admission.Create, "services", "", with, nil); why != "" {
				t.Errorf("%s: annotation %s is refused although it is listed: %s", profile, key, why)
			}
		}
	}
}

// What the chart lets consumers' pods have by default, in both profiles, has nothing by which a pod gets networks, identities, devices,
// sidecars or a say in the autoscaler, and has what Kubernetes' own controllers need.
func TestKeysOfPodsByDefault(t *testing.T) {
	for profile, values := range map[string]string{"compatible": "", "hardened": "profile: hardened"} {
		config := configuration(t, values)
		keys := reflection.Keys{Labels: config.Offloading.Consumers.PodLabelPrefixes, Annotations: config.Offloading.Consumers.PodAnnotationPrefixes}
		for _, key := range []string{"iam.amazonaws.com/role", "v1.multus-cni.io/default-network", "k8s.v1.cni.cncf.io/networks", "io.kubernetes.cri-o.Devices",
			"io.katacontainers.config.hypervisor.path", "k8s.ovn.org/pod-networks", "vault.hashicorp.com/agent-inject", "cluster-autoscaler.kubernetes.io/safe-to-evict",
			"ovn.kubernetes.io/logical_switch", "cni.cilium.io/mac-address", "cni.projectcalico.org/ipAddrs", "azure.workload.identity/use", "sidecar.istio.io/inject",
			"linkerd.io/inject", "kubernetes.io/config.seen", "kueue.x-k8s.io/queue-name", "scheduler.alpha.kubernetes.io/x", "kubernetes.io/egress-bandwidth", "karpenter.sh/do-not-disrupt", "security.istio.io/tlsMode", "gke-gcsfuse/volumes"} {
			if labels, annotations, _ := keys.Allowed(map[string]string{key: "x"}, map[string]string{key: "x"}); len(labels)+len(annotations) > 0 {
				t.Errorf("%s: key %s passes", profile, key)
			}
		}
		if labels, _, _ := keys.Allowed(map[string]string{"aadpodidbinding": "x"}, nil); len(labels) > 0 {
			t.Errorf("%s: label aadpodidbinding passes", profile)
		}
		if _, _, refused := keys.Allowed(map[string]string{"app": "x", "pod-template-hash": "x", "controller-revision-hash": "x", "statefulset.kubernetes.io/pod-name": "x",
			"apps.kubernetes.io/pod-index": "x", "batch.kubernetes.io/job-name": "x", "app.kubernetes.io/name": "x", "offloading.liqo.io/origin": "x", "liqo.io/managed-by": "x"},
			map[string]string{"batch.kubernetes.io/job-completion-index": "0", "kubectl.kubernetes.io/restartedAt": "x", "liqo.io/origin-uid": "x"}); refused != "" {
			t.Errorf("%s: %s", profile, refused)
		}
		// Labels of which nothing is known but that Services select by them.
		own := map[string]string{"cnpg.io/cluster": "x", "strimzi.io/name": "x", "postgres-operator.crunchydata.com/role": "x", "ray.io/cluster": "x",
			"jobset.sigs.k8s.io/jobset-name": "x", "barn.garden.example/cluster": "x"}
		if labels, _, _ := keys.Allowed(own, nil); (len(labels) == len(own)) != (profile == "compatible") || profile == "hardened" && len(labels) > 0 {
			t.Errorf("%s: of labels of other domains %v pass", profile, labels)
		}
		if consumers := config.Offloading.Consumers; len(consumers.CSIDrivers)+len(consumers.Tolerations) > 0 || consumers.MaxTerminationGracePeriod.Hours() != 1 {
			t.Errorf("%s: by default consumers may use %+v", profile, consumers)
		}
	}
}
