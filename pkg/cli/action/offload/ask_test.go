package offload_test

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
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/reflection"
)

// provider is what a cluster has of a provider in a region, to which namespace shop is offloaded and where one of its pods runs.
func provider(id, region string) []client.Object {
	labels := map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: id, "region": region}
	return []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: labels}},
		&offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + id, Name: id},
			Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: corev1beta1.ClusterID(id), Labels: map[string]string{"region": region}}},
		&offloadingv1beta1.NamespaceMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + id, Name: id, Labels: map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: id}},
			Spec:       offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome", "bank": "bank-rome"}},
		},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-" + id}, Spec: corev1.PodSpec{NodeName: id}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "web-" + id}, Spec: corev1.PodSpec{NodeName: id}},
	}
}

func inRegions(values ...string) corev1.NodeSelector {
	return corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "region", Operator: corev1.NodeSelectorOpIn, Values: values}}}}}
}

func TestOffloadingToFewerClustersSaysWhatGoesAndAsks(t *testing.T) {
	no := errors.New("no")
	const lostMilan = "Namespace shop is taken back from milan: shop-rome is deleted there with everything in it, and with it 1 pod (shop/web-milan)."
	const lostParis = "Namespace shop is taken back from paris: shop-rome is deleted there with everything in it, and with it 1 pod (shop/web-paris)."
	volumeAt := func(id string) client.Object {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", Annotations: map[string]string{reflection.ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner}},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: offloadingv1beta1.PlaceholderDriver, VolumeHandle: id + "/shop-rome/data/r1"}},
				ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "u1"},
			},
		}
	}
	cases := map[string]struct {
		selector corev1.NodeSelector
		strategy offloadingv1beta1.PodOffloadingStrategyType
		more     []client.Object
		missing  []string
		asked    string
		refused  string
	}{
		"none at all":                  {selector: inRegions("africa"), asked: lostMilan + " " + lostParis},
		"one less":                     {selector: inRegions("france"), asked: lostMilan},
		"the same, said another way":   {selector: inRegions("italy", "france")},
		"the same, with less strategy": {strategy: offloadingv1beta1.LocalPodOffloadingStrategyType},
		"one less, where data is": {selector: inRegions("france"), more: []client.Object{volumeAt("milan")},
			refused: "namespace shop would be taken back from milan, where it has the data of 1 volume (shop/data): " +
				"move them with 'liqoctl move volume' or delete the claims, or select that cluster too"},
		"one less, and data is elsewhere": {selector: inRegions("france"), more: []client.Object{volumeAt("paris")}, asked: lostMilan},
		"one less, and what goes cannot be seen": {selector: inRegions("france"), missing: []string{"list pods in namespace shop"},
			refused: "you are not allowed to: list pods in namespace shop (cluster rome): " +
				"ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			present := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}, Spec: spec}
			objects := append(append(append(provider("milan", "italy"), provider("paris", "france")...), namespace("shop"), present), test.more...)
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: objects, Missing: test.missing,
				React: answering(t, offloadingv1beta1.ReadyOffloadingPhaseType, corev1.ConditionTrue)})
			want, asked := spec, ""
			want.ClusterSelector = test.selector
			if test.strategy != "" {
				want.PodOffloadingStrategy = test.strategy
			}
			_, err := offload.Namespace(t.Context(), offload.Options{
				Cluster: cluster.Cluster, Namespaces: []string{"shop"}, Spec: want, Timeout: 20 * time.Second,
				Confirm: func(_ context.Context, question string) error { asked = question; return no },
			})
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Error(diff)
			}
			switch {
			case test.refused != "":
				if failure.CodeOf(err) != failure.Precondition || cmp.Diff(test.refused, err.Error()) != "" {
					t.Errorf("got %v", err)
				}
			case test.asked != "":
				if !errors.Is(err, no) {
					t.Errorf("got %v", err)
				}
			default:
				if err != nil || len(cluster.Writes()) != 1 {
					t.Errorf("got %v, written %v", err, cluster.Writes())
				}
				return
			}
			if writes := cluster.Writes(); len(writes) > 0 {
				t.Errorf("written before anybody agreed: %v", writes)
			}
		})
	}
}
