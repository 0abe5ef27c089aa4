package reflection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// WhyNotReflected tells why the user's policy keeps an object at home; nil lets it cross.
func WhyNotReflected(in Input, fallback offloadingv1beta1.ReflectionType) *Skip {
	policy := in.Policy
	if policy == "" {
		policy = fallback
	}
	annotations := in.Local.GetAnnotations()
	_, skipped := annotations[offloadingv1beta1.SkipReflectionAnnotation]
	_, skippedNamespace := in.NamespaceAnnotations[offloadingv1beta1.SkipReflectionAnnotation]
	_, allowed := annotations[offloadingv1beta1.AllowReflectionAnnotation]
	disabled := func(format string, args ...any) *Skip {
		return &Skip{Reason: offloadingv1beta1.ReasonReflectionDisabled, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case policy == offloadingv1beta1.AllowList && !allowed:
		return disabled("stays at home: the policy is AllowList and the object is not annotated %s", offloadingv1beta1.AllowReflectionAnnotation)
	case policy == offloadingv1beta1.AllowList:
		return nil
	case policy == offloadingv1beta1.Referenced && allowed:
		return nil
	case skipped:
		return disabled("stays at home: it is annotated %s", offloadingv1beta1.SkipReflectionAnnotation)
	case skippedNamespace:
		return disabled("stays at home: its namespace is annotated %s", offloadingv1beta1.SkipReflectionAnnotation)
	case policy == offloadingv1beta1.Referenced && !in.Referenced:
		skip := disabled("stays at home: the policy is Referenced, and neither a pod on a virtual node of the provider "+
			"nor an Ingress that crosses uses it; annotate it %s to have it reflected anyway", offloadingv1beta1.AllowReflectionAnnotation)
		skip.Routine = true // Pods come and go.
		return skip
	default:
		return nil
	}
}

// whyNeverReflected tells why an object stays at home whatever the user's policy is; nil lets the policy decide.
func whyNeverReflected(in Input) *Skip {
	labels := in.Local.GetLabels()
	if origin := labels[offloadingv1beta1.OriginLabel]; origin != "" && origin == in.Remote {
		return &Skip{
			Reason:  offloadingv1beta1.ReasonNotReflectable,
			Message: fmt.Sprintf("stays at home: it was itself reflected from cluster %q", origin),
		}
	}
	return nil
}

// The sizes that an API server accepts, in bytes.
const (
	maxAnnotations = 256 << 10
	maxData        = corev1.MaxSecretSize
)

// tooLarge tells why a remote object would exceed what API servers accept; nil if it fits.
func tooLarge(wanted Object, data int) *Skip {
	size := 0
	for key, value := range wanted.GetAnnotations() {
		size += len(key) + len(value)
	}
	refuse := func(what string, size, limit int) *Skip {
		return &Skip{
			Reason: offloadingv1beta1.ReasonTooLarge,
			Message: fmt.Sprintf("cannot be reflected: its %s are %d bytes, the remote API server takes %d; the remote copy, if any, stays as it was",
				what, size, limit),
			Keep: true,
		}
	}
	switch {
	case size > maxAnnotations:
		return refuse("annotations", size, maxAnnotations)
	case data > maxData:
		return refuse("data", data, maxData)
	default:
		return nil
	}
}
