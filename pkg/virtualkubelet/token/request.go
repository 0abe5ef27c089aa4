package token

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// request asks this cluster for one token of a pod, and returns it with its end.
func (k *Keeper) request(ctx context.Context, pod *corev1.Pod, token reflection.PodToken) (value string, expires time.Time, err error) {
	lifetime, account := min(token.Lifetime, k.options.MaxLifetime), reflection.ServiceAccountOf(pod)
	wanted := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(lifetime / time.Second)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if token.Audience != "" {
		wanted.Spec.Audiences = []string{token.Audience}
	}
	asked := k.options.Clock.Now()
	got, err := k.options.Local.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, wanted, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		// NodeRestriction looks pods up in a cache, which may not show yet that this one was bound to the node: a pod must not wait for its
		// tokens as long as for rules to change.
		err = reconcile.Retry(err)
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("asking for a token of ServiceAccount %q for volume %q: %w", account, token.Volume, err)
	}
	k.metrics.requested.WithLabelValues(pod.Namespace).Inc()
	expires = got.Status.ExpirationTimestamp.Time
	lives := expires.Sub(asked)
	// An API server that lengthens tokens keeps silent about it in its answer; the token itself tells.
	if issued, end, ok := span(got.Status.Token); ok {
		lives = max(end.Sub(issued), min(lives, lifetime))
	}
	if lives > lifetime+tolerance {
		return "", time.Time{}, reconcile.Refuse(reasonFailed, fmt.Errorf(
			"the API server issued a token for volume %q that lives %s, not %s as it was asked to; it stays in this cluster",
			token.Volume, lives.Round(time.Second), lifetime))
	}
	return got.Status.Token, expires, nil
}

// span reads from a token when it was issued and when it ends. It is not verified: it comes from our own API server.
func span(token string) (issued, expires time.Time, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, time.Time{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, time.Time{}, false
	}
	var claims struct {
		IssuedAt int64 `json:"iat"`
		Expires  int64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.IssuedAt == 0 || claims.Expires == 0 {
		return time.Time{}, time.Time{}, false
	}
	return time.Unix(claims.IssuedAt, 0), time.Unix(claims.Expires, 0), true
}
