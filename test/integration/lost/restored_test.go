package lost

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

const (
	// early and late are how many objects of each kind are made before and after a backup.
	early, late = 3, 12
)

// fill makes so many pods, ConfigMaps and Secrets, and a claim with a pod that uses it.
func fill(t *testing.T, namespace, words string, count int) {
	t.Helper()
	world.Each(t, "creating objects", count, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("%s-%d", words, i)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"a": []byte("b")}}
		for _, object := range []client.Object{world.WordMap(namespace, name, words), secret, world.Pod(namespace, name)} {
			if err := env.Rome.Client.Create(ctx, object); err != nil {
				return err
			}
		}
		return nil
	})
	data := world.Claim(namespace, words+"-data", world.VirtualClass)
	fixture.Must(t, "creating a claim", env.Rome.Client.Create(t.Context(), data))
	fixture.Must(t, "creating its pod", env.Rome.Client.Create(t.Context(), world.PodWith(namespace, words+"-db", data.Name)))
	world.AwaitClaim(t, env.Rome, data, "to be bound", world.Bound)
}

// holdings are the UIDs of what a cluster has of a namespace's pods, ConfigMaps, Secrets (but those of tokens) and claims that is not being deleted.
func holdings(ctx context.Context, c *fixture.Cluster, namespace string) (map[string]types.UID, error) {
	all := map[string]types.UID{}
	for kind, list := range map[string]client.ObjectList{
		"pod": &corev1.PodList{}, "configmap": &corev1.ConfigMapList{}, "secret": &corev1.SecretList{}, "claim": &corev1.PersistentVolumeClaimList{},
	} {
		if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		note := func(o client.Object) {
			if name := o.GetName(); o.GetDeletionTimestamp() == nil && !strings.HasSuffix(name, ".token.liqo.io") && (strings.HasPrefix(name, "early-") || strings.HasPrefix(name, "late-")) {
				all[kind+" "+name] = o.GetUID()
			}
		}
		switch l := list.(type) {
		case *corev1.PodList:
			for i := range l.Items {
				note(&l.Items[i])
			}
		case *corev1.ConfigMapList:
			for i := range l.Items {
				note(&l.Items[i])
			}
		case *corev1.SecretList:
			for i := range l.Items {
				note(&l.Items[i])
			}
		case *corev1.PersistentVolumeClaimList:
			for i := range l.Items {
				note(&l.Items[i])
			}
		}
	}
	return all, nil
}

// awaitHoldings waits until a cluster has so many of them.
func awaitHoldings(t *testing.T, c *fixture.Cluster, namespace string, count int) (held map[string]types.UID) {
	t.Helper()
	fixture.Await(t, world.Healing, fmt.Sprintf("%s to have %d objects in namespace %s", c.ID, count, namespace), func(ctx context.Context) (bool, string) {
		var err error
		held, err = holdings(ctx, c, namespace)
		return err == nil && len(held) == count, fmt.Sprint(len(held), slices.Sorted(maps.Keys(held)), err)
	})
	return held
}

// awaitAdmission waits until rome's API server admits pods: for a while after its start it does not know the objects that policies look at.
func awaitAdmission(t *testing.T, namespace string) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, "pods to be admitted to namespace "+namespace, func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Create(ctx, world.Pod(namespace, "on-trial"), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
}

// perFill is how many objects there are of so many of each kind.
func perFill(count int) int { return 3*count + 2 }

