package secretledger

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/reflection"
)

const (
	// maxLedger bounds a ledger, in bytes; API servers take 1 MiB.
	maxLedger = 900 << 10
	// maxOriginUID bounds what a consumer may have written as its UID.
	maxOriginUID = 64
)

// entryOf is what the ledger says of a Secret; empty if the Secret does not say which object it stands for.
func entryOf(secret *corev1.Secret) string {
	if tokens, ok := reflection.TokenEntryOf(secret); ok {
		return tokens.String()
	}
	uid := reflection.OriginUID(secret)
	if uid == "" || len(uid) > maxOriginUID || strings.ContainsAny(uid, " \t\r\n") {
		return ""
	}
	return uid + " " + reflection.SecretHash(secret)
}

// fit returns as many entries as fit into limit bytes, in the order of their names, and how many do not.
func fit(entries map[string]string, limit int) (data map[string]string, omitted int) {
	data = make(map[string]string, len(entries))
	size := 0
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if size += len(name) + len(entries[name]); size > limit {
			omitted = len(entries) - len(data)
			return data, omitted
		}
		data[name] = entries[name]
	}
	return data, 0
}
