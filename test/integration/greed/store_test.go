package greed

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// storer is a consumer that has a provider store what it can.
type storer struct {
	*world.Tenant
	user   *fixture.User
	stored atomic.Int64
}

func newStorer(t *testing.T) *storer {
	t.Helper()
	s := &storer{Tenant: env.NewTenant(t)}
	s.Granted(t, world.GrantedSlice, world.Quantities("cpu", "1", "pods", "1"))
	s.user = env.Milan.Slice(t, s.ID, world.GrantedSlice)
	return s
}

// object of one of the kinds, of so many bytes.
func (s *storer) object(kind, namespace, name string, size int) client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		offloadingv1beta1.OriginLabel: s.ID, offloadingv1beta1.DestinationLabel: "milan"}}
	text := strings.Repeat("x", size)
	if kind == "Secret" {
		return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"a": []byte(text)}}
	}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": text}}
}

// another is one more twin of the consumer.
func (s *storer) another(t *testing.T) string {
	t.Helper()
	name := fixture.Unique("twin")
	m := &offloadingv1beta1.NamespaceMap{ObjectMeta: s.Marks("milan")}
	fixture.Must(t, "asking for another twin", s.User.Patch(t.Context(), m, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"desiredMapping":{"store":%q}}}`, name))))
	fixture.Await(t, fixture.Patience, "rights in the twin "+name, func(ctx context.Context) (bool, string) {
		err := s.user.Create(ctx, s.object("ConfigMap", name, "probe", 1), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	return name
}

// most has several writers write until they are refused, or so many bytes are stored; it returns the refusal.
func (s *storer) most(limit int64, size int, write func(n int64) error) string {
	var number atomic.Int64
	var last atomic.Value
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for s.stored.Load() < limit {
				if err := write(number.Add(1)); err != nil {
					last.Store(err.Error())
					return
				}
				s.stored.Add(int64(size))
			}
		})
	}
	all.Wait()
	refusal, _ := last.Load().(string)
	return refusal
}

// T12: an etcd has room for 2 GiB unless it is told otherwise, 8 at most; when it is full nobody writes anything in the whole cluster. What one consumer
// can put there is bounded in bytes, over all its namespaces and kinds, and it can delete what is too much.
func TestOneConsumerDoesNotFillTheProvidersEtcd(t *testing.T) {
	env.Peered(t)
	s := newStorer(t)
	twins := []string{s.Twin(t), s.another(t)}
	other := newStorer(t)
	others := other.Twin(t)
	fixture.Must(t, "making a small one", s.user.Create(t.Context(), s.object("ConfigMap", twins[0], "small", 1)))
	const size = 700 << 10
	refusal := s.most(256<<20, size, func(n int64) error {
		return s.user.Create(t.Context(), s.object([]string{"ConfigMap", "Secret"}[n%2], twins[n/2%2], fmt.Sprint("c-", n), size))
	})
	t.Logf("%d MiB, then %.300s", s.stored.Load()>>20, refusal)
	if !strings.Contains(refusal, offloadingv1beta1.ReasonTooManyBytes) {
		t.Fatalf("a consumer with a grant of 1 pod put %d MiB into the provider's etcd; then %s", s.stored.Load()>>20, refusal)
	}
	fixture.Must(t, "the administrator writes", env.Milan.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, Name: fixture.Unique("admins")}}))
	fixture.Must(t, "another consumer writes", other.user.Create(t.Context(), other.object("ConfigMap", others, "a", 10)))
	refused := func(err error) bool {
		return err != nil && strings.Contains(err.Error(), offloadingv1beta1.ReasonTooManyBytes)
	}
	for _, twin := range twins {
		if err := s.user.Create(t.Context(), s.object("ConfigMap", twin, "more", 10)); !refused(err) {
			t.Errorf("in another of its namespaces it makes a ConfigMap: %v", err)
		}
	}
	if err := s.user.Create(t.Context(), s.Shadow(twins[0], "more", world.Container(func(*corev1.Container) {}))); !refused(err) {
		t.Errorf("it makes a ShadowPod: %v", err)
	}
	change := client.RawPatch(types.MergePatchType, []byte(`{"data":{"b":"more"}}`))
	if err := s.user.Patch(t.Context(), s.object("ConfigMap", twins[0], "small", 1), change); !refused(err) {
		t.Errorf("it changes a ConfigMap: %v", err)
	}
	for _, twin := range twins {
		for n := range 4 * s.stored.Load() / size {
			for _, kind := range []string{"ConfigMap", "Secret"} {
				object := s.object(kind, twin, fmt.Sprint("c-", n), 1)
				fixture.Must(t, "the consumer deletes what is too much", client.IgnoreNotFound(s.user.Delete(t.Context(), object)))
			}
		}
	}
	fixture.Await(t, fixture.Patience, "the consumer may write again", func(ctx context.Context) (bool, string) {
		err := s.user.Create(ctx, s.object("ConfigMap", twins[1], fixture.Unique("again"), 10))
		return err == nil, fmt.Sprint(err)
	})
}

// T12: an etcd keeps what was overwritten, too, until it is compacted: writing one object again and again fills it as fast.
func TestOverwritingOneObjectIsBounded(t *testing.T) {
	env.Peered(t)
	s := newStorer(t)
	namespace := s.Twin(t)
	const size = 900 << 10
	for i := range 4 {
		fixture.Must(t, "making a ConfigMap", s.user.Create(t.Context(), s.object("ConfigMap", namespace, fmt.Sprint("c-", i), size)))
	}
	refusal := s.most(1<<30, size, func(n int64) error {
		object := s.object("ConfigMap", namespace, fmt.Sprint("c-", n%4), size)
		return s.user.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"b":"%d"}}`, n)))
	})
	t.Logf("%d MiB, then %.300s", s.stored.Load()>>20, refusal)
	if !strings.Contains(refusal, offloadingv1beta1.ReasonTooManyBytes) {
		t.Errorf("a consumer wrote %d MiB into the provider's etcd; then %s", s.stored.Load()>>20, refusal)
	}
}