// missing are the objects that are not as before.
func missing(before, now map[string]types.UID) (names []string) {
	for name, uid := range before {
		if now[name] != uid {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// heldRemovals is what the VirtualNode says of removals that are held; nil if none are.
func heldRemovals(ctx context.Context, w *world.Peering) (vn *offloadingv1beta1.VirtualNode, held *corev1beta1.Condition, err error) {
	vn = &offloadingv1beta1.VirtualNode{}
	err = env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.Node}, vn)
	return vn, conditions.Find(vn.Status.All(), offloadingv1beta1.RemovalsHeldCondition), err
}

// A12 at home: etcd is restored from a backup that knows nothing of most pods, ConfigMaps, Secrets, and of a claim with data. Nothing of
// that goes at the provider before an administrator confirms it, also when the virtual kubelet restarts while there are many new objects.
func TestA12ARestoredBackupOfTheHome(t *testing.T) {
	w := env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	fill(t, namespace, "early", early)
	awaitHoldings(t, env.Milan, namespace, perFill(early))
	world.AwaitPods(t, env.Rome, namespace, early+1)
	told := func() map[string]int {
		return world.EventsOf(t.Context(), env.Rome, "VirtualNode", fixture.ConsumerNamespace, w.Node, offloadingv1beta1.ReasonManyAtOnce)
	}
	toldBefore := told()
	restore := backup(t, env.Rome)
	fill(t, namespace, "late", late)
	world.AwaitPods(t, env.Rome, namespace, early+late+2)
	unknown := env.Offloaded(t)
	fill(t, unknown, "late", early)
	world.AwaitPods(t, env.Rome, unknown, early+1)
	inUnknown := awaitHoldings(t, env.Milan, unknown, perFill(early))
	before := awaitHoldings(t, env.Milan, namespace, perFill(early)+perFill(late))

	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	fixture.Must(t, "stopping the controller manager", w.Rome.Stop())
	restore()
	w.Rome.Start(t)
	w.Kubelet.Start(t)
	awaitAdmission(t, namespace)

	want := fmt.Sprintf("%d of kind configmap, 1 of kind persistentvolumeclaim, %d of kind pod, %d of kind secret in namespace %s", late, late+1, late, namespace)
	held := func(t *testing.T, more int) (said string) {
		t.Helper()
		fixture.Await(t, world.Healing, "the VirtualNode to say what is held", func(ctx context.Context) (bool, string) {
			now, err := holdings(ctx, env.Milan, namespace)
			if lost := missing(before, now); err == nil && len(lost) > 0 {
				t.Fatalf("%d of %d objects of the provider are gone: %v", len(lost), len(before), lost)
			}
			_, condition, err := heldRemovals(ctx, w)
			if condition == nil {
				return false, fmt.Sprint("nothing is held ", err)
			}
			said = condition.Message
			return condition.Reason == offloadingv1beta1.ReasonManyAtOnce && strings.Contains(said, want), fmt.Sprint(*condition)
		})
		// What comes after it crosses, and by then what was to go would have gone.
		fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(), world.WordMap(namespace, fmt.Sprintf("after-%d", more), "after")))
		world.Each(t, "creating pods", 2*late, func(ctx context.Context, i int) error {
			return env.Rome.Client.Create(ctx, world.Pod(namespace, fmt.Sprintf("after-%d-%d", more, i)))
		})
		world.AwaitPods(t, env.Rome, namespace, early+1+2*late*more)
		fixture.Await(t, fixture.Patience, "a new ConfigMap to cross", func(ctx context.Context) (bool, string) {
			err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("after-%d", more)}, &corev1.ConfigMap{})
			return err == nil, fmt.Sprint(err)
		})
		now, err := holdings(t.Context(), env.Milan, namespace)
		fixture.Must(t, "listing what the provider has", err)
		if lost := missing(before, now); len(lost) > 0 {
			t.Fatalf("%d of %d objects of the provider are gone: %v", len(lost), len(before), lost)
		}
		return said
	}
	first := held(t, 1)
	if count := world.Since(toldBefore, told()); count != 1 {
		t.Errorf("%d Events tell of it, want one", count)
	}
	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	w.Kubelet.Start(t)
	if second := held(t, 2); second != first {
		t.Errorf("after a restart it says\n%s\nand before it\n%s", second, first)
	}

	way := regexp.MustCompile(offloadingv1beta1.ConfirmedRemovalsAnnotation + `=(\w+)`).FindStringSubmatch(first)
	if way == nil {
		t.Fatalf("it does not say how to confirm: %s", first)
	}
	vn, _, err := heldRemovals(t.Context(), w)
	fixture.Must(t, "reading the VirtualNode", err)
	confirmed := vn.DeepCopy()
	metav1.SetMetaDataAnnotation(&confirmed.ObjectMeta, offloadingv1beta1.ConfirmedRemovalsAnnotation, way[1])
	fixture.Must(t, "confirming", env.Rome.Client.Patch(t.Context(), confirmed, client.MergeFrom(vn)))
	after := awaitHoldings(t, env.Milan, namespace, perFill(early))
	for name, uid := range after {
		if before[name] != uid {
			t.Errorf("%s was made anew", name)
		}
	}
	if now, err := holdings(t.Context(), env.Milan, unknown); err != nil || len(missing(inUnknown, now)) > 0 {
		t.Errorf("of a twin that the backup does not know these are gone: %v %v", missing(inUnknown, now), err)
	}
	confirmTwin(t, unknown)
	fixture.Await(t, world.Healing, "the condition and the confirmation to go", func(ctx context.Context) (bool, string) {
		vn, condition, err := heldRemovals(ctx, w)
		_, there := vn.Annotations[offloadingv1beta1.ConfirmedRemovalsAnnotation]
		return err == nil && condition == nil && !there, fmt.Sprint(condition, vn.Annotations, err)
	})
}

