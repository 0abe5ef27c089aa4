package unpeer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
)

// hosting is what milan has for rome: a twin with a pod that runs, one that has ended, and a claim.
func hosting() []client.Object {
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-rome",
		Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: "rome"}}}
	return append(provider(), twin,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: twin.Name, Name: "web"}},
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
		"what the provider runs": {"milan", "rome", hosting(), false, "Ending the peering of milan with rome from this side alone " +
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

func TestForceWithoutARightTouchesNothing(t *testing.T) {
	for _, missing := range []string{"patch foreignclusters.core.liqo.io", "delete virtualnodes.offloading.liqo.io in namespace liqo-tenant-milan", "delete namespaces", "list persistentvolumeclaims"} {
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
