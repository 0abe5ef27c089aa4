package certificate

import (
	"crypto/sha256"
	"encoding/hex"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

const maxName = 253

// TenantRecord is the name of the record of a tenant's certificate.
func TenantRecord() string { return record("tenant") }

// SliceRecord is the name of the record of a ResourceSlice's certificate.
func SliceRecord(slice string) string { return record("slice-" + slice) }

// RenewRecord is the name of the record of a Renew's certificate.
func RenewRecord(renew string) string { return record("renew-" + renew) }

// record makes the name of a record. Consumers choose the names of slices and Renews, so each kind has a prefix that no other record's
// name begins with, and a digest, which replaces a long name, begins with none of them.
func record(name string) string {
	full := authv1beta1.CertificateSecretPrefix + name
	if len(full) <= maxName {
		return full
	}
	sum := sha256.Sum256([]byte(name))
	return authv1beta1.CertificateSecretPrefix + hex.EncodeToString(sum[:16])
}
