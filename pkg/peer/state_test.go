package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyAPeerThatWasAskedIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		want  bool
	}{
		"it answers":                          {State{Connected: true, Reason: ReasonConnected}, false},
		"it answers, new credentials are bad": {State{Connected: true, Reason: ReasonInvalidKubeconfig}, false},
		"there are no credentials yet":        {State{Reason: ReasonNoCredentials}, false},
		"the first answer is awaited":         {State{Reason: ReasonProbing}, false},
		"it asks for patience":                {State{Connected: true, Reason: ReasonThrottled}, false},
		"all it ever said is 429":             {State{Reason: ReasonThrottled}, false},
		"it does not answer":                  {State{Reason: ReasonUnreachable}, true},
		"it does not accept us":               {State{Reason: ReasonUnauthorized}, true},
		"the only credentials are not usable": {State{Reason: ReasonInvalidKubeconfig}, true},
	} {
		if got := tc.state.Lost(); got != tc.want {
			t.Errorf("%s: lost is %v", name, got)
		}
	}
}

func TestWhyAProbeFailedIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"it hangs":                  {fmt.Errorf("get: %w", context.DeadlineExceeded), "gives no answer in time"},
		"nothing listens":           {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), "nothing listens at its address"},
		"it has another identity":   {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "something with another identity"},
		"it says what nobody knows": {errors.New("teapot"), "does not answer: teapot"},
	} {
		if got := explain(tc.err); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
