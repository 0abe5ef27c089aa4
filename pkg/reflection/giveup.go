package reflection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// everything is the decision that all volumes may be lost.
const everything = "true"

// GivenUp tells whether the user has decided that the volume of a claim may be lost with an object. A decision is about the
// claims that it names. One about everything counts only while the object is being deleted: it would otherwise outlive its
// occasion, and one day take volumes with it that nobody had in mind.
func GivenUp(object metav1.Object, claim *corev1.ObjectReference) bool {
	decision := object.GetAnnotations()[offloadingv1beta1.DeleteVolumesAnnotation]
	if decision == everything {
		return !object.GetDeletionTimestamp().IsZero()
	}
	if claim == nil || claim.UID == "" {
		return false // Somebody is giving the volume to another claim.
	}
	for uid := range strings.SplitSeq(decision, ",") {
		if strings.TrimSpace(uid) == string(claim.UID) {
			return true
		}
	}
	return false
}

// GiveUp is the decision, as the annotation has it, that the volumes of these claims may be lost.
func GiveUp(claims []corev1.ObjectReference) string {
	var uids []string
	for i := range claims {
		if uid := string(claims[i].UID); uid != "" {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return strings.Join(slices.Compact(uids), ",")
}
