package shadowpod

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/json"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/webhook/patch"
	"liqo.io/liqo/pkg/webhook/weight"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=shadowpods;quotas,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Paths that the webhooks are served at.
const (
	MutatePath = "/mutate/shadowpods"
	// ValidatePath is none that releases without a token serve: helm takes the token, which it does not know, back with the path if it goes
	// back to such a release, and it changes only what the two charts say differently.
	ValidatePath = "/validate/consumers/shadowpods"
)

// Options configure the webhooks.
type Options struct {
	// Check returns what a PodSpec has that is not on the allow-list; required.
	Check func(*corev1.PodSpec) field.ErrorList
	// Enforce makes a Quota a condition of every ShadowPod.
	Enforce bool
	// Token is what API servers, and nobody else, know to say at the end of ValidatePath; nil if there is none. Who does not say it gets an
	// answer, but nothing is reserved for it.
	Token func() string
	// Clock ends reservations; the real one if nil.
	Clock clock.PassiveClock
}

type webhook struct {
	client.Reader
	Options
	book *book
}

// Register serves the webhooks on a manager's webhook server, and feeds the ledger on every replica.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Check == nil {
		return fmt.Errorf("registering the ShadowPod webhooks: Options.Check is required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	w := &webhook{Reader: mgr.GetClient(), Options: o, book: newBook(mgr.GetCache())}
	if err := mgr.Add(w.book); err != nil {
		return fmt.Errorf("registering the ledger of ShadowPods: %w", err)
	}
	mgr.GetWebhookServer().Register(MutatePath, &admission.Webhook{Handler: admission.HandlerFunc(w.mutate)})
	validate := w.server()
	for _, path := range []string{ValidatePath, ValidatePath + "/"} {
		mgr.GetWebhookServer().Register(path, validate)
	}
	return nil
}

// server answers reviews. API servers do not authenticate at webhooks unless they are configured to, and whoever reaches the port could
// reserve the grants of others away: of a caller that does not know the token every review is taken for a dry run.
func (w *webhook) server() http.Handler {
	known := &admission.Webhook{Handler: weight.Handler(admission.HandlerFunc(w.validate))}
	unknown := &admission.Webhook{Handler: weight.Handler(admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		req.DryRun = ptr.To(true)
		return w.validate(ctx, req)
	}))}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		said, token := strings.TrimPrefix(r.URL.Path, ValidatePath+"/"), ""
		if w.Token != nil {
			token = w.Token()
		}
		if token != "" && subtle.ConstantTimeCompare([]byte(said), []byte(token)) == 1 {
			known.ServeHTTP(out, r)
			return
		}
		unknown.ServeHTTP(out, r)
	})
}

// decode reads a ShadowPod. Fields that it does not know are an error: they could mean something to a newer Kubernetes.
func decode(raw []byte, strictly bool) (*offloadingv1beta1.ShadowPod, error) {
	var shadow offloadingv1beta1.ShadowPod
	problems, err := json.UnmarshalStrict(raw, &shadow)
	if err != nil {
		return nil, fmt.Errorf("decoding the ShadowPod: %w", err)
	}
	if strictly && len(problems) > 0 {
		return nil, fmt.Errorf("decoding the ShadowPod: %w", problems[0])
	}
	return &shadow, nil
}

// labelled is what is read of a ShadowPod before API servers have compared it with its schema: to decode what a consumer put into the rest could
// take all memory, or minutes.
func labelled(raw []byte) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, object); err != nil {
		return nil, fmt.Errorf("decoding the metadata of the ShadowPod: %w", err)
	}
	return object, nil
}

// mutate records who creates a ShadowPod.
func (w *webhook) mutate(_ context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	shadow, err := labelled(req.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	creator := capacity.UserLabel(req.UserInfo.Username)
	if req.Operation == admissionv1.Update {
		old, err := labelled(req.OldObject.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		creator = old.Labels[offloadingv1beta1.CreatorUserLabel]
	}
	if creator == "" || shadow.Labels[offloadingv1beta1.CreatorUserLabel] == creator {
		return admission.Allowed("")
	}
	before := shadow.DeepCopy()
	if shadow.Labels == nil {
		shadow.Labels = map[string]string{}
	}
	shadow.Labels[offloadingv1beta1.CreatorUserLabel] = creator
	return patch.Between(before, shadow)
}

// consumerOf returns the consumer that a requester acts for, by its groups. Two consumers at once are none.
func consumerOf(groups []string) string {
	prefix, found := identity.ConsumerGroup(""), ""
	for _, group := range groups {
		id, ok := strings.CutPrefix(group, prefix)
		if !ok || id == "" || id == found {
			continue
		}
		if found != "" {
			return ""
		}
		found = id
	}
	return found
}

// refuse answers with the stable reason before the words.
func refuse(reason, format string, args ...any) admission.Response {
	return admission.Denied(reason + ": " + fmt.Sprintf(format, args...))
}

// validate decides about one request.
func (w *webhook) validate(ctx context.Context, req admission.Request) admission.Response {
	switch req.Operation {
	case admissionv1.Create:
		return w.create(ctx, req)
	case admissionv1.Update:
		return w.update(ctx, req)
	default:
		return admission.Allowed("")
	}
}
