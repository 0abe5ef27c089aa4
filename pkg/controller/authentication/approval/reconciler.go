package approval

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=get;list;watch
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests/approval,verbs=update
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=signers,resourceNames=kubernetes.io/kube-apiserver-client-kubelet;kubernetes.io/kubelet-serving,verbs=approve
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=get;list;watch

const (
	// retry is for requests that come before their pod's address is known here.
	retry   = 5 * time.Second
	retries = time.Minute
)

// Options of the controller.
type Options struct {
	// Clock bounds how long a request is tried again.
	Clock clock.PassiveClock
}

// Reconciler approves the requests of virtual kubelets.
type Reconciler struct {
	client client.Client
	// live reads pods past the cache, which holds other pods only.
	live    client.Reader
	options Options
	events  events.EventRecorder
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), options: o, events: mgr.GetEventRecorder("liqo-approval")}
	return ctrl.NewControllerManagedBy(mgr).Named("approval").
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(watch.Where(concerns))).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// concerns tells whether a request is undecided and of a signer for nodes.
func concerns(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Conditions) == 0 && len(csr.Status.Certificate) == 0 &&
		(csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName || csr.Spec.SignerName == certificatesv1.KubeletServingSignerName)
}

// Reconcile judges one request.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.client.Get(ctx, request.NamespacedName, csr); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	name := NodeName(csr.Spec.Request)
	if !concerns(csr) || name == "" {
		return ctrl.Result{}, nil
	}
	facts, err := r.facts(ctx, name)
	if err != nil {
		return reconcile.Result(err)
	}
	if len(facts.VirtualNodes) == 0 {
		return ctrl.Result{}, nil // a real node's, or nobody's
	}
	if err := Judge(csr, name, facts); err != nil {
		return r.refuse(ctx, csr, err), nil
	}
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: authv1beta1.ReasonRequestApproved,
		Message: "the virtual kubelet of VirtualNode " + name, LastUpdateTime: metav1.NewTime(r.options.Clock.Now()),
	})
	if err := r.client.SubResource("approval").Update(ctx, approved); err != nil {
		return reconcile.Result(fmt.Errorf("approving CertificateSigningRequest %s: %w", csr.Name, err))
	}
	return ctrl.Result{}, nil
}

// NodeName is the node that a request claims to be of, empty if it claims none.
func NodeName(request []byte) string {
	block, _ := pem.Decode(request)
	if len(request) > identity.MaxCSR || block == nil {
		return ""
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	name, ok := strings.CutPrefix(parsed.Subject.CommonName, identity.NodeUser(""))
	if !ok {
		return ""
	}
	return name
}

func (r *Reconciler) facts(ctx context.Context, name string) (Facts, error) {
	all := &offloadingv1beta1.VirtualNodeList{}
	if err := r.client.List(ctx, all); err != nil {
		return Facts{}, fmt.Errorf("listing VirtualNodes: %w", err)
	}
	var facts Facts
	for i := range all.Items {
		if all.Items[i].Name == name {
			facts.VirtualNodes = append(facts.VirtualNodes, all.Items[i])
		}
	}
	if len(facts.VirtualNodes) != 1 {
		return facts, nil
	}
	node := &corev1.Node{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, node); err == nil {
		facts.Node = node
	} else if client.IgnoreNotFound(err) != nil {
		return Facts{}, fmt.Errorf("reading Node %s: %w", name, err)
	}
	pods := &corev1.PodList{}
	err := r.live.List(ctx, pods, client.InNamespace(facts.VirtualNodes[0].Namespace), client.MatchingLabels{
		offloadingv1beta1.VirtualNodeLabel: name, offloadingv1beta1.ComponentLabel: offloadingv1beta1.VirtualKubeletComponent,
	})
	if err != nil {
		return Facts{}, fmt.Errorf("listing the pods of virtual kubelet %s: %w", name, err)
	}
	facts.Pods = pods.Items
	return facts, nil
}

// refuse leaves a request alone; while it is young it is looked at again, since its pod's address may arrive later than it.
func (r *Reconciler) refuse(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, why error) ctrl.Result {
	if r.options.Clock.Since(csr.CreationTimestamp.Time) < retries {
		return ctrl.Result{RequeueAfter: retry}
	}
	reason := authv1beta1.ReasonRequestRefused
	if refusal, ok := identity.ReasonOf(why); ok {
		reason = string(refusal)
	}
	ctrl.LoggerFrom(ctx).Info("Left a certificate request of a virtual kubelet alone", "reason", reason, "message", why.Error(), "requester", csr.Spec.Username)
	r.events.Eventf(csr, nil, corev1.EventTypeWarning, reason, "Approve", "%s", conditions.Bound(why.Error()))
	return ctrl.Result{}
}
