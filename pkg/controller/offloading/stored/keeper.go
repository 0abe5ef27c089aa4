package stored

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/replica"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=services;persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=shadowpods;shadowendpointslices,verbs=list;watch
// In twin namespaces, bound there: configmaps and secrets list;watch.

const (
	// every is how often what is stored is compared with the limit.
	every = time.Second
	// patience is how long a label may take to be written.
	patience = 10 * time.Second
	// pageSize is how many objects are read at a time where API servers do not stream the first list: each may have 1.5 MiB.
	pageSize = 5
	// Past is how many times the limit is kept for what was overwritten or deleted lately, together with what is there.
	Past = 4
)

// Options of the keeper. All must be given but Clock.
type Options struct {
	// Limit is how many bytes may be stored for a consumer; with 0 nothing is watched or refused.
	Limit int64
	// Clock tells the time; nil means the real one.
	Clock clock.WithTicker
}

// keeper labels the twins of consumers for whom too much is stored.
type keeper struct {
	client  client.Client
	events  events.EventRecorder
	clock   clock.WithTicker
	limit   int64
	sources []source
	tally   *tally
	// everywhere are the replicas of what is watched in all namespaces, twins those of each twin.
	everywhere []*replica.Replica[*record]
	twins      map[string]*twin
}

// twin is what is watched of one.
type twin struct {
	consumer string
	// account is where its ConfigMaps and Secrets are summed up: another one for each namespace that ever had its name.
	account  string
	replicas []*replica.Replica[*record]
	stop     context.CancelFunc
}

// record is what is kept of an object. It is named by namespace and name.
type record struct {
	namespace, key, version string
	bytes                   int64
}

// GetName makes it a replica.Object.
func (r *record) GetName() string { return r.key }

// GetNamespace is empty: a replica of all namespaces takes it.
func (r *record) GetNamespace() string { return "" }

// Register adds the keeper to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Limit <= 0 {
		return nil
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	all, err := sources(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	k := &keeper{client: mgr.GetClient(), events: mgr.GetEventRecorder("liqo-stored"), clock: o.Clock, limit: o.Limit, sources: all,
		tally: newTally(), twins: map[string]*twin{}}
	if err := mgr.Add(k); err != nil {
		return fmt.Errorf("adding what weighs the objects of consumers: %w", err)
	}
	return nil
}

// Start weighs until the context ends.
func (k *keeper) Start(ctx context.Context) error {
	for _, s := range k.sources {
		if !s.secret {
			k.everywhere = append(k.everywhere, k.follow(ctx, s, "", ""))
		}
	}
	ticker := k.clock.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := k.judge(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "What is stored for consumers could not be compared with the limit; it is tried again")
		}
	}
}

// follow watches objects of a kind in a namespace, or in all, until the context ends. They are summed up in an account, or in those of their namespaces.
func (k *keeper) follow(ctx context.Context, s source, namespace, account string) *replica.Replica[*record] {
	r := replica.New(replica.Options[*record]{
		Name: "sizes of " + s.resource, Soon: true, Streams: true, PageSize: pageSize,
		Page: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.list(ctx, namespace, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return s.watch(ctx, namespace, o)
		},
		Example: func() runtime.Object { return &sized{} },
		Hold: func(object any) (*record, bool) {
			o, is := object.(*sized)
			if !is {
				return nil, false
			}
			return &record{namespace: o.Namespace, key: o.Namespace + "/" + o.Name, version: o.ResourceVersion, bytes: o.bytes * s.copies}, true
		},
		Event: func(before, object *record, deleted bool) {
			of, was, is := cmp.Or(account, object.namespace), int64(0), object.bytes
			if before != nil {
				was = before.bytes
			}
			if deleted {
				is = 0
			}
			if deleted || before == nil || before.version != object.version {
				k.tally.change(of, was, is, k.clock.Now())
			}
		},
		Synced: func() {},
	})
	go r.Run(ctx)
	return r
}

