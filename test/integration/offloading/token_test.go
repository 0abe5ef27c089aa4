package offloading

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// apiToken is the one of the volume that the API server adds to each pod.
func apiToken(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	for key, value := range secret.Data {
		if strings.HasPrefix(key, "kube-api-access-") {
			return string(value)
		}
	}
	t.Fatalf("Secret %s has no token for the API server", secret.Name)
	return ""
}

func bearer(t *testing.T, token string) kubernetes.Interface {
	t.Helper()
	config := rest.AnonymousClientConfig(env.Rome.Config)
	config.BearerToken = token
	c, err := kubernetes.NewForConfig(config)
	fixture.Must(t, "making a client", err)
	return c
}

func running(t *testing.T, namespace string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	fixture.Must(t, "creating pod "+p.Name, env.Rome.Client.Create(t.Context(), p))
	fixture.Await(t, 2*fixture.Patience, "pod "+p.Name+" to run", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.Name}, p)
		return err == nil && p.Status.Phase == corev1.PodRunning, fmt.Sprint(p.Status, err)
	})
	return p
}

// W7: an offloaded pod has a token of its own ServiceAccount at rome that is bound to it, ends within an hour, costs one write
// at milan and goes with the pod.
func TestPodIdentity(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	fixture.Must(t, "allowing the pod's account to read ConfigMaps", env.Rome.Client.Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}}))
	fixture.Must(t, "binding the role", env.Rome.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "default"}}}))
	start := env.Milan.Recorder.Now(t)
	p := running(t, namespace, world.Pod(namespace, "talker"))
	secret := env.TokensOf(t, namespace, p.Name)
	token := apiToken(t, secret)

	shadow := &offloadingv1beta1.ShadowPod{}
	fixture.Must(t, "reading the ShadowPod", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(p), shadow))
	if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != shadow.UID {
		t.Errorf("the tokens belong to %v, not to the ShadowPod %s", secret.OwnerReferences, shadow.UID)
	}
	c := bearer(t, token)
	who, err := c.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	fixture.Must(t, "asking who the pod is", err)
	if user := who.Status.UserInfo; user.Username != "system:serviceaccount:"+namespace+":default" ||
		!slices.Equal(user.Extra["authentication.kubernetes.io/pod-uid"], []string{string(p.UID)}) {
		t.Errorf("the pod is %+v", user)
	}
	_, err = c.CoreV1().ConfigMaps(string(secret.Data["namespace"])).List(t.Context(), metav1.ListOptions{})
	fixture.Must(t, "listing the ConfigMaps of the namespace that the pod takes for its own", err)
	if lives := lifetime(t, token); lives > time.Hour {
		t.Errorf("the token lives %s", lives)
	}
	env.SettledIn(t, namespace)
	var writes []string
	for _, w := range env.Milan.Recorder.Since(t, start, fixture.OfLiqo) {
		if w.Resource == "secrets" && w.Name == secret.Name {
			writes = append(writes, w.Verb)
		}
	}
	if !slices.Equal(writes, []string{"create"}) {
		t.Errorf("the tokens cost the writes %v", writes)
	}

	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), p, client.GracePeriodSeconds(1)))
	fixture.Await(t, 2*fixture.Patience, "the tokens to go with the pod", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	fixture.Await(t, fixture.Patience, "the token to be worthless", func(ctx context.Context) (bool, string) {
		_, err := c.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
		return apierrors.IsUnauthorized(err), fmt.Sprint(err)
	})
}

func lifetime(t *testing.T, token string) time.Duration {
	t.Helper()
	parts := strings.Split(token, ".")
	var claims struct{ Iat, Exp int64 }
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts", len(parts))
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	fixture.Must(t, "decoding the token", err)
	fixture.Must(t, "reading the token", json.Unmarshal(raw, &claims))
	return time.Duration(claims.Exp-claims.Iat) * time.Second
}

// In a burst, too, a pod at the provider is made after the Secret that it mounts: one that comes before fails to mount it, and its
// kubelet tries again up to two minutes later.
func TestBurstOfPodsComesAfterItsTokens(t *testing.T) {
	t.Parallel()
	const burst = 40
	env.Peered(t)
	namespace := env.Offloaded(t)
	milan, err := client.NewWithWatch(env.Milan.Config, client.Options{Scheme: fixture.Scheme})
	fixture.Must(t, "making a client", err)
	born := map[string]map[string]uint64{"Pod": {}, "Secret": {}}
	watches := map[string]watch.Interface{}
	for kind, list := range map[string]client.ObjectList{"Pod": &corev1.PodList{}, "Secret": &corev1.SecretList{}} {
		watches[kind], err = milan.Watch(t.Context(), list, client.InNamespace(namespace))
		fixture.Must(t, "watching the "+kind+"s of milan", err)
		defer watches[kind].Stop()
	}
	for i := range burst {
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, fmt.Sprintf("burst-%d", i))))
	}
	world.AwaitPods(t, env.Milan, namespace, burst)
	for kind, stream := range watches {
		deadline := time.After(fixture.Patience)
		for len(born[kind]) < burst {
			select {
			case e := <-stream.ResultChan():
				o, ok := e.Object.(client.Object)
				if version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); ok && err == nil && e.Type == watch.Added && strings.HasPrefix(o.GetName(), "burst-") {
					born[kind][o.GetName()] = version
				}
			case <-deadline:
				t.Fatalf("waiting for the %ss of milan, %d of %d were seen", kind, len(born[kind]), burst)
			}
		}
	}
	var early []string
	for name, version := range born["Pod"] {
		if secret := born["Secret"][reflection.TokenSecretName(name)]; secret == 0 || secret > version {
			early = append(early, name)
		}
	}
	if len(early) > 0 {
		t.Errorf("%d of %d pods came before the Secret with their tokens: %v", len(early), burst, early)
	}
}

