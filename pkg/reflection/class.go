package reflection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// giveClass notes on a wanted object that its class is one which the provider offered.
func giveClass(wanted Object, class string) {
	annotations := wanted.GetAnnotations()
	delete(annotations, offloadingv1beta1.ReflectedKeysAnnotation)
	annotations[offloadingv1beta1.GivenClassAnnotation] = class
	wanted.SetAnnotations(annotations)
	recordKeys(wanted)
}

// classGiven tells whether a live object has its class from here.
func classGiven(live Object, class *string) bool {
	given := live.GetAnnotations()[offloadingv1beta1.GivenClassAnnotation]
	return given != "" && class != nil && *class == given
}

// serviceKeep leaves a load balancer the class that is no longer offered: to change it the Service would have to be made anew, with
// other addresses, and who withdraws a class may still serve what has it.
func serviceKeep(liveObject, wantedObject Object) (kept Object, what string) {
	live, wanted := liveObject.(*corev1.Service), wantedObject.(*corev1.Service)
	if serviceType(wanted.Spec) != corev1.ServiceTypeLoadBalancer || wanted.Spec.LoadBalancerClass != nil ||
		serviceType(live.Spec) != corev1.ServiceTypeLoadBalancer || !classGiven(live, live.Spec.LoadBalancerClass) {
		return nil, ""
	}
	class := *live.Spec.LoadBalancerClass
	what = fmt.Sprintf("its load balancer is still of class %s, which the provider does not offer any more", class)
	kept = WithoutPart(wanted, what)
	giveClass(kept, class)
	return kept, what
}
