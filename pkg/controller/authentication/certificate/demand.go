package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

// Demand is a consumer's last sign of life: it sent a request for a certificate that it had not sent before. The times are by the clock of this
// cluster, which the consumer has no influence on. The zero value is that of a record which an earlier release wrote.
type Demand struct {
	// At is when its request was answered.
	At time.Time
	// Until is when that answer expires. From then on the consumer can do nothing here, unless somebody carries another one over.
	Until time.Time
}

// demandOf reads the demand of a record.
func demandOf(record *corev1.Secret) Demand {
	if record == nil {
		return Demand{}
	}
	at, atErr := time.Parse(time.RFC3339, string(record.Data[authv1beta1.RequestedAtKey]))
	until, untilErr := time.Parse(time.RFC3339, string(record.Data[authv1beta1.ExpiresAtKey]))
	if atErr != nil || untilErr != nil {
		return Demand{}
	}
	return Demand{At: at, Until: until}
}

// nextDemand is the one that belongs to a certificate which was just issued: that of the record, if it is for the request that is
// recorded already, because then nobody asked for it. Where an earlier release recorded none, it is taken for one: a consumer that lives
// asks again before the certificate expires.
func nextDemand(record *corev1.Secret, csr, issued []byte, now time.Time) (Demand, error) {
	if last := demandOf(record); !last.At.IsZero() && bytes.Equal(signedLast(record), csr) {
		return last, nil
	}
	leaf, err := parse(issued)
	if err != nil {
		return Demand{}, fmt.Errorf("reading an issued certificate: %w", err)
	}
	return Demand{At: now.UTC().Truncate(time.Second), Until: leaf.NotAfter.UTC()}, nil
}

// put writes the demand into the data of a record.
func (d Demand) put(data map[string][]byte) {
	data[authv1beta1.RequestedAtKey] = []byte(d.At.Format(time.RFC3339))
	data[authv1beta1.ExpiresAtKey] = []byte(d.Until.Format(time.RFC3339))
}

// parse reads a certificate that the cluster's signer issued.
func parse(issued []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(issued)
	if block == nil {
		return nil, errors.New("the certificate is not PEM")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errors.New("the certificate cannot be parsed")
	}
	return leaf, nil
}
