package reflection

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

var reachableHome = HomeAPI{Enabled: true, Host: "api"}

func TestPodTokens(t *testing.T) {
	vault := PodToken{Volume: "mixed", Path: "vault/token", Audience: "vault", Lifetime: 10 * time.Minute, Key: "mixed-927385"}
	plain := PodToken{Volume: "mixed", Path: "api", Lifetime: time.Hour, Key: "mixed-14c252"}
	// The API server makes a token live for a year that is asked to live 3607 seconds.
	added := PodToken{Volume: "kube-api-access-abcde", Path: "token", Lifetime: time.Hour, Key: "kube-api-access-abcde-3c469e"}
	for name, tc := range map[string]struct {
		api        HomeAPI
		annotation string
		want       []PodToken
	}{
		"all that the pod asks for":                                 {reachableHome, "", []PodToken{vault, plain, added}},
		"without an address, what the pod asks for by itself":       {HomeAPI{Enabled: true}, "", []PodToken{vault, plain}},
		"none if support is off":                                    {HomeAPI{Host: "api"}, "", nil},
		"none for a pod that does not want any":                     {reachableHome, "disabled", nil},
		"none for a pod that uses the provider's API server":        {reachableHome, "remote", nil},
		"none for a pod with an annotation that nobody understands": {reachableHome, "maybe", nil},
	} {
		t.Run(name, func(t *testing.T) {
			local := readPod(t, "testdata/pod/home.yaml")
			if tc.annotation != "" {
				local.Annotations = map[string]string{offloadingv1beta1.APIServerSupportAnnotation: tc.annotation}
			}
			if diff := cmp.Diff(tc.want, PodTokens(local, tc.api)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func tokenVolume(name string, asked ...corev1.ServiceAccountTokenProjection) corev1.Volume {
	volume := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}
	for i := range asked {
		volume.Projected.Sources = append(volume.Projected.Sources, corev1.VolumeProjection{ServiceAccountToken: &asked[i]})
	}
	return volume
}

// TestTokensProperties: whatever a pod asks for, no token lives too long, no two share a key, keys are keys of Secrets, every
// token's file is filled from the Secret, and no request for a token is left for the provider.
func TestTokensProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}
		for i := range random.IntN(4) {
			var asked []corev1.ServiceAccountTokenProjection
			for j := range random.IntN(4) {
				asked = append(asked, corev1.ServiceAccountTokenProjection{
					Path: fmt.Sprintf("%d/%d", j, random.IntN(1000)), Audience: strings.Repeat("v", random.IntN(2)), ExpirationSeconds: ptr.To(random.Int64N(1 << 32))})
			}
			prefix := []string{"v", injectedTokenVolume}[random.IntN(2)]
			local.Spec.Volumes = append(local.Spec.Volumes, tokenVolume(fmt.Sprintf("%s%d", prefix, i), asked...))
		}
		api := HomeAPI{Enabled: true}
		if random.IntN(2) == 0 {
			api.Host = "api"
		}
		checkTokens(t, local, api)
	}
}

func checkTokens(t *testing.T, local *corev1.Pod, api HomeAPI) {
	t.Helper()
	keys := map[string]bool{}
	for _, token := range PodTokens(local, api) {
		if token.Lifetime > MaxTokenLifetime || token.Lifetime < MinTokenLifetime {
			t.Errorf("a token lives %s", token.Lifetime)
		}
		if problems := validation.IsConfigMapKey(token.Key); len(problems) > 0 || keys[token.Key] {
			t.Errorf("key %q: taken %v, %v", token.Key, keys[token.Key], problems)
		}
		keys[token.Key] = true
	}
	shadow, refusal := ShadowPod(local, PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome", API: api})
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	used := map[string]bool{}
	for _, volume := range shadow.Spec.Pod.Volumes {
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken != nil {
				t.Errorf("volume %s asks the provider for a token", volume.Name)
			}
			if source.Secret != nil && source.Secret.Name == TokenSecretName(local.Name) {
				used[source.Secret.Items[0].Key] = true
			}
		}
	}
	if diff := cmp.Diff(keys, used); diff != "" {
		t.Errorf("keys (-asked for +used):\n%s", diff)
	}
	if (TokenSecretOf(shadow) != "") != (len(keys) > 0) {
		t.Errorf("TokenSecretOf is %q with %d tokens", TokenSecretOf(shadow), len(keys))
	}
}

func TestPathsWithTheSameShortSumDoNotShareAToken(t *testing.T) {
	taken := map[string]bool{}
	first := podToken("v", &corev1.ServiceAccountTokenProjection{Path: "a"}, taken)
	taken[first.Key] = true
	if second := podToken("v", &corev1.ServiceAccountTokenProjection{Path: "a"}, taken); second.Key == first.Key {
		t.Errorf("both have the key %s", first.Key)
	}
}

func TestNamesAreBounded(t *testing.T) {
	long := strings.Repeat("a", 245) + ".b.c.d.e"
	for name, pod := range map[string]string{"short": "p", "at the bound": long[:247], "long": long, "longest": strings.Repeat("x", 253)} {
		if problems := validation.IsDNS1123Subdomain(TokenSecretName(pod)); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	if TokenSecretName("p") != "p.token.liqo.io" {
		t.Errorf("the Secret of pod p is %s", TokenSecretName("p"))
	}
	if TokenSecretName(long+"a") == TokenSecretName(long+"b") {
		t.Error("two long names share a Secret")
	}
	local := &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: long}}
	secret := TokenSecret(local, PodInput{}, "s", nil, time.Time{})
	if problems := validation.IsValidLabelValue(secret.Labels[offloadingv1beta1.ServiceAccountNameLabel]); len(problems) > 0 {
		t.Error(problems)
	}
}