// A token Secret that somebody removes at the provider is put back.
func TestLostTokensComeBack(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	running(t, namespace, world.Pod(namespace, "loser"))
	secret := env.TokensOf(t, namespace, "loser")
	env.SettledIn(t, namespace)
	fixture.Must(t, "removing the tokens", env.Milan.Client.Delete(t.Context(), secret.DeepCopy()))
	fixture.Await(t, 2*fixture.Patience, "the tokens to come back", func(ctx context.Context) (bool, string) {
		live := &corev1.Secret{}
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(secret), live)
		return err == nil && live.UID != secret.UID, fmt.Sprint(live.UID, err)
	})
}

// theft is something that a thief of a virtual kubelet's credential tries.
type theft func(ctx context.Context, c kubernetes.Interface) error

func minting(namespace string, bound *corev1.Pod, audience string) theft {
	return func(ctx context.Context, c kubernetes.Interface) error {
		request := &authenticationv1.TokenRequest{}
		if bound != nil {
			request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: bound.Name, UID: bound.UID}
		}
		if audience != "" {
			request.Spec.Audiences = []string{audience}
		}
		_, err := c.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "default", request, metav1.CreateOptions{})
		return err
	}
}

func readingSecret(namespace, name string) theft {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

func listingSecrets(namespace string) theft {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
		return err
	}
}

func listingPods(namespace string) theft {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err
	}
}

// N9: whoever steals both credentials of a virtual kubelet gets tokens for the pods of its node, Secrets of offloaded
// namespaces and of those pods, and the sight of the pods of offloaded namespaces, and nothing else.
func TestStolenVirtualKubeletCredentials(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	namespace := env.Offloaded(t)
	own := running(t, namespace, world.Pod(namespace, "own"))
	private := fixture.Unique("private")
	fixture.Must(t, "creating a namespace", env.Rome.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: private}}))
	fixture.Must(t, "creating a Secret", env.Rome.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: private, Name: "jewel"}}))
	fixture.Must(t, "creating a Secret", env.Rome.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shared"}}))
	fixture.Await(t, fixture.Patience, "the default ServiceAccount", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: private, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, fmt.Sprint(err)
	})
	elsewhere := running(t, private, world.Pod(private, "elsewhere"))
	if elsewhere.Spec.NodeName == virtual {
		t.Fatalf("the pod is on node %s", virtual)
	}
	node, account := env.KubeletClients(t)
	thieves := map[string]kubernetes.Interface{"the node": node, "the account": account}
	earlier := own.DeepCopy()
	earlier.UID = types.UID("00000000-0000-0000-0000-000000000000")
	for who, c := range thieves {
		for what, try := range map[string]theft{
			"a token of a pod on another node":                 minting(private, elsewhere, ""),
			"a token that is bound to nothing":                 minting(namespace, nil, ""),
			"a token of an account without pod on this node":   minting(private, own, ""),
			"a token of an earlier pod of the name":            minting(namespace, earlier, ""),
			"a token for whom the pod has none":                minting(namespace, own, "vault"),
			"a Secret of a namespace that is not offloaded":    readingSecret(private, "jewel"),
			"the Secrets of a namespace that is not offloaded": listingSecrets(private),
			"the Secrets of the cluster's own namespace":       listingSecrets(metav1.NamespaceSystem),
			"the Secrets of Liqo":                              listingSecrets(fixture.Namespace),
			"all Secrets":                                      listingSecrets(metav1.NamespaceAll),
			"the pods of a namespace that is not offloaded":    listingPods(private),
			"all pods": listingPods(metav1.NamespaceAll),
		} {
			if err := try(t.Context(), c); !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
				t.Errorf("%s asks for %s: %v, want a refusal", who, what, err)
			}
		}
	}
	// What they are for, they can do: else the refusals above would prove nothing.
	fixture.Must(t, "asking for a token of a pod on the node", minting(namespace, own, "")(t.Context(), thieves["the node"]))
	fixture.Must(t, "reading a Secret of an offloaded namespace", readingSecret(namespace, "shared")(t.Context(), thieves["the account"]))
	fixture.Must(t, "listing the pods of an offloaded namespace", listingPods(namespace)(t.Context(), thieves["the account"]))
	if err := thieves["the account"].CoreV1().Pods(namespace).Delete(t.Context(), own.Name, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the reflection account deletes a pod: %v, want a refusal", err)
	}
	if err := minting(namespace, own, "")(t.Context(), thieves["the account"]); !apierrors.IsForbidden(err) {
		t.Errorf("the reflection account asks for a token: %v, want a refusal", err)
	}
	if err := readingSecret(namespace, "shared")(t.Context(), thieves["the node"]); !apierrors.IsForbidden(err) {
		t.Errorf("the node reads a Secret that none of its pods uses: %v, want a refusal", err)
	}
}
