package shadowpod

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

// create decides about a new ShadowPod.
func (w *webhook) create(ctx context.Context, req admission.Request) admission.Response {
	shadow, err := decode(req.Object.Raw, true)
	if err != nil {
		return refuse(offloadingv1beta1.ReasonPodRefused, "%v", err)
	}
	consumer := consumerOf(req.UserInfo.Groups)
	if consumer == "" {
		return refuse(offloadingv1beta1.ReasonPodRefused, "only a virtual kubelet of a consumer cluster may create ShadowPods; to run a pod here, create a Pod")
	}
	var ns corev1.Namespace
	if err := w.Get(ctx, client.ObjectKey{Name: req.Namespace}, &ns); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("reading Namespace %s: %w", req.Namespace, err))
	}
	if response := checkOwner(shadow, &ns, consumer); !response.Allowed {
		return response
	}
	creator := capacity.UserLabel(req.UserInfo.Username)
	if shadow.Labels[offloadingv1beta1.CreatorUserLabel] != creator {
		return refuse(offloadingv1beta1.ReasonPodRefused, "the label %s does not name the user that creates the ShadowPod", offloadingv1beta1.CreatorUserLabel)
	}
	if problems := w.Check(&shadow.Spec.Pod); len(problems) > 0 {
		return refuse(offloadingv1beta1.ReasonPodRefused, "%v", problems.ToAggregate())
	}
	if why := whyTooMany(&corev1.PodSpec{}, &shadow.Spec.Pod); why != "" {
		return refuse(offloadingv1beta1.ReasonPodRefused, "%s", why)
	}
	return w.charge(ctx, req, shadow, consumer, creator)
}

// checkOwner holds namespace, object and requester against each other.
func checkOwner(shadow *offloadingv1beta1.ShadowPod, ns *corev1.Namespace, consumer string) admission.Response {
	twin := ns.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation] != "" && ns.Labels[corev1beta1.ManagedLabel] == "true"
	switch origin := shadow.Labels[offloadingv1beta1.OriginLabel]; {
	case !twin || ns.Labels[corev1beta1.RemoteClusterIDLabel] != consumer:
		return refuse(offloadingv1beta1.ReasonPodRefused, "namespace %s is not offloaded by cluster %s", ns.Name, consumer)
	case origin != consumer:
		return refuse(offloadingv1beta1.ReasonPodRefused, "the label %s is %q and must be %q", offloadingv1beta1.OriginLabel, origin, consumer)
	case len(shadow.Finalizers) > 0 || len(shadow.OwnerReferences) > 0:
		return refuse(offloadingv1beta1.ReasonPodRefused, "a ShadowPod has no finalizers and no owner references")
	}
	return admission.Allowed("")
}

// charge holds a new ShadowPod against its user's Quota.
func (w *webhook) charge(ctx context.Context, req admission.Request, shadow *offloadingv1beta1.ShadowPod, consumer, creator string) admission.Response {
	grant, err := w.grant(ctx, consumer, req.UserInfo.Username)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	switch {
	case grant == nil && w.Enforce:
		return refuse(offloadingv1beta1.ReasonQuotaExceeded,
			"the provider has no Quota for user %s: the ResourceSlice is not granted yet, or is gone", req.UserInfo.Username)
	case grant == nil:
		return admission.Allowed("")
	case !w.Enforce:
		if ptr.Deref(grant.Cordoned, false) {
			return refuse(offloadingv1beta1.ReasonCordoned, "the provider takes no new pods of this slice: it is cordoned; ask the provider's administrator")
		}
		return admission.Allowed("")
	case !w.book.ready():
		return admission.Errored(http.StatusServiceUnavailable, fmt.Errorf("the provider is counting the pods that exist; try again"))
	}
	name := shadow.Name
	if name == "" {
		name = req.Name
	}
	key := types.NamespacedName{Namespace: req.Namespace, Name: name}
	if refusal := w.book.ledger.Admit(key, creator, grant, &shadow.Spec.Pod, w.Clock.Now(), ptr.Deref(req.DryRun, false)); refusal != nil {
		return refuse(refusal.Reason, "%s", refusal.Message)
	}
	return admission.Allowed("")
}

// grant returns the Quota of a consumer's user; nil if there is none. Of several the first by name counts.
func (w *webhook) grant(ctx context.Context, consumer, user string) (*offloadingv1beta1.QuotaSpec, error) {
	var list offloadingv1beta1.QuotaList
	namespace := corev1beta1.TenantNamespacePrefix + consumer
	if err := w.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing Quotas in %s: %w", namespace, err)
	}
	var found *offloadingv1beta1.Quota
	for i := range list.Items {
		if q := &list.Items[i]; q.Spec.User == user && (found == nil || q.Name < found.Name) {
			found = q
		}
	}
	if found == nil {
		return nil, nil
	}
	return &found.Spec, nil
}

