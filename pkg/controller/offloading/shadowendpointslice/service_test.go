package shadowendpointslice

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Endpoints belong to a Service by its name alone: to one that did not come from the same consumer there are none.
func TestEndpointsAreOfAServiceOfTheSameConsumer(t *testing.T) {
	for name, tc := range map[string]struct {
		service *corev1.Service
		want    bool
		said    string
	}{
		"of the same":         {serviceOf("rome"), true, ""},
		"of another consumer": {serviceOf("naples"), false, offloadingv1beta1.ReasonNameConflict},
		"the provider's own":  {serviceOf(""), false, offloadingv1beta1.ReasonNameConflict},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shadow("10.10.0.1"), announcing("a", "rome", "10.10.0.0/16"), tc.service)
			_, _ = w.pass()
			if there := w.slice() != nil; there != tc.want {
				t.Errorf("there are endpoints: %t", there)
			}
			if said := strings.Join(w.said(), "; "); tc.said == "" && said != "" || !strings.Contains(said, tc.said) {
				t.Errorf("said %q", said)
			}
		})
	}
}

// A Service that is replaced by somebody else's takes the endpoints with it; with the consumer's they are there again.
func TestEndpointsGoWithTheirService(t *testing.T) {
	w := newWorld(t, shadow("10.10.0.1"), announcing("a", "rome", "10.10.0.0/16"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	there := func(want bool) {
		t.Helper()
		_, _ = w.pass()
		if got := w.slice() != nil; got != want {
			t.Errorf("there are endpoints: %t", got)
		}
	}
	there(true)
	must(w.Client.Delete(context.Background(), serviceOf("rome")))
	there(false)
	must(w.Client.Create(context.Background(), serviceOf("")))
	there(false)
	must(w.Client.Delete(context.Background(), serviceOf("")))
	must(w.Client.Create(context.Background(), serviceOf("rome")))
	there(true)
}

// All three conditions of an endpoint are told, and none of them says that it serves while the way to it is down.
func TestConditionsOfEndpoints(t *testing.T) {
	terminating := discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true)}
	for name, tc := range map[string]struct {
		down bool
		want discoveryv1.EndpointConditions
	}{
		"the way works":   {false, terminating},
		"the way is down": {true, discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(false), Terminating: ptr.To(true)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := shadow("10.10.0.1")
			got := build(s, &discoveryv1.Endpoint{Conditions: terminating}, []string{"10.10.0.1"}, tc.down).Conditions
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