func tokenSecret(shadow types.UID, value string, expires time.Time) *corev1.Secret {
	local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", UID: "pod-uid"}}
	return TokenSecret(local, PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome"}, shadow, map[string]string{"v-3c469e": value}, expires)
}

func TestTokenSecretGolden(t *testing.T) {
	goldenPod(t, "testdata/tokensecret.yaml", tokenSecret("shadow-uid", "the token", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

// TestLedgerOfTokens: the ledger shows all that the consumer has to know of a token Secret, and nothing of the tokens.
func TestLedgerOfTokens(t *testing.T) {
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entry, ok := TokenEntryOf(tokenSecret("shadow-uid", "secret words", end))
	if !ok || entry.PodUID != "pod-uid" || !entry.Expiration.Equal(end) {
		t.Fatalf("entry %+v, %v", entry, ok)
	}
	if again, ok := ParseTokenEntry(entry.String()); !ok || again != entry || !IsTokenEntry(entry.String()) {
		t.Errorf("%q was read as %+v", entry, again)
	}
	renewed, _ := TokenEntryOf(tokenSecret("shadow-uid", "other words", end.Add(time.Hour)))
	if renewed.Shape != entry.Shape {
		t.Error("renewed tokens have another shape")
	}
	if other, _ := TokenEntryOf(tokenSecret("another", "secret words", end)); other.Shape == entry.Shape {
		t.Error("the tokens of another ShadowPod have the same shape")
	}
	for name, change := range map[string]func(*corev1.Secret){
		"a reflected Secret": func(s *corev1.Secret) { s.Annotations[corev1beta1.OriginUIDAnnotation] = "x" },
		"no account":         func(s *corev1.Secret) { s.Labels[offloadingv1beta1.ServiceAccountNameLabel] = "" },
		"no pod":             func(s *corev1.Secret) { s.Annotations[offloadingv1beta1.TokenPodUIDAnnotation] = "" },
		"a UID of two words": func(s *corev1.Secret) { s.Annotations[offloadingv1beta1.TokenPodUIDAnnotation] = "a b" },
		"a UID without end": func(s *corev1.Secret) {
			s.Annotations[offloadingv1beta1.TokenPodUIDAnnotation] = strings.Repeat("a", 65)
		},
		"an expiration that is no moment": func(s *corev1.Secret) { s.Annotations[offloadingv1beta1.TokenExpirationAnnotation] = "never" },
	} {
		secret := tokenSecret("shadow-uid", "x", end)
		change(secret)
		if got, ok := TokenEntryOf(secret); ok {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func FuzzParseTokenEntry(f *testing.F) {
	for _, seed := range []string{"", "token", "token a b 2026-01-02T03:04:05Z", "uid hash", "token a b c d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		entry, ok := ParseTokenEntry(value)
		if !ok {
			return
		}
		if again, ok := ParseTokenEntry(entry.String()); !ok || again != entry {
			t.Errorf("%q was read as %+v, and its text as %+v", value, entry, again)
		}
	})
}

func TestWhyNoAPIServer(t *testing.T) {
	pod := readPod(t, "testdata/pod/home.yaml")
	vaultOnly := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "x"}, tokenVolume("v", corev1.ServiceAccountTokenProjection{Audience: "vault"})}}}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		api  HomeAPI
		says bool
	}{
		"no address":                            {pod, HomeAPI{Enabled: true}, true},
		"an address":                            {pod, reachableHome, false},
		"support is off":                        {pod, HomeAPI{}, false},
		"a pod without tokens":                  {&corev1.Pod{}, HomeAPI{Enabled: true}, false},
		"a pod whose token is for others":       {vaultOnly, HomeAPI{Enabled: true}, false},
		"a pod that turned it off":              {readPod(t, "testdata/pod/homedisabled.yaml"), HomeAPI{Enabled: true}, false},
		"a pod that uses the provider's server": {readPod(t, "testdata/pod/remote.yaml"), HomeAPI{Enabled: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WhyNoAPIServer(tc.pod, tc.api, "milan"); (got != "") != tc.says || tc.says && !strings.Contains(got, "--home-api-server-host") {
				t.Errorf("it says %q", got)
			}
		})
	}
}
