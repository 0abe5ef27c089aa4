package unpeer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
)

// hosting is what milan has for rome: a twin with a pod that runs, one that has ended, and a claim.
func hosting() []client.Object {
	labels := map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: "rome"}
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-rome", Labels: labels, Annotations: map[string]string{
		offloadingv1beta1.ManagedByNamespaceMapAnnotation: "liqo-tenant-rome/milan", offloadingv1beta1.OriginalNameAnnotation: "shop"}}}
	// Somebody copied its labels.
	copied := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "copied", Labels: labels}}
	return append(provider(), twin, copied,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: twin.Name, Name: "web", Finalizers: []string{offloadingv1beta1.ShadowPodRecordFinalizer, "example.com/own"},
			Labels: map[string]string{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: copied.Name, Name: "own"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: twin.Name, Name: "ended"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: twin.Name, Name: "data"}})
}

func TestForceSaysWhatGoesAndAsks(t *testing.T) {
	refused := errors.New("no")
	withData := append(offloading(2), stored()...)
	for sentence, test := range map[string]struct {
		cluster, peer string
		objects       []client.Object
		volumes       bool
		want          string
	}{
		"the consumer's pods and twins": {"rome", "milan", offloading(2), false, "Ending the peering of rome with milan from this side alone removes 2 pods (shop/web-0, shop/web-1) " +
			"from its virtual nodes, gives up 1 namespace (shop-rome) there with everything in it and removes 1 virtual node (milan)."},
		"its volumes": {"rome", "milan", withData, false, "Ending the peering of rome with milan from this side alone removes 2 pods (shop/web-0, shop/web-1) " +
			"from its virtual nodes, gives up 1 namespace (shop-rome) there with everything in it, gives up the data of 1 volume (shop/data) " +
			"(if milan works, that is refused without --delete-volumes) and removes 1 virtual node (milan)."},
		"its volumes, which it decided to lose": {"rome", "milan", withData, true, "Ending the peering of rome with milan from this side alone removes 2 pods (shop/web-0, shop/web-1) " +
			"from its virtual nodes, gives up 1 namespace (shop-rome) there with everything in it, gives up the data of 1 volume (shop/data) " +
			"(if milan works, it is deleted) and removes 1 virtual node (milan)."},
		"what the provider runs, and data that it decided to lose": {"milan", "rome", hosting(), true, "Ending the peering of milan with rome from this side alone " +
			"deletes its 1 namespace (shop-rome) here with 1 pod (shop-rome/web) and the data of 1 volume (shop-rome/data)."},
		"nothing": {"rome", "milan", consumer(), false, "Ending the peering of rome with milan from this side alone " +
			"removes all that the two know of each other here; neither runs anything of the other."},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := fixture.New(t, fixture.Options{Name: test.cluster, ClusterID: test.cluster, Objects: test.objects})
			asked := ""
			_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: cluster.Cluster, PeerID: test.peer, DeleteVolumes: test.volumes,
				Confirm: func(_ context.Context, question string) error { asked = question; return refused }})
			if diff := cmp.Diff(test.want, asked); diff != "" {
				t.Error(diff)
			}
			if writes := cluster.Writes(); !errors.Is(err, refused) || len(writes) > 0 {
				t.Errorf("got %v, written %v", err, writes)
			}
		})
	}
}

// A consumer's data at this provider does not go without a word: nothing is asked, and nothing touched.
func TestForceKeepsDataOfTheConsumer(t *testing.T) {
	for sentence, confirm := range map[string]func(context.Context, string) error{
		"nobody is asked":   nil,
		"somebody says yes": func(context.Context, string) error { t.Error("it asks"); return nil },
	} {
		t.Run(sentence, func(t *testing.T) {
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: hosting()})
			_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: milan.Cluster, PeerID: "rome", Timeout: 10 * time.Second, Confirm: confirm})
			want := "unpeering from rome would delete the data of 1 volume (shop-rome/data) in its namespaces here: copy what you need from there, or add --delete-volumes to lose it"
			if failure.CodeOf(err) != failure.Precondition || err.Error() != want || len(milan.Writes()) > 0 {
				t.Errorf("got %v, written %v", err, milan.Writes())
			}
		})
	}
}

func TestForceWithoutARightTouchesNothing(t *testing.T) {
	for _, missing := range []string{"patch foreignclusters.core.liqo.io", "delete virtualnodes.offloading.liqo.io in namespace liqo-tenant-milan", "delete namespaces", "patch pods", "list persistentvolumeclaims"} {
		t.Run(missing, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: offloading(1), Missing: []string{missing}})
			_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: rome.Cluster, PeerID: "milan", Timeout: 20 * time.Second,
				Confirm: func(context.Context, string) error { t.Error("it asked before it knew whether it may"); return nil }})
			want := "you are not allowed to: " + missing + " (cluster rome): ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs"
			if failure.CodeOf(err) != failure.Precondition || err.Error() != want || len(rome.Writes()) > 0 {
				t.Errorf("got %v, written %v", err, rome.Writes())
			}
		})
	}
}

// C9: the Tenant may be gone, and with it who would remove the twins: the command does, and lets go of their pods. What only looks like a twin
// is named, and not touched.
func TestForceRemovesTwinsThatNobodyElseDoes(t *testing.T) {
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: hosting()})
	_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: milan.Cluster, PeerID: "rome", DeleteVolumes: true, Timeout: 10 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "namespaces copied") || strings.Contains(err.Error(), "shop-rome") {
		t.Errorf("got %v, want an error that names what only looks like a twin", err)
	}
	twin, copied, web := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-rome"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "copied"}}, &corev1.Pod{}
	if found, err := milan.Cluster.Get(t.Context(), twin); found || err != nil {
		t.Errorf("the twin is there: %t, %v", found, err)
	}
	if found, err := milan.Cluster.Get(t.Context(), copied); !found || err != nil {
		t.Errorf("what is not ours is there: %t, %v", found, err)
	}
	web.Namespace, web.Name = twin.Name, "web"
	if found, err := milan.Cluster.Get(t.Context(), web); !found || err != nil {
		t.Fatalf("the pod, which the namespace would take along, is there: %t, %v", found, err)
	}
	if diff := cmp.Diff([]string{"example.com/own"}, web.Finalizers); diff != "" {
		t.Errorf("finalizers of the pod: %s", diff)
	}
}
