package reflection

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const (
	// MaxTokenLifetime bounds the tokens that leave the cluster. It is shorter than the lifetime which makes an API server
	// hand out tokens for a year (--service-account-extend-token-expiration acts on 3607 seconds exactly).
	MaxTokenLifetime = time.Hour
	// MinTokenLifetime is the shortest that an API server issues.
	MinTokenLifetime = 10 * time.Minute
	// tokenSuffix ends the names of token Secrets. No other Secret of such a name is reflected.
	tokenSuffix = ".token.liqo.io"
	// formerTokenSuffix ended them in earlier versions, whose pods may still run. Secrets of users have such names, too.
	formerTokenSuffix = "-token"
	// namespaceKey holds the name of the pod's own namespace, for clients that take it from a file.
	namespaceKey = "namespace"
	// namespaceField is what the namespace's file is made of at home.
	namespaceField = "metadata.namespace"
	keyBytes       = 3
	maxName        = 253
	maxLabelValue  = 63
)

// HomeAPI is how pods at the provider reach this cluster's API server. The zero value lets none reach it.
type HomeAPI struct {
	// Enabled lets pods talk to this cluster's API server unless they say otherwise. Without it no token leaves.
	Enabled bool
	// Host by which pods at the provider reach it: an address or a name that its certificate is for. Empty if not known.
	Host string
	// Port of the Host or the Address; empty means 443.
	Port string
	// Address at which pods at the provider reach it under its names in every cluster, kubernetes.default and
	// kubernetes.default.svc. It is used without Host only; invalid if not known.
	Address netip.Addr
}

// Known tells whether there is a way to the API server.
func (a HomeAPI) Known() bool { return a.Host != "" || a.Address.IsValid() }

// At is the same with the address and the port that a function returns, if there is one and no Host was named.
func (a HomeAPI) At(address func() netip.AddrPort) HomeAPI {
	if a.Host == "" && address != nil {
		at := address()
		a.Address, a.Port = at.Addr(), strconv.Itoa(int(at.Port()))
	}
	return a
}

// PodToken is one token of this cluster that a pod asks for.
type PodToken struct {
	// Volume and Path say where the pod finds it.
	Volume, Path string
	// Audience of the token; empty means the API server.
	Audience string
	// Lifetime that the pod asks for, at most MaxTokenLifetime.
	Lifetime time.Duration
	// Key of the token in the pod's token Secret.
	Key string
}

// PodTokens lists the tokens that an offloaded pod is given: those that it asks for, in the order in which it does. The one
// that the API server adds to every pod is not asked for by the pod: without a way to the API server it is left out.
func PodTokens(local *corev1.Pod, api HomeAPI) []PodToken {
	if mode, refusal := accessOf(local, api); refusal != nil || mode != accessHome {
		return nil
	}
	var tokens []PodToken
	taken := map[string]bool{}
	for i := range local.Spec.Volumes {
		volume := &local.Spec.Volumes[i]
		if volume.Projected == nil || injected(volume) && !api.Known() {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken == nil {
				continue
			}
			token := podToken(volume.Name, source.ServiceAccountToken, taken)
			taken[token.Key] = true
			tokens = append(tokens, token)
		}
	}
	return tokens
}

func podToken(volume string, asked *corev1.ServiceAccountTokenProjection, taken map[string]bool) PodToken {
	lifetime := MaxTokenLifetime
	if asked.ExpirationSeconds != nil {
		// Compared as seconds: any number of them may stand in a pod.
		seconds := min(max(*asked.ExpirationSeconds, int64(MinTokenLifetime/time.Second)), int64(MaxTokenLifetime/time.Second))
		lifetime = time.Duration(seconds) * time.Second
	}
	sum := sha256.Sum256([]byte(asked.Path))
	key := volume + "-" + hex.EncodeToString(sum[:keyBytes])
	if taken[key] {
		// Two paths whose short sums are the same must not share a token: their audiences may differ.
		key = volume + "-" + hex.EncodeToString(sum[:])
	}
	return PodToken{Volume: volume, Path: asked.Path, Audience: asked.Audience, Lifetime: lifetime, Key: key}
}

// injected tells whether a volume is the one with the ServiceAccount's token that the API server adds to pods.
func injected(v *corev1.Volume) bool {
	if !strings.HasPrefix(v.Name, injectedTokenVolume) || v.Projected == nil {
		return false
	}
	return slices.ContainsFunc(v.Projected.Sources, holdsToken)
}

// TokenSecretName is the name of the Secret with the tokens of a pod that is to be made, in the twin namespace.
func TokenSecretName(pod string) string { return withSuffix(pod, tokenSuffix) }

// TokenSecretNames are the names that the Secret with a pod's tokens may have.
func TokenSecretNames(pod string) []string {
	return []string{withSuffix(pod, tokenSuffix), withSuffix(pod, formerTokenSuffix)}
}

func withSuffix(pod, suffix string) string { return shortened(pod, maxName-len(suffix)) + suffix }

// shortened shortens a name to at most limit characters; names that it shortens stay apart by a hash.
func shortened(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:limit-len(suffix)], "-.") + suffix
}

// TokenSecret is the Secret with a pod's tokens, which goes with its ShadowPod. The values are those of the tokens by key;
// expires is when the first of them ends.
func TokenSecret(local *corev1.Pod, in PodInput, shadow types.UID, values map[string]string, expires time.Time) *corev1.Secret {
	data := map[string][]byte{namespaceKey: []byte(local.Namespace)}
	for key, value := range values {
		data[key] = []byte(value)
	}
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: TokenSecretName(local.Name), Namespace: in.Namespace,
			Labels: map[string]string{
				offloadingv1beta1.OriginLabel: in.Home, offloadingv1beta1.DestinationLabel: in.Remote,
				offloadingv1beta1.NodeNameLabel:           in.Node,
				offloadingv1beta1.ServiceAccountNameLabel: shortened(ServiceAccountOf(local), maxLabelValue),
			},
			Annotations: map[string]string{
				offloadingv1beta1.TokenPodNameAnnotation:    local.Name,
				offloadingv1beta1.TokenPodUIDAnnotation:     string(local.UID),
				offloadingv1beta1.TokenExpirationAnnotation: expires.UTC().Format(time.RFC3339),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: offloadingv1beta1.GroupVersion.String(), Kind: "ShadowPod", Name: local.Name, UID: shadow,
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
}

// ServiceAccountOf is the name of the ServiceAccount that a local pod runs as.
func ServiceAccountOf(local *corev1.Pod) string {
	if local.Spec.ServiceAccountName == "" {
		return "default"
	}
	return local.Spec.ServiceAccountName
}

// TokenSecretOf is the name of the Secret in which a ShadowPod was made to find its tokens; empty if there is none. One that was made in
// another mode keeps what it has.
func TokenSecretOf(shadow *offloadingv1beta1.ShadowPod) string {
	names := TokenSecretNames(shadow.Name)
	for i := range shadow.Spec.Pod.Volumes {
		projected := shadow.Spec.Pod.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for j := range projected.Sources {
			if secret := projected.Sources[j].Secret; secret != nil && slices.Contains(names, secret.Name) {
				return secret.Name
			}
		}
	}
	return ""
}
