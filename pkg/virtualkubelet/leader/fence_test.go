package leader

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type answering struct{}

func (answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// B2: who stood still for longer than the lease is good writes nothing any more, and may ask.
func TestB2WhoMayHaveBeenReplacedWritesNothing(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		until        *time.Time
		method, path string
		refused      bool
	}{
		"a replica that was not active yet":    {method: http.MethodPost, path: "/apis/certificates.k8s.io/v1/certificatesigningrequests"},
		"the active one":                       {until: new(now.Add(time.Minute)), method: http.MethodPost, path: "/api/v1/namespaces/shop/events"},
		"a creation after its time":            {until: new(now.Add(-time.Second)), method: http.MethodPost, path: "/api/v1/namespaces/shop/events", refused: true},
		"a patch after its time":               {until: new(now.Add(-time.Second)), method: http.MethodPatch, path: "/api/v1/nodes/milan/status", refused: true},
		"a deletion after its time":            {until: new(now.Add(-time.Second)), method: http.MethodDelete, path: "/api/v1/namespaces/shop/pods/a", refused: true},
		"a question after its time":            {until: new(now.Add(-time.Second)), method: http.MethodGet, path: "/api/v1/namespaces/shop/pods/a"},
		"a review of rights after its time":    {until: new(now.Add(-time.Second)), method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		"a review of a token after its time":   {until: new(now.Add(-time.Second)), method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/tokenreviews"},
		"the machine slept, by the wall clock": {until: new(now.Round(0).Add(-time.Second)), method: http.MethodPut, path: "/api/v1/nodes/milan", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Fence{}
			if c.until != nil {
				f.open(*c.until)
			}
			response, err := f.Wrap(answering{}).RoundTrip(httptest.NewRequest(c.method, "https://peer"+c.path, strings.NewReader("x")))
			if refused := errors.Is(err, errFenced); refused != c.refused || (err == nil) == refused {
				t.Errorf("refused: %v (%v), want %v", refused, err, c.refused)
			}
			if response != nil {
				_ = response.Body.Close()
			}
		})
	}
}
