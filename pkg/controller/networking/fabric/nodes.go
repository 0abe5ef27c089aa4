package fabric

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/external"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=internalnodes,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=networking.liqo.io,resources=internalnodes/status,verbs=update;patch

// nodes keeps the InternalNodes.
type nodes struct {
	client client.Client
	live   client.Reader
	ledger *external.Ledger
	// pods are those of this cluster, by podaddress.Indexes; cluster are their ranges.
	pods    client.Reader
	cluster []netip.Prefix
	clock   clock.PassiveClock
	// written is when the status of each InternalNode was written last. One worker reconciles them, one after the other.
	written map[string]time.Time
}

// pause is how long changes of a node's pods are collected after one was written: the first is told at once.
const pause = time.Second

// Reconcile makes, updates or removes the InternalNode of one Node.
func (r *nodes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	err := r.client.Get(ctx, request.NamespacedName, node)
	if apierrors.IsNotFound(err) || err == nil && !isPhysical(node.Labels) {
		return reconcile.Result(r.remove(ctx, request))
	}
	if err != nil {
		return reconcile.Result(fmt.Errorf("reading Node %s: %w", request.Name, err))
	}
	internal, err := r.ensure(ctx, request)
	if err != nil || internal == nil {
		return reconcile.Result(err)
	}
	strays, err := r.strays(ctx, node)
	if err != nil {
		return reconcile.Result(err)
	}
	updated := internal.DeepCopy()
	observe(&updated.Status, node, strays, internal.Generation)
	if equality.Semantic.DeepEqual(internal.Status, updated.Status) {
		return ctrl.Result{}, nil
	}
	if wait := pause - r.clock.Since(r.written[request.Name]); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	r.written[request.Name] = r.clock.Now()
	// The agent of the node writes there too: the conditions are one list.
	patch := client.MergeFromWithOptions(internal, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, updated, patch); err != nil {
		return reconcile.Result(fmt.Errorf("writing the status of InternalNode %s: %w", request.Name, err))
	}
	return ctrl.Result{}, nil
}

// ensure makes an InternalNode, or puts back its address towards peers. It returns the one that is there; nil if it is going.
func (r *nodes) ensure(ctx context.Context, request ctrl.Request) (*networkingv1beta1.InternalNode, error) {
	internal := &networkingv1beta1.InternalNode{}
	err := r.client.Get(ctx, request.NamespacedName, internal)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading InternalNode %s: %w", request.Name, err)
	}
	missing := apierrors.IsNotFound(err)
	if !missing && !internal.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	address, err := r.ledger.Give(ctx, nodeHolder(request), internal.Spec.Interface.Node.IP)
	if err != nil {
		return nil, err
	}
	want := internal.DeepCopy()
	want.Name, want.Spec.Interface.Node.IP = request.Name, networkingv1beta1.IP(address.String())
	if missing {
		internal, want.Labels = nil, map[string]string{corev1beta1.ManagedLabel: "true"}
	}
	_, err = keep.Known(ctx, keep.Keeper{Client: r.client}, internal, keep.Wanted{Object: want, Ours: keep.Whoever})
	return want, err
}

// remove deletes the InternalNode of a Node that really is gone, or is none of this cluster's machines.
func (r *nodes) remove(ctx context.Context, request ctrl.Request) error {
	delete(r.written, request.Name)
	node, internal := &corev1.Node{}, &networkingv1beta1.InternalNode{}
	if err := r.live.Get(ctx, request.NamespacedName, node); client.IgnoreNotFound(err) != nil || err == nil && isPhysical(node.Labels) {
		return client.IgnoreNotFound(err)
	}
	err := r.live.Get(ctx, request.NamespacedName, internal)
	if apierrors.IsNotFound(err) {
		r.ledger.Release(nodeHolder(request))
		return nil
	}
	if err != nil || !keep.Managed(internal) || !internal.DeletionTimestamp.IsZero() {
		return err
	}
	return keep.Delete(ctx, r.client, internal)
}

func nodeHolder(request ctrl.Request) external.Holder {
	return external.Holder{Kind: external.InternalNode, NamespacedName: request.NamespacedName}
}
