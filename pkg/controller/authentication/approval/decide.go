package approval

import (
	"errors"
	"fmt"
	"net/netip"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
)

// Facts are what a request is judged by.
type Facts struct {
	// VirtualNodes of the name that the request is about; there must be one.
	VirtualNodes []offloadingv1beta1.VirtualNode
	// Node of that name, nil if there is none yet.
	Node *corev1.Node
	// Pods of the virtual kubelet.
	Pods []corev1.Pod
}

// Judge returns nil if a request is exactly one that the virtual kubelet of the node makes; else why not.
func Judge(csr *certificatesv1.CertificateSigningRequest, name string, facts Facts) error {
	if len(facts.VirtualNodes) != 1 {
		return fmt.Errorf("there are %d VirtualNodes named %s: one is needed", len(facts.VirtualNodes), name)
	}
	virtual := &facts.VirtualNodes[0]
	if virtual.Namespace != corev1beta1.TenantNamespacePrefix+string(virtual.Spec.ClusterID) {
		return fmt.Errorf("the VirtualNode %s is not in its provider's tenant namespace", name)
	}
	if facts.Node != nil && facts.Node.Labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
		return fmt.Errorf("the node %s is not a virtual node", name)
	}
	if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return judgeServing(csr, name, facts.Pods)
	}
	account := "system:serviceaccount:" + virtual.Namespace + ":" + virtual.Name
	var err error
	for _, requester := range []string{account, identity.NodeUser(name)} {
		err = identity.CheckRequest(csr, identity.RequestExpectation{
			Expectation: identity.NodeClientExpectation(name), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: requester,
		})
		if err == nil {
			return nil
		}
		if csr.Spec.Username == requester {
			return err
		}
	}
	return err
}

// judgeServing accepts only the address of a pod of the virtual kubelet.
func judgeServing(csr *certificatesv1.CertificateSigningRequest, name string, pods []corev1.Pod) error {
	err := errors.New("the virtual kubelet has no pod with an address")
	known := addresses(pods, name)
	for _, address := range known {
		err = identity.CheckRequest(csr, identity.RequestExpectation{
			Expectation: identity.NodeServingExpectation(name, address), SignerName: certificatesv1.KubeletServingSignerName, Username: identity.NodeUser(name),
		})
		if err == nil {
			return nil
		}
	}
	if len(known) > 1 {
		return fmt.Errorf("%w; the pods of the virtual kubelet have %v", err, known)
	}
	return err
}

// addresses are those of the pods that run as the virtual kubelet's ServiceAccount, which only its own Deployment may use.
func addresses(pods []corev1.Pod, account string) []netip.Addr {
	var found []netip.Addr
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.ServiceAccountName != account || pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, ip := range pod.Status.PodIPs {
			if address, err := netip.ParseAddr(ip.IP); err == nil {
				found = append(found, address)
			}
		}
	}
	return found
}
