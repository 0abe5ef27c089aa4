package weight

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// Path that the webhook for what consumers write is served at. The chart asks it where API servers have no mutating policies, which do the
	// same: both are asked before the object is compared with its schema.
	Path = "/mutate/elements"

	// mostBytes of a review: API servers take objects of 3 MiB, and tell of the old and of the new one.
	mostBytes = 7 << 20
	// bytesInFlight of all large reviews together. Decoded they take some ten times as much, of the 1 GiB of the controller manager.
	bytesInFlight = 32 << 20
	// small reviews, as almost all are, wait for no others: who says that much is coming and sends nothing holds up large ones alone.
	small = 128 << 10
	// patience for a large review to come in, and for its turn: API servers wait for ten seconds unless they are told otherwise.
	patience = 10 * time.Second
)

// Register serves the webhook for what consumers write on a manager's webhook server.
func Register(mgr ctrl.Manager) {
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: admission.HandlerFunc(Judge)})
}

// Judge refuses what a consumer writes if it has too many elements.
func Judge(_ context.Context, req admission.Request) admission.Response {
	if why := tooMany(schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}, req.Object.Raw); why != "" {
		return admission.Denied(why)
	}
	return admission.Allowed("")
}

// server bounds what all webhooks of a server are asked.
type server struct {
	webhook.Server
	inFlight *semaphore.Weighted
	small    int64
}

// Bounded is a server whose webhooks get no more bytes at once than fit into memory, and no object with more elements than any may have.
func Bounded(of webhook.Server) webhook.Server {
	return &server{of, semaphore.NewWeighted(bytesInFlight), small}
}

// Register adds a webhook.
func (s *server) Register(path string, hook http.Handler) {
	if review, ok := hook.(*admission.Webhook); ok {
		review.Handler = Handler(review.Handler)
	}
	s.Server.Register(path, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 || r.ContentLength > mostBytes {
			http.Error(out, fmt.Sprintf("a review has at most %d bytes, and says how many", mostBytes), http.StatusRequestEntityTooLarge)
			return
		}
		if r.ContentLength > s.small {
			ctx, cancel := context.WithTimeout(r.Context(), patience)
			defer cancel()
			if err := s.inFlight.Acquire(ctx, r.ContentLength); err != nil {
				http.Error(out, "too many large reviews at once", http.StatusTooManyRequests)
				return
			}
			defer s.inFlight.Release(r.ContentLength)
			if err := http.NewResponseController(out).SetReadDeadline(time.Now().Add(patience)); err != nil {
				http.Error(out, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		hook.ServeHTTP(out, r)
	}))
}

// Handler refuses objects with more elements than any may have before the given one decodes them.
func Handler(of admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		for _, raw := range [][]byte{req.Object.Raw, req.OldObject.Raw} {
			if n := Elements(raw); n > 2*mostOfAny {
				return admission.Denied(fmt.Sprintf("%s: %d elements, of any object at most %d may be", ReasonTooManyElements, n, 2*mostOfAny))
			}
		}
		return of.Handle(ctx, req)
	})
}
