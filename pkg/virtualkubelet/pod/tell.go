package pod

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

const (
	// noAPIServerCalm is how long pods of one workload are silent about what one of them said: nearly every pod has a token
	// that it never uses.
	noAPIServerCalm = time.Hour
	// noAPIServerTold bounds the workloads that are remembered as told; forgetting one costs an Event.
	noAPIServerTold = 1024
)

// tellNoAPIServer tells the user of a new pod that it cannot use its own cluster's API server: the first one of each workload,
// and of the pods of a ServiceAccount that belong to none.
func (r *Reconciler) tellNoAPIServer(local *corev1.Pod) {
	why := reflection.WhyNoAPIServer(local, r.options.API, r.options.Remote)
	if why == "" || r.options.Recorder == nil {
		return
	}
	workload := local.Namespace + "/" + local.Spec.ServiceAccountName
	if owner := metav1.GetControllerOf(local); owner != nil {
		workload = string(owner.UID)
	}
	r.mu.Lock()
	_, told := r.told.Get(workload)
	if !told {
		r.told.Add(workload, true, noAPIServerCalm)
	}
	r.mu.Unlock()
	if !told {
		r.options.Recorder.Event(local, corev1.EventTypeWarning, offloadingv1beta1.ReasonNoAPIServerAddress, why)
	}
}