// confirmTwin has a twin removed of which the restored NamespaceMap knows nothing, as its condition says.
func confirmTwin(t *testing.T, namespace string) {
	t.Helper()
	nm := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ConsumerNamespace, Name: "milan"}}
	held := func(ctx context.Context) (*metav1.Condition, error) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(nm), nm)
		return meta.FindStatusCondition(nm.Status.Conditions, offloadingv1beta1.RemovalsHeldCondition), err
	}
	fixture.Await(t, fixture.Patience, "the NamespaceMap to say what is held", func(ctx context.Context) (bool, string) {
		condition, err := held(ctx)
		return err == nil && condition != nil && strings.Contains(condition.Message, offloadingv1beta1.ConfirmedRemovalsAnnotation+"="+namespace), fmt.Sprint(condition, err)
	})
	confirmed := nm.DeepCopy()
	metav1.SetMetaDataAnnotation(&confirmed.ObjectMeta, offloadingv1beta1.ConfirmedRemovalsAnnotation, namespace)
	fixture.Must(t, "confirming", env.Rome.Client.Patch(t.Context(), confirmed, client.MergeFrom(nm)))
	fixture.Await(t, world.Healing, "the twin and its condition to go", func(ctx context.Context) (bool, string) {
		condition, err := held(ctx)
		twin := env.Milan.Client.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
		_, there := nm.Annotations[offloadingv1beta1.ConfirmedRemovalsAnnotation]
		return err == nil && condition == nil && !there && apierrors.IsNotFound(twin), fmt.Sprint(condition, there, twin, err)
	})
}

// A12 at the provider: its etcd is restored from a backup that knows nothing of most copies and remote pods. They are made again, and
// nothing goes at home for that: no pod, no claim and no volume.
func TestA12ARestoredBackupOfTheProvider(t *testing.T) {
	w := env.Peered(t)
	env.Stored(t)
	namespace := env.Offloaded(t)
	fill(t, namespace, "early", early)
	world.AwaitPods(t, env.Rome, namespace, early+1)
	awaitHoldings(t, env.Milan, namespace, perFill(early))
	restore := backup(t, env.Milan)
	fill(t, namespace, "late", late)
	world.AwaitPods(t, env.Rome, namespace, early+late+2)
	there := awaitHoldings(t, env.Milan, namespace, perFill(early)+perFill(late))
	home := awaitHoldings(t, env.Rome, namespace, perFill(early)+perFill(late))
	volumes := volumesOf(t, namespace)
	if len(volumes) != 2 {
		t.Fatalf("there are %d volumes, want 2", len(volumes))
	}

	env.Milan.Link.Refuse()
	t.Cleanup(env.Milan.Link.Mend)
	fixture.Must(t, "stopping the controller manager", w.Milan.Stop())
	restore()
	w.Milan.Start(t)
	env.AwaitNode(t, false)
	env.Milan.Link.Mend()
	env.AwaitNode(t, true)

	fixture.Await(t, world.Healing, "the provider to have again what has no data", func(ctx context.Context) (bool, string) {
		now, err := holdings(ctx, env.Milan, namespace)
		var lacks []string
		for name := range there {
			if _, is := now[name]; !is && name != "claim late-data" && name != "pod late-db" {
				lacks = append(lacks, name)
			}
		}
		slices.Sort(lacks)
		for name, uid := range there {
			if strings.Contains(name, " early-") && err == nil && now[name] != uid {
				t.Fatalf("%s of the provider was replaced, or is gone", name)
			}
		}
		return err == nil && len(lacks) == 0, fmt.Sprint("it lacks ", lacks, err)
	})
	now, err := holdings(t.Context(), env.Rome, namespace)
	fixture.Must(t, "listing what is at home", err)
	if lost := missing(home, now); len(lost) > 0 {
		t.Errorf("at home there are not any more: %v", lost)
	}
	if now := volumesOf(t, namespace); !maps.Equal(volumes, now) {
		t.Errorf("of the volumes %v there are %v", volumes, now)
	}
	if _, condition, err := heldRemovals(t.Context(), w); condition != nil || err != nil {
		t.Errorf("removals are held: %v, %v", condition, err)
	}
}

// volumesOf are the UIDs of rome's volumes of a namespace's claims that are not being deleted.
func volumesOf(t *testing.T, namespace string) map[string]types.UID {
	t.Helper()
	list := &corev1.PersistentVolumeList{}
	fixture.Must(t, "listing volumes", env.Rome.Client.List(t.Context(), list))
	all := map[string]types.UID{}
	for _, volume := range list.Items {
		if ref := volume.Spec.ClaimRef; ref != nil && ref.Namespace == namespace && volume.DeletionTimestamp == nil {
			all[volume.Name] = volume.UID
		}
	}
	return all
}
