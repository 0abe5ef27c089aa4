package reflection

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const (
	// tokenMark begins the entries of token Secrets in a ledger; no UID is that word.
	tokenMark = "token"
	// shapeSize is how many bytes of a sum tell one shape from another.
	shapeSize = 8
	// maxUID bounds what somebody may have written as a UID.
	maxUID = 64
)

// TokenEntry is what a ledger says of a Secret with a pod's tokens: enough for the consumer to know, without reading the
// Secret, whether the pod has its tokens and until when.
type TokenEntry struct {
	// PodUID is that of the consumer's pod.
	PodUID string
	// Shape is the TokenShape of the Secret.
	Shape string
	// Expiration of the first token that ends.
	Expiration time.Time
}

// TokenEntryOf returns the entry of a Secret; false if it is no Secret with a pod's tokens.
func TokenEntryOf(s *corev1.Secret) (TokenEntry, bool) {
	uid := s.Annotations[offloadingv1beta1.TokenPodUIDAnnotation]
	if s.Labels[offloadingv1beta1.ServiceAccountNameLabel] == "" || OriginUID(s) != "" ||
		uid == "" || len(uid) > maxUID || strings.ContainsAny(uid, " \t\r\n") {
		return TokenEntry{}, false
	}
	expiration, err := time.Parse(time.RFC3339, s.Annotations[offloadingv1beta1.TokenExpirationAnnotation])
	if err != nil {
		return TokenEntry{}, false
	}
	return TokenEntry{PodUID: uid, Shape: TokenShape(s), Expiration: expiration.UTC()}, true
}

// String is the entry as it stands in the ledger.
func (e TokenEntry) String() string {
	return strings.Join([]string{tokenMark, e.PodUID, e.Shape, e.Expiration.UTC().Format(time.RFC3339)}, " ")
}

// IsTokenEntry tells whether an entry of a ledger is about a Secret with a pod's tokens, in step or not.
func IsTokenEntry(value string) bool {
	return strings.HasPrefix(strings.TrimSpace(value), tokenMark+" ")
}

// ParseTokenEntry reads an entry of a ledger; false if it is none of a token Secret, or broken.
func ParseTokenEntry(value string) (TokenEntry, bool) {
	fields := strings.Fields(value)
	if len(fields) != 4 || fields[0] != tokenMark || len(fields[1]) > maxUID || len(fields[2]) > 2*shapeSize {
		return TokenEntry{}, false
	}
	expiration, err := time.Parse(time.RFC3339, fields[3])
	if err != nil {
		return TokenEntry{}, false
	}
	return TokenEntry{PodUID: fields[1], Shape: fields[2], Expiration: expiration.UTC()}, true
}

// TokenShape identifies what of a token Secret does not change when its tokens are renewed: account, owners and keys. The
// consumer knows it without the tokens, so it can tell after a restart that nothing has to be written.
func TokenShape(s *corev1.Secret) string {
	sum := sha256.New()
	write(sum, "type", string(secretType(s)), "account", s.Labels[offloadingv1beta1.ServiceAccountNameLabel])
	for i := range s.OwnerReferences {
		write(sum, "owner", s.OwnerReferences[i].Kind, string(s.OwnerReferences[i].UID))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		write(sum, "key", key)
	}
	return hex.EncodeToString(sum.Sum(nil)[:shapeSize])
}
