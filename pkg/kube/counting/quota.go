package counting

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
)

const (
	// QuotaName is the name of our ResourceQuota, of which a namespace has one at most.
	QuotaName = "liqo"
	// patience is how long Kubernetes' quota controller gets to count for a new ResourceQuota; it needs a fraction of a second.
	patience = 5 * time.Second
	// uncounted is the age after which nothing is asked again: by then the quota controller counted everything of its own accord,
	// which it does every 5 minutes (--resource-quota-sync-period).
	uncounted = 10 * time.Minute
)

// Quotas keeps ResourceQuotas. All fields but NotBefore are required.
type Quotas struct {
	// Client writes them.
	Client client.Client
	// Live reads them, past the cache.
	Live client.Reader
	// Clock tells how old they are.
	Clock clock.PassiveClock
	// NotBefore is when the first one may be made; zero if at once. See KindsKnown.
	NotBefore time.Time
}

// KindsKnown is how long Kubernetes' quota controller may take to learn of new kinds, which it looks for every 30 s. A ResourceQuota that
// counts one before that has all objects of the kind refused meanwhile.
const KindsKnown = 35 * time.Second

// Ensure makes the ResourceQuota of a namespace what is wanted. again is when it has to be looked at again, 0 for not before something
// changes. One of that name that somebody else made is left alone, and refused: it bounds what its owner wants, not what we want.
func (q Quotas) Ensure(ctx context.Context, namespace string, hard corev1.ResourceList) (again time.Duration, err error) {
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: QuotaName, Labels: map[string]string{corev1beta1.ManagedLabel: "true"}},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}
	early := q.NotBefore.Sub(q.Clock.Now())
	wrote, err := keep.Keeper{Client: q.Client, Reader: q.Live, Reason: authv1beta1.ReasonNotOurs}.Keep(ctx, keep.Wanted{Object: quota, Optional: early > 0})
	switch {
	case err != nil:
		return 0, err
	case quota.ResourceVersion == "":
		return early, nil
	case wrote:
		return patience, nil
	}
	return q.recount(ctx, quota)
}

// recount sees to it that a ResourceQuota is counted in full. Kubernetes' quota controller looks for new resource types every 30 s
// only, and leaves what it does not know out of the used amounts of a quota that is made before that, until the next full pass. All the
// time the API server refuses such objects ("status unknown for quota"). On a cluster that has just got its CRDs, this would keep
// EndpointSlices away for minutes. A changed limit makes the quota controller count again: so it is raised by one, and restored
// in the next pass.
func (q Quotas) recount(ctx context.Context, live *corev1.ResourceQuota) (again time.Duration, err error) {
	age := q.Clock.Since(live.CreationTimestamp.Time)
	raised := live.DeepCopy()
	missing := false
	for name, limit := range live.Spec.Hard {
		if _, counted := live.Status.Used[name]; !counted {
			limit.Add(*resource.NewQuantity(1, limit.Format))
			raised.Spec.Hard[name], missing = limit, true
		}
	}
	switch {
	case !missing || age > uncounted:
		return 0, nil
	case age < patience:
		return patience - age, nil
	}
	if err := q.Client.Update(ctx, raised); err != nil {
		return 0, fmt.Errorf("having ResourceQuota %s/%s counted: %w", live.Namespace, live.Name, err)
	}
	return time.Second, nil
}
