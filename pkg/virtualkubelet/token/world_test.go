package token

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/fakeapi"
)

// client-go pauses after errors by a clock of its own, which differs from that of the tests by decades.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	goleak.VerifyTestMain(m)
}

const twin = "shop-rome"

var (
	secrets    = corev1.SchemeGroupVersion.WithResource("secrets")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// world is two clusters in a bubble of time: the home, which issues tokens, and the provider, whose ledger the test publishes.
type world struct {
	*testing.T
	home, provider *fake.Clientset
	keeper         *Keeper
	stop           func()

	mu     sync.Mutex
	places map[types.NamespacedName]Place
	asked  []authenticationv1.TokenRequestSpec
	writes []string
	events []string
	// refusal is what the home answers, lengthen what it adds to a token's life without saying so.
	refusal  error
	lengthen time.Duration
	// broken is what the provider answers to writes.
	broken error
	epoch  int64
}

func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, home: fake.NewClientset(), provider: fake.NewClientset(), places: map[types.NamespacedName]Place{}, epoch: 1}
		fakeapi.React(&w.home.Fake, "create", "serviceaccounts", w.issue)
		fakeapi.React(&w.provider.Fake, "*", "secrets", w.write)
		w.start()
		f(w)
		w.stop()
	})
}

// start runs a virtual kubelet, which knows nothing of an earlier one.
func (w *world) start() {
	w.Helper()
	keeper, err := New(Options{
		Home: "rome", Remote: "milan", Node: "milan", Local: w.home, Place: w.place, Recorder: w,
		API: reflection.HomeAPI{Enabled: true, Host: "api"}, Jitter: func(time.Duration) time.Duration { return 7 * time.Second },
	})
	if err != nil {
		w.Fatal(err)
	}
	w.keeper = keeper
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- keeper.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
		w.stop = func() {}
	}
	synctest.Wait()
	for name := range w.places {
		keeper.Enqueue(name)
	}
	synctest.Wait()
}

func (w *world) place(name types.NamespacedName) (Place, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	place, there := w.places[name]
	return place, there
}

// put says where a pod runs; nil is that it is gone.
func (w *world) put(name string, change func(*Place)) {
	key := types.NamespacedName{Namespace: "shop", Name: name}
	w.mu.Lock()
	place, there := w.places[key]
	if !there {
		place = Place{Local: pod(name), UID: types.UID("shadow-" + name), Namespace: twin, Provider: w.provider, Epoch: w.epoch}
	}
	if change != nil {
		change(&place)
	}
	w.places[key] = place
	if place.Local == nil {
		delete(w.places, key)
	}
	w.mu.Unlock()
	w.keeper.Enqueue(key)
	synctest.Wait()
}

func pod(name string) *corev1.Pod {
	asked := func(path, audience string, seconds int64) corev1.VolumeProjection {
		return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: path, Audience: audience, ExpirationSeconds: ptr.To(seconds)}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{ServiceAccountName: "seller", Volumes: []corev1.Volume{{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{asked("token", "", 3607), asked("vault", "vault", 7200)}}}}}},
	}
}

// issue plays the API server: it answers with a token that shows what it was issued for.
func (w *world) issue(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	create := action.(clienttesting.CreateActionImpl)
	request := create.GetObject().(*authenticationv1.TokenRequest).DeepCopy()
	w.asked = append(w.asked, request.Spec)
	if w.refusal != nil {
		return true, nil, w.refusal
	}
	now, lives := time.Now(), time.Duration(*request.Spec.ExpirationSeconds)*time.Second
	claims, err := json.Marshal(map[string]any{"iat": now.Unix(), "exp": now.Add(lives + w.lengthen).Unix(),
		"sub": create.Namespace + "/" + create.Name, "aud": request.Spec.Audiences})
	if err != nil {
		return true, nil, err
	}
	request.Status.Token = "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
	request.Status.ExpirationTimestamp = metav1.NewTime(now.Add(lives))
	return true, request, nil
}

// write plays the provider's API server: Secrets can only be written, and patches that do not apply are invalid.
func (w *world) write(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	verb := action.GetVerb()
	w.writes = append(w.writes, verb)
	if w.broken != nil {
		return true, nil, w.broken
	}
	if verb != "create" && verb != "patch" {
		return true, nil, apierrors.NewForbidden(secrets.GroupResource(), "", fmt.Errorf("%s is not allowed", verb))
	}
	handled, object, err := clienttesting.ObjectReaction(w.provider.Tracker())(action)
	if verb == "patch" && err != nil && !apierrors.IsNotFound(err) {
		err = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false)
	}
	return handled, object, err
}

// Event keeps what the user is told.
func (w *world) Event(_ runtime.Object, _, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, reason+": "+message)
}

func (w *world) secret(pod string) *corev1.Secret {
	object, err := w.provider.Tracker().Get(secrets, twin, pod+".token.liqo.io")
	if err != nil {
		return nil
	}
	return object.(*corev1.Secret)
}

// publish plays the provider's ledger: it lists the token Secrets that there are.
func (w *world) publish() {
	w.Helper()
	ledger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: twin, Name: offloadingv1beta1.SecretLedger,
		ResourceVersion: fmt.Sprint(time.Now().UnixNano())}, Data: map[string]string{}}
	list, err := w.provider.Tracker().List(secrets, corev1.SchemeGroupVersion.WithKind("Secret"), twin)
	if err != nil {
		w.Fatal(err)
	}
	for _, secret := range list.(*corev1.SecretList).Items {
		if entry, ok := reflection.TokenEntryOf(&secret); ok {
			ledger.Data[secret.Name] = entry.String()
		}
	}
	if err := w.provider.Tracker().Update(configMaps, ledger, twin); apierrors.IsNotFound(err) {
		err = w.provider.Tracker().Create(configMaps, ledger, twin)
		if err != nil {
			w.Fatal(err)
		}
	}
	synctest.Wait()
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// written returns what was written at the provider since the last call.
func (w *world) written() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.writes, " ")
	w.writes = nil
	return text
}

// told returns the reasons of the Events since the last call.
func (w *world) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := slices.Clone(w.events)
	w.events = nil
	return texts
}

func (w *world) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) equal(what string, want, got any) {
	w.Helper()
	if fmt.Sprint(want) != fmt.Sprint(got) {
		w.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func keysOf(s *corev1.Secret) []string { return slices.Sorted(maps.Keys(s.Data)) }
