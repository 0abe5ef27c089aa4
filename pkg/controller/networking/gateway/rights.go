package gateway

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=liqo-gateway,verbs=bind

// rights keeps the ClusterRoleBinding of each gateway. It cannot be owned by what is in a namespace, so it is made and removed by its name.
type rights struct {
	client.Client
	live client.Reader
}

func registerRights(mgr ctrl.Manager, live client.Reader) error {
	r := &rights{Client: mgr.GetClient(), live: live}
	ofGateway := watch.One(func(o client.Object) client.ObjectKey {
		return client.ObjectKey{Name: bindingName(client.ObjectKeyFromObject(o))}
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("gatewayrights").
		For(&rbacv1.ClusterRoleBinding{}, builder.WithPredicates(watch.Labelled(networkingv1beta1.GatewayComponentLabel, networkingv1beta1.GatewayComponent))).
		Watches(&networkingv1beta1.WgGatewayServer{}, ofGateway).
		Watches(&networkingv1beta1.WgGatewayClient{}, ofGateway).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of gateways' rights: %w", err)
	}
	return nil
}

// bindingName is the name of a gateway's ClusterRoleBinding. No name of a namespace or a gateway has a colon.
func bindingName(gateway client.ObjectKey) string {
	return strings.Join([]string{networkingv1beta1.GatewayClusterRole, gateway.Namespace, gateway.Name}, ":")
}

// gatewayOf is the gateway that a ClusterRoleBinding is named after.
func gatewayOf(binding string) (client.ObjectKey, bool) {
	parts := strings.Split(binding, ":")
	if len(parts) != 3 || parts[0] != networkingv1beta1.GatewayClusterRole {
		return client.ObjectKey{}, false
	}
	return client.ObjectKey{Namespace: parts[1], Name: parts[2]}, true
}

// Reconcile makes one ClusterRoleBinding, or removes it.
func (r *rights) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key, known := gatewayOf(req.Name)
	if !known {
		return ctrl.Result{}, nil
	}
	runs, err := r.runs(ctx, key)
	if err != nil {
		return reconcile.Result(err)
	}
	keeper := keep.Keeper{Client: r.Client, Reader: r.live, Reason: networkingv1beta1.ReasonGatewayNameTaken}
	if runs {
		return reconcile.Result(keeper.All(ctx, newBinding(key)))
	}
	return reconcile.Result(keeper.Remove(ctx, newBinding(key)))
}

// runs tells whether there is such a gateway. It asks the API server: rights are not taken away because a cache does not know yet.
func (r *rights) runs(ctx context.Context, key client.ObjectKey) (bool, error) {
	for _, o := range []client.Object{&networkingv1beta1.WgGatewayServer{}, &networkingv1beta1.WgGatewayClient{}} {
		err := r.live.Get(ctx, key, o)
		if err == nil && o.GetDeletionTimestamp().IsZero() {
			return true, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("reading %T %s: %w", o, key, err)
		}
	}
	return false, nil
}

func newBinding(gateway client.ObjectKey) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: bindingName(gateway), Labels: map[string]string{
			corev1beta1.ManagedLabel:                "true",
			networkingv1beta1.GatewayComponentLabel: networkingv1beta1.GatewayComponent, networkingv1beta1.GatewayNameLabel: gateway.Name,
		}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: networkingv1beta1.GatewayClusterRole},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: gateway.Namespace, Name: networkingv1beta1.GatewayPrefix + gateway.Name,
		}},
	}
}
