package renewal

import (
	"bytes"
	"testing"
	"time"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
)

func TestDecide(t *testing.T) {
	ca := testca.New(t)
	subject, start, day := identity.TenantSubject("rome"), time.Unix(1_000_000, 0), 24*time.Hour
	old, next := ca.Key(), ca.Key()
	oldCert := ca.Issue(old, subject, start, day)
	nextPEM, _ := next.PublicPEM()
	nextCert := ca.Issue(next, subject, start.Add(17*time.Hour), day)
	for name, tc := range map[string]struct {
		facts Facts
		want  Step
	}{
		"a young certificate is left alone":                  {Facts{Certificate: oldCert, Current: old, Now: start.Add(time.Hour)}, Idle},
		"one minute before two thirds too":                   {Facts{Certificate: oldCert, Current: old, Now: start.Add(16*time.Hour - time.Minute)}, Idle},
		"at two thirds a new key is due":                     {Facts{Certificate: oldCert, Current: old, Now: start.Add(16 * time.Hour)}, MakeKey},
		"an expired certificate as well":                     {Facts{Certificate: oldCert, Current: old, Now: start.Add(3 * day)}, MakeKey},
		"a certificate for another key as well":              {Facts{Certificate: oldCert, Current: next, Now: start.Add(time.Hour)}, MakeKey},
		"garbage as well":                                    {Facts{Certificate: []byte("x"), Current: old, Now: start}, MakeKey},
		"a key without a Renew is asked for":                 {Facts{Certificate: oldCert, Current: old, Next: next, Now: start.Add(17 * time.Hour)}, Ask},
		"a Renew for an earlier key is replaced":             {Facts{Certificate: oldCert, Current: old, Next: next, Asked: []byte("x"), Now: start.Add(17 * time.Hour)}, Ask},
		"the answer is awaited":                              {Facts{Certificate: oldCert, Current: old, Next: next, Asked: nextPEM, Now: start.Add(17 * time.Hour)}, Await},
		"an answer for the old key is no answer":             {Facts{Certificate: oldCert, Current: old, Next: next, Asked: nextPEM, Answer: oldCert, Now: start.Add(17 * time.Hour)}, Await},
		"an answer for another name is no answer":            {Facts{Certificate: oldCert, Current: old, Next: next, Asked: nextPEM, Answer: ca.Issue(next, identity.TenantSubject("turin"), start, day), Now: start.Add(17 * time.Hour)}, Await},
		"the right answer swaps the keys":                    {Facts{Certificate: oldCert, Current: old, Next: next, Asked: nextPEM, Answer: nextCert, Now: start.Add(17 * time.Hour)}, Swap},
		"after a crash the Identity follows the swapped key": {Facts{Certificate: oldCert, Current: next, Asked: nextPEM, Answer: nextCert, Now: start.Add(17 * time.Hour)}, Adopt},
		"then all is quiet":                                  {Facts{Certificate: nextCert, Current: next, Asked: nextPEM, Answer: nextCert, Now: start.Add(17 * time.Hour)}, Idle},
		"a due one is not replaced by one for the old key":   {Facts{Certificate: oldCert, Current: old, Answer: ca.Issue(old, subject, start.Add(22*time.Hour), day), Now: start.Add(23 * time.Hour)}, MakeKey},
		"one that has expired is":                            {Facts{Certificate: oldCert, Current: old, Answer: ca.Issue(old, subject, start.Add(22*time.Hour), day), Now: start.Add(25 * time.Hour)}, Adopt},
		"an older answer never replaces a newer certificate": {Facts{Certificate: nextCert, Current: next, Answer: ca.Issue(next, subject, start, day), Now: start.Add(17 * time.Hour)}, Idle},
	} {
		t.Run(name, func(t *testing.T) {
			tc.facts.Subject = subject
			if got, _ := Decide(tc.facts); got != tc.want {
				t.Errorf("got step %d, want %d", got, tc.want)
			}
		})
	}
	if _, at := Decide(Facts{Certificate: oldCert, Current: old, Subject: subject, Now: start}); !at.Equal(start.Add(16 * time.Hour)) {
		t.Errorf("looked at again at %s", at)
	}
}

// G3, W6: with its certificate an Identity takes over a CA bundle that has a CA in common with the pinned one, at the same endpoint.
func TestTheCAFollowsWithARenewal(t *testing.T) {
	one, other := testca.New(t), testca.New(t)
	certificate := func(ca *testca.CA) []byte {
		key := ca.Key()
		return ca.Issue(key, identity.TenantSubject("ca"), time.Unix(1_000_000, 0), time.Hour)
	}
	first, second := certificate(one), certificate(other)
	both := append(bytes.Clone(first), second...)
	control, slice := authv1beta1.ControlPlaneIdentityType, authv1beta1.ResourceSliceIdentityType
	for name, tc := range map[string]struct {
		kind           authv1beta1.IdentityType
		pinned, answer []byte
		server         string
		want           []byte
	}{
		"the same":                           {control, first, first, "https://milan:6443", first},
		"the next CA beside the present one": {control, first, both, "https://milan:6443", both},
		"the present one is gone at last":    {control, both, second, "https://milan:6443", second},
		"another CA":                         {control, first, second, "https://milan:6443", first},
		"no CA":                              {control, first, nil, "https://milan:6443", first},
		"a CA where there was none":          {control, nil, first, "https://milan:6443", nil},
		"both CAs of another endpoint":       {control, first, both, "https://turin:6443", first},
		"a slice's follows another way":      {slice, first, both, "https://milan:6443", first},
	} {
		t.Run(name, func(t *testing.T) {
			object := &authv1beta1.Identity{Spec: authv1beta1.IdentitySpec{Type: tc.kind, AuthParams: authv1beta1.AuthParams{APIServer: "https://milan:6443", CA: tc.pinned}}}
			if got := nextCA(object, &authv1beta1.AuthParams{APIServer: tc.server, CA: tc.answer}); !bytes.Equal(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