// update decides about a change of a ShadowPod.
func (w *webhook) update(ctx context.Context, req admission.Request) admission.Response {
	shadow, err := decode(req.Object.Raw, true)
	if err != nil {
		return refuse(offloadingv1beta1.ReasonPodRefused, "%v", err)
	}
	old, err := decode(req.OldObject.Raw, false)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	consumer := consumerOf(req.UserInfo.Groups)
	if why := whyUnchangeable(old, shadow, consumer, req.UserInfo.Username); why != "" {
		return refuse(offloadingv1beta1.ReasonPodRefused, "%s", why)
	}
	if problems := w.added(&old.Spec.Pod, &shadow.Spec.Pod); len(problems) > 0 && consumer != "" {
		return refuse(offloadingv1beta1.ReasonPodRefused, "%v", problems.ToAggregate())
	}
	if consumer == "" || sameResources(&old.Spec.Pod, &shadow.Spec.Pod) {
		return admission.Allowed("")
	}
	return w.chargeChange(ctx, req, old, shadow, consumer)
}

// added is what is not on the allow-list and was not there before: what a provider let in once, by rules of another release or other values, does not
// keep the rest from being changed.
func (w *webhook) added(old, now *corev1.PodSpec) field.ErrorList {
	problems := w.Check(now)
	if len(problems) == 0 {
		return nil
	}
	before := sets.New[string]()
	for _, problem := range w.Check(old) {
		before.Insert(problem.Error())
	}
	return slices.DeleteFunc(problems, func(problem *field.Error) bool { return before.Has(problem.Error()) })
}

// whyUnchangeable returns why one ShadowPod may not follow another, or nothing if it may. The consumer is empty if somebody of
// this cluster writes, who may do more.
func whyUnchangeable(old, shadow *offloadingv1beta1.ShadowPod, consumer, user string) string {
	if consumer != "" && old.Labels[offloadingv1beta1.CreatorUserLabel] != capacity.UserLabel(user) {
		return "the ShadowPod was created by another user"
	}
	for _, label := range []string{offloadingv1beta1.OriginLabel, offloadingv1beta1.CreatorUserLabel} {
		if shadow.Labels[label] != old.Labels[label] {
			return fmt.Sprintf("the label %s cannot be changed", label)
		}
	}
	if consumer != "" && (len(shadow.Finalizers) > len(old.Finalizers) || len(shadow.OwnerReferences) > len(old.OwnerReferences)) {
		return "a ShadowPod has no finalizers and no owner references"
	}
	return whyImmutable(&old.Spec.Pod, &shadow.Spec.Pod)
}

// sameResources tells whether the containers of a specification, and all of them together, have the same resources as those of
// another one that may follow it.
func sameResources(old, now *corev1.PodSpec) bool {
	for _, pair := range [][2][]corev1.Container{{old.Containers, now.Containers}, {old.InitContainers, now.InitContainers}} {
		for i := range pair[1] {
			if !equality.Semantic.DeepEqual(pair[0][i].Resources, pair[1][i].Resources) {
				return false
			}
		}
	}
	return equality.Semantic.DeepEqual(old.Resources, now.Resources)
}

// grows tells whether a specification takes more of anything than the one before it.
func grows(old, now *corev1.PodSpec) bool {
	before := capacity.PodRequests(old)
	return !equality.Semantic.DeepEqual(capacity.Larger(before, capacity.PodRequests(now)), before)
}

// chargeChange holds a ShadowPod that is resized against its user's Quota.
func (w *webhook) chargeChange(ctx context.Context, req admission.Request, old, shadow *offloadingv1beta1.ShadowPod, consumer string) admission.Response {
	grant, err := w.grant(ctx, consumer, req.UserInfo.Username)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case grant == nil && w.Enforce:
		return refuse(offloadingv1beta1.ReasonQuotaExceeded, "the provider has no Quota for user %s: the ResourceSlice is gone", req.UserInfo.Username)
	case grant == nil:
		return admission.Allowed("")
	case !w.Enforce:
		if refusal := capacity.CheckGrowth(grant); refusal != nil && grows(&old.Spec.Pod, &shadow.Spec.Pod) {
			return refuse(refusal.Reason, "%s", refusal.Message)
		}
		return admission.Allowed("")
	case !w.book.ready():
		return admission.Errored(http.StatusServiceUnavailable, fmt.Errorf("the provider is counting the pods that exist; try again"))
	}
	key := types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
	creator := shadow.Labels[offloadingv1beta1.CreatorUserLabel]
	if refusal := w.book.ledger.Change(key, creator, grant, &shadow.Spec.Pod, w.Clock.Now(), ptr.Deref(req.DryRun, false)); refusal != nil {
		return refuse(refusal.Reason, "%s", refusal.Message)
	}
	return admission.Allowed("")
}
