package secretledger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

const twinName = "demo-rome"

func twinNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        twinName,
		Labels:      map[string]string{corev1beta1.RemoteClusterIDLabel: "rome"},
		Annotations: map[string]string{offloadingv1beta1.ManagedByNamespaceMapAnnotation: "liqo-tenant-rome/milan"},
	}}
}

func secret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: twinName, Name: name,
			Labels:      map[string]string{offloadingv1beta1.OriginLabel: "rome"},
			Annotations: map[string]string{corev1beta1.OriginUIDAnnotation: "uid-" + name},
		},
		Data: map[string][]byte{"key": []byte(value)},
	}
}

func line(s *corev1.Secret) string {
	return reflection.OriginUID(s) + " " + reflection.SecretHash(s)
}

// events keeps the reasons of Events.
type eventLog struct{ reasons []string }

func (e *eventLog) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	e.reasons = append(e.reasons, reason)
}

// client-go pauses after errors by a clock of its own, which differs from that of the tests by decades.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	m.Run()
}

// bench drives a Reconciler as a manager would: queue, one worker, back-off.
type bench struct {
	*testing.T
	client client.WithWatch
	events eventLog
	mu     sync.Mutex
	writes []string
	fail   error
	stop   func()
	tokens *Tokens
	// forbidden says that the Secrets cannot be listed.
	forbidden atomic.Bool
}

// unstreamed keeps client-go from streaming lists, which the fake client cannot.
type unstreamed struct{ client.WithWatch }

func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

func inBubble(t *testing.T, f func(b *bench), objects ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t}
		write := func(verb string, o client.Object) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if o.GetName() == offloadingv1beta1.SecretLedger {
				b.writes = append(b.writes, verb)
				return b.fail
			}
			return nil
		}
		b.client = unstreamed{fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := write("create", o); err != nil {
					return err
				}
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if err := write("update", o); err != nil {
					return err
				}
				return c.Update(ctx, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, secrets := list.(*corev1.SecretList); secrets && (&client.ListOptions{}).ApplyOptions(opts).Namespace == "" {
					return errors.New("secrets are forbidden cluster-wide")
				} else if secrets && b.forbidden.Load() {
					return errors.New("secrets are forbidden here yet")
				}
				return c.List(ctx, list, opts...)
			},
			// The fake's watches know no selectors.
			Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (w watchInterface, err error) {
				w, err = c.Watch(ctx, list, opts...)
				if err != nil {
					return nil, err
				}
				return selected(w, (&client.ListOptions{}).ApplyOptions(opts)), nil
			},
		}).Build()}
		b.start()
		defer func() { b.stop() }()
		f(b)
	})
}

func (b *bench) start() {
	b.tokens = NewTokens()
	r := newReconciler(b.client, Options{Client: b.client, Events: &b.events, Tokens: b.tokens})
	queue := workqueue.NewTypedRateLimitingQueue(reconcile.RateLimiter())
	ctx, cancel := context.WithCancel(b.Context())
	if err := r.twins.Start(ctx, queue); err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			request, down := queue.Get()
			if down {
				return
			}
			result, err := r.Reconcile(ctx, request)
			switch {
			case err != nil:
				queue.AddRateLimited(request)
			case result.RequeueAfter > 0:
				queue.AddAfter(request, result.RequeueAfter)
			default:
				queue.Forget(request)
			}
			queue.Done(request)
		}
	}()
	b.stop = func() {
		cancel()
		queue.ShutDown()
		<-done
	}
	queue.Add(ctrl.Request{NamespacedName: client.ObjectKey{Name: twinName}})
	synctest.Wait()
}

func (b *bench) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) ledger() *corev1.ConfigMap {
	var c corev1.ConfigMap
	if err := b.client.Get(b.Context(), client.ObjectKey{Namespace: twinName, Name: offloadingv1beta1.SecretLedger}, &c); err != nil {
		return nil
	}
	return &c
}

func (b *bench) expect(what string, want map[string]string, writes ...string) {
	b.Helper()
	var got map[string]string
	if l := b.ledger(); l != nil {
		got = l.Data
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		b.Errorf("%s: ledger (-want +got):\n%s", what, diff)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff(writes, b.writes, cmpopts.EquateEmpty()); diff != "" {
		b.Errorf("%s: writes (-want +got):\n%s", what, diff)
	}
	b.writes = nil
}

func TestLedgerFollowsSecrets(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.expect("no Secrets", nil)
		x, y := secret("x", "1"), secret("y", "1")
		b.must(b.client.Create(b.Context(), x))
		b.pass(0)
		b.expect("first Secret", map[string]string{"x": line(x)}, "create")

		b.must(b.client.Create(b.Context(), y))
		x.Data["key"] = []byte("2")
		b.must(b.client.Update(b.Context(), x))
		b.pass(500 * time.Millisecond)
		b.expect("changes within a second", map[string]string{"x": line(secret("x", "1"))})
		b.pass(time.Second)
		b.expect("changes within a second come together", map[string]string{"x": line(x), "y": line(y)}, "update")

		y.Labels["theirs"] = "1"
		b.must(b.client.Update(b.Context(), y))
		b.pass(2 * time.Second)
		b.expect("a change that does not matter", map[string]string{"x": line(x), "y": line(y)})

		foreign := secret("foreign", "1")
		foreign.Labels[offloadingv1beta1.OriginLabel] = "paris"
		b.must(b.client.Create(b.Context(), foreign))
		nameless := secret("nameless", "1")
		nameless.Annotations = nil
		b.must(b.client.Create(b.Context(), nameless))
		b.pass(2 * time.Second)
		b.expect("Secrets that are not the consumer's, or do not say whose", map[string]string{"x": line(x), "y": line(y)})

		b.stop()
		b.start()
		b.pass(2 * time.Second)
		b.expect("restart", map[string]string{"x": line(x), "y": line(y)})

		b.must(b.client.Delete(b.Context(), x))
		b.must(b.client.Delete(b.Context(), y))
		b.pass(2 * time.Second)
		if b.ledger() == nil {
			t.Error("an empty ledger was removed")
		}
		b.pass(2 * time.Second)
		b.mu.Lock()
		b.writes = nil
		b.mu.Unlock()

		b.fail = errors.New("boom")
		b.must(b.client.Create(b.Context(), secret("z", "1")))
		b.pass(10 * time.Second)
		b.mu.Lock()
		b.fail, b.writes = nil, nil
		b.mu.Unlock()
		b.must(b.client.Delete(b.Context(), b.ledger()))
		b.pass(time.Minute)
		b.expect("after failures, and with the ledger removed", map[string]string{"z": line(secret("z", "1"))}, "create")
	}, twinNamespace())
}

