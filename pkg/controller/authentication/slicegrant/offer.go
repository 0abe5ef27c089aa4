package slicegrant

import (
	"context"
	"fmt"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

const defaultStorageClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// StorageOffer lists the storage classes by name. The default is the named one, else the cluster's.
func StorageOffer(classes []storagev1.StorageClass, defaultName string) []authv1beta1.StorageType {
	var offer []authv1beta1.StorageType
	for i := range classes {
		class := &classes[i]
		isDefault := class.Name == defaultName
		if defaultName == "" {
			isDefault = class.Annotations[defaultStorageClassAnnotation] == "true"
		}
		offer = append(offer, authv1beta1.StorageType{StorageClassName: class.Name, Default: isDefault})
	}
	slices.SortFunc(offer, func(a, b authv1beta1.StorageType) int { return strings.Compare(a.StorageClassName, b.StorageClassName) })
	return offer[:min(len(offer), 256)]
}

// offer puts what comes with every grant into the status.
func (r *Reconciler) offer(ctx context.Context, status *authv1beta1.ResourceSliceStatus) error {
	classes := &storagev1.StorageClassList{}
	if err := r.client.List(ctx, classes); err != nil {
		return fmt.Errorf("listing StorageClasses: %w", err)
	}
	o := &r.options
	status.StorageClasses = StorageOffer(classes.Items, o.StorageClass)
	status.IngressClasses, status.LoadBalancerClasses = o.IngressClasses, o.LoadBalancerClasses
	status.NodeLabels, status.PodCIDRs = o.ClusterLabels, o.PodCIDRs
	return nil
}
