package reconcile

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inapplicable is how an API server answers a patch that does not apply.
var inapplicable = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false).Status().Message

// PatchTestFailed tells whether a JSON patch did not apply to the object that is there: one of its tests failed. Admission and
// validation come later, answer with the same code, and name the object, the policy or the webhook. What is neither for certain
// is a refusal: that is tried again, and told with the API server's words.
func PatchTestFailed(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Message != inapplicable {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" && details.Kind == "" && len(details.Causes) == 0
}
