package secrets

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

func TestKeysRotate(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	store := Store{Client: c, Reader: c}
	ctx := t.Context()
	if keys, err := store.Keys(ctx, "ns", "id"); keys != nil || err != nil {
		t.Fatalf("before: %v, %v", keys, err)
	}
	owner := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "o", UID: "1"}}
	first, err := store.EnsureKeys(ctx, "ns", "id", "milan", identity.AlgorithmEd25519, owner)
	if err != nil {
		t.Fatal(err)
	}
	same, err := store.EnsureKeys(ctx, "ns", "id", "milan", identity.AlgorithmEd25519, owner)
	if err != nil || !identity.SamePublicKey(same.Current.Public(), first.Current.Public()) || same.Secret.ResourceVersion != first.Secret.ResourceVersion {
		t.Fatalf("a second key was made: %v", err)
	}
	next, err := identity.NewKeyPair(identity.AlgorithmEd25519)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.SetNext(ctx, same, next); err != nil {
		t.Fatal(err)
	}
	read, err := store.Keys(ctx, "ns", "id")
	if err != nil || !read.HasNext() || !identity.SamePublicKey(read.Current.Public(), first.Current.Public()) {
		t.Fatalf("with a next key: %v", err)
	}
	if err := store.Promote(ctx, read); err != nil {
		t.Fatal(err)
	}
	read, err = store.Keys(ctx, "ns", "id")
	if err != nil || read.HasNext() || !identity.SamePublicKey(read.Current.Public(), next.Public()) {
		t.Fatalf("after the swap: %v", err)
	}
}

// A Secret with keys is owned whatever its labels say, and an owner that is there already is not written again.
func TestKeysGoWithTheLastOfTheirOwners(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	store, ctx := Store{Client: c, Reader: c}, t.Context()
	owner := func(name, uid string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}}
	}
	keys, err := store.EnsureKeys(ctx, "ns", "id", "milan", identity.AlgorithmEd25519, owner("a", "1"))
	if err != nil {
		t.Fatal(err)
	}
	keys.Secret.Labels = nil
	if err := store.Update(ctx, keys.Secret); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		owner  client.Object
		owners string
		wrote  bool
	}{{owner("b", "2"), "1 2", true}, {owner("b", "2"), "1 2", false}, {owner("a", "3"), "3 2", true}} {
		version := keys.Secret.ResourceVersion
		if err := store.Own(ctx, keys, step.owner); err != nil {
			t.Fatal(err)
		}
		var owners []string
		for _, reference := range keys.Secret.OwnerReferences {
			owners = append(owners, string(reference.UID))
		}
		if got := strings.Join(owners, " "); got != step.owners || (keys.Secret.ResourceVersion != version) != step.wrote {
			t.Errorf("owners %s, want %s; version %s after %s", got, step.owners, keys.Secret.ResourceVersion, version)
		}
	}
}

func TestBrokenKeysAreNeverOverwritten(t *testing.T) {
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: KeySecretName("id")}, Data: map[string][]byte{"privateKey": []byte("x")}}
	c := fake.NewClientBuilder().WithObjects(broken).Build()
	_, err := Store{Client: c, Reader: c}.EnsureKeys(t.Context(), "ns", "id", "milan", identity.AlgorithmEd25519)
	if reconcile.Classify(err) != reconcile.Terminal || reconcile.ReasonOf(err) != authv1beta1.ReasonKeyMissing {
		t.Errorf("got %v", err)
	}
}

func TestMissingRightsAreAWait(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no"))
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	}).Build()
	_, err := Store{Client: c, Reader: c}.Get(t.Context(), "ns", "x")
	if reconcile.Classify(err) != reconcile.Waiting || reconcile.ReasonOf(err) != authv1beta1.ReasonPermissionPending {
		t.Errorf("got %v", err)
	}
}

func TestWatchFollowsOnlyWhatItWasTold(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := func(ns, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "Identity", Name: "of-" + name}}},
		}
	}
	w := NewWatch(metadatafake.NewSimpleMetadataClient(scheme, object("a", "one"), object("b", "two")))
	w.Follow("a")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Start(ctx) }()
	defer func() { cancel(); <-done }()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	defer queue.ShutDown()
	if err := w.Source(Owner("Identity")).Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	next := func() ctrlreconcile.Request {
		t.Helper()
		got := make(chan ctrlreconcile.Request, 1)
		go func() {
			request, _ := queue.Get()
			queue.Done(request)
			got <- request
		}()
		select {
		case request := <-got:
			return request
		case <-time.After(2 * time.Minute):
			t.Fatal("nothing came")
			return ctrlreconcile.Request{}
		}
	}
	if got := next().String(); got != "a/of-one" {
		t.Errorf("first came %s", got)
	}
	w.Follow("b")
	if got := next().String(); got != "b/of-two" {
		t.Errorf("then came %s", got)
	}
	w.Forget("b")
	w.Forget("b")
}