// judge follows the twins that there are, and labels those of consumers for whom too much is stored.
func (k *keeper) judge(ctx context.Context) error {
	var list corev1.NamespaceList
	if err := k.client.List(ctx, &list, client.HasLabels{corev1beta1.RemoteClusterIDLabel}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing twin namespaces: %w", err)
	}
	consumers := k.followTwins(ctx, list.Items)
	// What is known is asked first: the sums have all of it then.
	known := map[string]bool{}
	for _, consumer := range consumers {
		known[consumer] = k.known(consumer)
	}
	sums := k.tally.sums(k.clock.Now())
	var errs []error
	for i := range list.Items {
		namespace := &list.Items[i]
		consumer := consumers[namespace.Name]
		if consumer == "" {
			continue
		}
		_, labelled := namespace.Labels[offloadingv1beta1.TooManyBytesLabel]
		if want := k.over(sums[consumer], labelled); want != labelled && (want || known[consumer]) {
			errs = append(errs, k.label(ctx, namespace, want, sums[consumer]))
		}
	}
	return errors.Join(errs...)
}

// over tells whether too much is stored; of what was over once, a tenth has to go.
func (k *keeper) over(s sum, was bool) bool {
	limit := k.limit
	if was {
		limit -= limit / 10
	}
	return s.held > limit || s.held+s.past > Past*limit
}

// followTwins watches the twins among namespaces, and no others. It returns whose they are. Nothing can be made in those that are on their way out, and the
// rights there may be gone.
func (k *keeper) followTwins(ctx context.Context, namespaces []corev1.Namespace) map[string]string {
	consumers := map[string]string{}
	for i := range namespaces {
		ns := &namespaces[i]
		if ns.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation] == "" || ns.DeletionTimestamp != nil {
			continue
		}
		consumer := ns.Labels[corev1beta1.RemoteClusterIDLabel]
		consumers[ns.Name] = consumer
		account := ns.Name + " " + string(ns.UID)
		// Each time, because what is empty is forgotten.
		k.tally.belongs(ns.Name, consumer)
		k.tally.belongs(account, consumer)
		if was := k.twins[ns.Name]; was != nil && was.account == account {
			continue
		}
		k.leave(ns.Name)
		watching, stop := context.WithCancel(ctx)
		t := &twin{consumer: consumer, account: account, stop: stop}
		for _, s := range k.sources {
			if s.secret {
				t.replicas = append(t.replicas, k.follow(watching, s, ns.Name, account))
			}
		}
		k.twins[ns.Name] = t
	}
	for name := range k.twins {
		if consumers[name] == "" {
			k.leave(name)
		}
	}
	return consumers
}

// leave ends what is watched of a twin: what it held is to be deleted with it.
func (k *keeper) leave(namespace string) {
	if t := k.twins[namespace]; t != nil {
		t.stop()
		delete(k.twins, namespace)
		k.tally.close(t.account, k.clock.Now())
	}
}

// known tells whether all that is watched for a consumer is known.
func (k *keeper) known(consumer string) bool {
	replicas := slices.Clone(k.everywhere)
	for _, t := range k.twins {
		if t.consumer == consumer {
			replicas = append(replicas, t.replicas...)
		}
	}
	return !slices.ContainsFunc(replicas, func(r *replica.Replica[*record]) bool { return !r.Synced() })
}

// label says of a twin that its consumer makes and changes nothing there, or that it may again.
func (k *keeper) label(ctx context.Context, namespace *corev1.Namespace, full bool, s sum) error {
	changed := namespace.DeepCopy()
	if full {
		changed.Labels[offloadingv1beta1.TooManyBytesLabel] = "true"
	} else {
		delete(changed.Labels, offloadingv1beta1.TooManyBytesLabel)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := k.client.Patch(ctx, changed, client.MergeFrom(namespace)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("labelling Namespace %s: %w", namespace.Name, err)
	}
	if full {
		k.events.Eventf(namespace, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonTooManyBytes, "Refuse",
			"%d MiB are stored for cluster %q, and %d MiB more that it overwrote or deleted lately, of at most %d MiB (offloading.consumers.maxStoredBytes): "+
				"it makes and changes nothing here until it deleted some", s.held>>20, changed.Labels[corev1beta1.RemoteClusterIDLabel], s.past>>20, k.limit>>20)
	}
	return nil
}
