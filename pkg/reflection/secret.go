package reflection

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// secretTypeBootstrapToken lets whoever holds it join a node; such Secrets never leave the cluster.
const secretTypeBootstrapToken corev1.SecretType = "bootstrap.kubernetes.io/token"

// secretTypeHelmRelease is the record of one revision of a Helm release: the whole chart with all values, those that are secret among
// them. No pod uses it, and there are ten for each release.
const secretTypeHelmRelease corev1.SecretType = "helm.sh/release.v1"

func secretKind() Kind {
	return Kind{
		Name:           "secret",
		GVR:            corev1.SchemeGroupVersion.WithResource("secrets"),
		GVK:            corev1.SchemeGroupVersion.WithKind("Secret"),
		Ledger:         offloadingv1beta1.SecretLedger,
		DefaultPolicy:  offloadingv1beta1.DenyList,
		ByReference:    true,
		DefaultWorkers: 10,
		NewObject:      func() Object { return &corev1.Secret{} },
		NewList:        func() ObjectList { return &corev1.SecretList{} },
		Translate:      translateSecret,
		Changes:        secretChanges,
		MustRecreate:   secretMustRecreate,
		Relax:          relaxKeys,
		Hash:           func(o Object) string { return SecretHash(o.(*corev1.Secret)) },
	}
}

func translateSecret(in Input) Result {
	local := in.Local.(*corev1.Secret)
	if skip := whySecretStays(in, local); skip != nil {
		return Result{Skip: skip}
	}
	wanted := &corev1.Secret{
		ObjectMeta: remoteMeta(in, local.Name),
		Type:       secretType(local),
		Data:       local.Data,
		Immutable:  local.Immutable,
	}
	if local.Type == corev1.SecretTypeServiceAccountToken {
		asOpaque(wanted, local.Annotations[corev1.ServiceAccountNameKey])
	}
	size := 0
	for _, value := range local.Data {
		size += len(value)
	}
	if skip := tooLarge(wanted, size); skip != nil {
		return Result{Skip: skip}
	}
	return Result{Apply: wanted}
}

// asOpaque makes of the token of a ServiceAccount a Secret with nothing but data, as an API server fills one with a token of its own, and
// deletes it if there is no such account. As in Liqo v1, a label tells whose token it is.
func asOpaque(wanted *corev1.Secret, account string) {
	wanted.Type = corev1.SecretTypeOpaque
	if account == "" || len(validation.IsValidLabelValue(account)) > 0 {
		return
	}
	wanted.Labels[corev1.ServiceAccountNameKey] = account
	delete(wanted.Annotations, offloadingv1beta1.ReflectedKeysAnnotation)
	recordKeys(&wanted.ObjectMeta)
}

func whySecretStays(in Input, local *corev1.Secret) *Skip {
	never := func(format string, args ...any) *Skip {
		return &Skip{Reason: offloadingv1beta1.ReasonNotReflectable, Message: fmt.Sprintf(format, args...)}
	}
	_, allowed := local.Annotations[offloadingv1beta1.AllowReflectionAnnotation]
	switch {
	case local.Type == secretTypeBootstrapToken:
		return never("stays at home: Secrets of type %s let a machine join this cluster", local.Type)
	case local.Type == corev1.SecretTypeServiceAccountToken && !allowed:
		return never("stays at home: whoever has this token of a ServiceAccount is that one in this cluster; "+
			"annotate the Secret %s to have it reflected anyway, as type %s", offloadingv1beta1.AllowReflectionAnnotation, corev1.SecretTypeOpaque)
	}
	if strings.HasSuffix(local.Name, tokenSuffix) {
		return never("stays at home: names that end in %s are those of Secrets with pods' tokens; choose another name", tokenSuffix)
	}
	if skip := whyNeverReflected(in); skip != nil {
		return skip
	}
	if local.Type == secretTypeHelmRelease && !allowed {
		return &Skip{Reason: offloadingv1beta1.ReasonReflectionDisabled, Routine: true, Message: fmt.Sprintf(
			"stays at home: it is a record of Helm with all values of a release, which no pod uses; annotate it %s to have it reflected anyway",
			offloadingv1beta1.AllowReflectionAnnotation)}
	}
	return WhyNotReflected(in, offloadingv1beta1.DenyList)
}

// secretType is the type of a Secret, as an API server defaults it.
func secretType(s *corev1.Secret) corev1.SecretType {
	if s.Type == "" {
		return corev1.SecretTypeOpaque
	}
	return s.Type
}

// secretChanges lists the type, which is immutable, only for Secrets that cannot be read: the API server refuses the change
// if the type is another, and says nothing if it is the same.
func secretChanges(liveObject, wantedObject Object) []Change {
	wanted := wantedObject.(*corev1.Secret)
	live, readable := liveObject.(*corev1.Secret)
	var changes []Change
	if !readable || !maps.EqualFunc(live.Data, wanted.Data, slices.Equal) {
		changes = append(changes, Change{Path: []string{"data"}, Value: orRemoved(wanted.Data)})
	}
	if !readable || isTrue(live.Immutable) != isTrue(wanted.Immutable) {
		changes = append(changes, Change{Path: []string{"immutable"}, Value: isTrue(wanted.Immutable)})
	}
	if !readable {
		changes = append(changes, Change{Path: []string{"type"}, Value: string(secretType(wanted))})
	}
	return changes
}

func secretMustRecreate(liveObject, wantedObject Object) string {
	live, wanted := liveObject.(*corev1.Secret), wantedObject.(*corev1.Secret)
	switch {
	case secretType(live) != secretType(wanted):
		return "type"
	case isTrue(live.Immutable) && len(secretChanges(live, wanted)) > 0:
		return "immutable"
	default:
		return ""
	}
}

// SecretHash identifies what reflection put into a Secret: type, data, immutability, and those labels and annotations that
// the Secret itself records as reflected. Two Secrets have the same hash exactly if nothing has to be written to make one
// into the other. Both clusters compute it, so it does not depend on order, defaults or what others added to the metadata.
func SecretHash(s *corev1.Secret) string {
	sum := sha256.New()
	write(sum, "type", string(secretType(s)))
	if isTrue(s.Immutable) {
		write(sum, "immutable", "true")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		write(sum, "data", key, string(s.Data[key]))
	}
	ours := recorded(s)
	writeOurs(sum, "labels", s.Labels, ours)
	writeOurs(sum, "annotations", s.Annotations, ours)
	return hex.EncodeToString(sum.Sum(nil))
}

func writeOurs(sum hash.Hash, field string, values map[string]string, ours map[string]bool) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if ours[mark(field, key)] {
			write(sum, field, key, values[key])
		}
	}
}

// write adds fields with their lengths, so that no two lists of fields look the same.
func write(sum hash.Hash, fields ...string) {
	for _, field := range fields {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		sum.Write([]byte(field))
	}
}
