package virtualnode

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"

	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/keep"
)

// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=list;delete

// forgetRequests removes the certificate requests that the virtual kubelet made. Kubernetes does so as well, but an hour later.
func (r *reconciler) forgetRequests(ctx context.Context, s *scope) error {
	users := map[string]bool{"system:serviceaccount:" + s.vn.Namespace + ":" + s.vn.Name: true}
	// Another node of that name, which is not ours, has requests of its own.
	if s.node != nil && isNodeOf(s.node, s.vn) {
		users[identity.NodeUser(s.vn.Name)] = true
	}
	var requests certificatesv1.CertificateSigningRequestList
	if err := r.Live.List(ctx, &requests); err != nil {
		return fmt.Errorf("listing the certificate requests of virtual kubelet %s/%s: %w", s.vn.Namespace, s.vn.Name, err)
	}
	for i := range requests.Items {
		csr := &requests.Items[i]
		signer := csr.Spec.SignerName
		if !users[csr.Spec.Username] || signer != certificatesv1.KubeAPIServerClientKubeletSignerName && signer != certificatesv1.KubeletServingSignerName {
			continue
		}
		if err := keep.Delete(ctx, r.Client, csr); err != nil {
			return err
		}
	}
	return nil
}
