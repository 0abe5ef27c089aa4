package api

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is refused because the provider does not answer reaches the user through the kube-apiserver, in our words.
func TestWhyARequestIsRefusedReachesTheUser(t *testing.T) {
	for _, err := range []error{ErrNotConnected, ErrStandsBy, errNoAnswer, errNoPermission} {
		t.Run(err.Error(), func(t *testing.T) {
			answer := httptest.NewRecorder()
			refuse(answer, fmt.Errorf("pod shop/web: %w", err))
			// As the kube-apiserver makes an error of what a kubelet says, see its GenericHttpResponseChecker.
			shown := apierrors.NewGenericServerResponse(answer.Code, "GET", schema.GroupResource{Resource: "pods/log"}, "web",
				strings.TrimSpace(answer.Body.String()), 0, true)
			if !strings.Contains(shown.Error(), "pod shop/web: "+err.Error()) {
				t.Errorf("the user sees %q", shown)
			}
		})
	}
}
