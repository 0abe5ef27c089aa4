// Package patch makes the answers of mutating webhooks. The patch is computed between two encodings of our own, never against
// what the API server sent: so fields that a newer Kubernetes has and our types do not know stay as they are.
package patch

import (
	"encoding/json"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Between answers with the patch that makes before into after.
func Between(before, after any) admission.Response {
	from, err := json.Marshal(before)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("encoding the object: %w", err))
	}
	to, err := json.Marshal(after)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("encoding the changed object: %w", err))
	}
	return admission.PatchResponseFromRaw(from, to)
}