func TestOnlyTwinsHaveLedgers(t *testing.T) {
	for name, change := range map[string]func(*corev1.Namespace){
		"a namespace without annotation": func(n *corev1.Namespace) { n.Annotations = nil },
		"a namespace without label":      func(n *corev1.Namespace) { n.Labels = nil },
		"another consumer's twin":        func(n *corev1.Namespace) { n.Labels[corev1beta1.RemoteClusterIDLabel] = "paris" },
		"a namespace that is being deleted": func(n *corev1.Namespace) {
			now := metav1.Now()
			n.DeletionTimestamp, n.Finalizers = &now, []string{"x/y"}
		},
		"no namespace": func(n *corev1.Namespace) { n.Name = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			namespace := twinNamespace()
			change(namespace)
			inBubble(t, func(b *bench) {
				b.pass(10 * time.Second)
				b.expect("no ledger", nil)
			}, namespace, secret("x", "1"))
		})
	}
}

func TestTwinThatChangesHands(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.pass(time.Second)
		b.expect("rome's", map[string]string{"x": line(secret("x", "1"))}, "create")
		namespace := twinNamespace()
		namespace.Labels[corev1beta1.RemoteClusterIDLabel] = "paris"
		b.must(b.client.Update(b.Context(), namespace))
		b.must(b.client.Create(b.Context(), secret("y", "1"))) // Wakes the worker.
		b.pass(2 * time.Second)
		b.expect("paris'", nil, "update")
	}, twinNamespace(), secret("x", "1"))
}

func TestOverflow(t *testing.T) {
	var objects []client.Object
	for i := range 20 {
		s := secret(fmt.Sprint("s", i), "1")
		objects = append(objects, s)
	}
	entries := map[string]string{}
	for _, o := range objects {
		entries[o.GetName()] = strings.Repeat("x", 100<<10)
	}
	data, omitted := fit(entries, maxLedger)
	if len(data)+omitted != 20 || len(data) != 8 || data["s0"] == "" {
		t.Errorf("%d fit, %d are left out", len(data), omitted)
	}
	inBubble(t, func(b *bench) {
		r := newReconciler(b.client, Options{Client: b.client, Events: &b.events})
		b.must(r.publish(b.Context(), nil, ledgerFor(twinName, entries)))
		live := b.ledger()
		if live.Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation] != "12" || !slices.Equal(b.events.reasons, []string{offloadingv1beta1.ReasonLedgerOverflow}) {
			t.Errorf("annotations %v, events %v", live.Annotations, b.events.reasons)
		}
		delete(entries, "s0")
		b.must(r.publish(b.Context(), live, ledgerFor(twinName, entries)))
		if got := b.ledger().Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation]; got != "11" {
			t.Errorf("annotation is %q", got)
		}
		b.must(r.publish(b.Context(), b.ledger(), ledgerFor(twinName, nil)))
		if got, there := b.ledger().Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation]; there {
			t.Errorf("annotation is %q", got)
		}
	})
}

func TestEntriesAreBounded(t *testing.T) {
	for name, uid := range map[string]string{"empty": "", "two words": "a b", "long": strings.Repeat("x", 65), "lines": "a\nb"} {
		s := secret("x", "1")
		s.Annotations[corev1beta1.OriginUIDAnnotation] = uid
		if got := entryOf(s); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestOnlyHashesStayInMemory(t *testing.T) {
	whole := secret("x", "1")
	kept, is := summarize(whole)
	want := &record{ObjectMeta: metav1.ObjectMeta{Namespace: twinName, Name: "x", UID: whole.UID, ResourceVersion: whole.ResourceVersion}, entry: entryOf(whole)}
	if !is || !reflect.DeepEqual(want, kept) {
		t.Errorf("kept %+v, want %+v", kept, want)
	}
	if _, is := summarize(&corev1.ConfigMap{}); is {
		t.Error("a ConfigMap is taken for a Secret")
	}
}

func TestRegister(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: new(true)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Register(mgr, Options{}); err != nil {
		t.Error(err)
	}
}