// T11: the grant bounds the pods that run. Those that ended are objects all the same, each as large as the consumer likes, twice: ShadowPod and Pod. A
// consumer that gives none back is refused at twice the grant, and one that deletes them goes on.
func TestPodsThatEndedAreCounted(t *testing.T) {
	s := newStorer(t)
	namespace := s.Twin(t)
	var kept []*offloadingv1beta1.ShadowPod
	refusal := ""
	for i := 0; i < 10 && refusal == ""; i++ {
		shadow := s.Shadow(namespace, fmt.Sprintf("job-%d", i), world.Container(func(*corev1.Container) {}))
		shadow.Spec.Pod.RestartPolicy = corev1.RestartPolicyNever
		fixture.Await(t, fixture.Patience, "the place of the one that ended before", func(ctx context.Context) (bool, string) {
			err := s.user.Create(ctx, shadow.DeepCopy())
			if err != nil && strings.Contains(err.Error(), offloadingv1beta1.ReasonTooManyEndedPods) {
				refusal = err.Error()
			}
			return err == nil || refusal != "", fmt.Sprint(err)
		})
		if refusal != "" {
			break
		}
		kept = append(kept, shadow)
		if madeOf(t, shadow) == nil {
			t.Fatal("no pod is made")
		}
		succeeds(t, shadow)
	}
	t.Logf("%d are kept, then %s", len(kept), refusal)
	if len(kept) != 2 {
		t.Fatalf("a consumer with a grant of 1 pod left %d ShadowPods and Pods in the provider's etcd; the refusal: %s", len(kept), refusal)
	}
	fixture.Must(t, "deleting one that ended", s.user.Delete(t.Context(), kept[0].DeepCopy()))
	fixture.Await(t, fixture.Patience, "a pod in the place of the one that is gone", func(ctx context.Context) (bool, string) {
		err := s.user.Create(ctx, s.Shadow(namespace, "next", world.Container(func(*corev1.Container) {})))
		return err == nil, fmt.Sprint(err)
	})
}

// succeeds has a kubelet say that the pod of a ShadowPod ended, and waits until that is recorded.
func succeeds(t *testing.T, shadow *offloadingv1beta1.ShadowPod) {
	t.Helper()
	at := metav1.Now().UTC().Format(time.RFC3339)
	status := fmt.Sprintf(`{"status":{"phase":"Succeeded","containerStatuses":[{"name":"a","image":"b","imageID":"","ready":false,"restartCount":0,`+
		`"state":{"terminated":{"exitCode":0,"reason":"Completed","startedAt":%q,"finishedAt":%q}}}]}}`, at, at)
	fixture.Must(t, "a kubelet says that the pod ended", env.Milan.Client.Status().Patch(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shadow.Namespace, Name: shadow.Name}}, client.RawPatch(types.StrategicMergePatchType, []byte(status))))
	fixture.Await(t, fixture.Patience, "the end to be recorded", func(ctx context.Context) (bool, string) {
		live := &offloadingv1beta1.ShadowPod{}
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(shadow), live)
		return err == nil && live.Status.Phase == corev1.PodSucceeded, fmt.Sprint(live.Status.Phase, err)
	})
}
