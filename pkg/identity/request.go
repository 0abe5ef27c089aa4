package identity

import (
	"crypto/rsa"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// CheckUsages returns nil if got holds exactly the usages of want, none of them twice; else a *Refusal with ReasonUsages.
func CheckUsages(got, want []certificatesv1.KeyUsage) error {
	if sameSet(got, want) {
		return nil
	}
	return refuse(ReasonUsages, "the usages are %s instead of %s", quoteAll(usageNames(got)), quoteAll(usageNames(want)))
}

// CheckRequest returns nil if a CertificateSigningRequest asks for exactly what is wanted: signer, user who made it, lifetime,
// usages and the request inside. Every other error is a *Refusal. It looks at the spec only: whether the request was already
// approved or denied is the caller's to see.
func CheckRequest(csr *certificatesv1.CertificateSigningRequest, want RequestExpectation) error {
	spec := &csr.Spec
	if want.SignerName == "" || spec.SignerName != want.SignerName {
		return refuse(ReasonSigner, "the signer is %s instead of %s", quote(spec.SignerName), quote(want.SignerName))
	}
	if want.Username == "" || spec.Username != want.Username {
		return refuse(ReasonRequester, "the request was made by %s instead of %s", quote(spec.Username), quote(want.Username))
	}
	if limit := want.MaxExpirationSeconds; limit > 0 {
		if spec.ExpirationSeconds == nil {
			return refuse(ReasonLifetime, "the request does not say how long its certificate lives: ask for at most %d s", limit)
		}
		if *spec.ExpirationSeconds > limit {
			return refuse(ReasonLifetime, "the request asks for a lifetime of %d s: at most %d s are accepted", *spec.ExpirationSeconds, limit)
		}
	}
	request, err := checkCSR(spec.Request, want.Expectation)
	if err != nil {
		return err
	}
	if _, isRSA := request.PublicKey.(*rsa.PublicKey); isRSA && want.KeyEncipherment {
		withRSA := append([]certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment}, want.Usages...)
		if CheckUsages(spec.Usages, withRSA) == nil {
			return nil
		}
	}
	return CheckUsages(spec.Usages, want.Usages)
}

func usageNames(usages []certificatesv1.KeyUsage) []string {
	names := make([]string, len(usages))
	for i, usage := range usages {
		names[i] = string(usage)
	}
	return names
}
