package share_test

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

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/reflection"
)

// pod is one on a node.
func pod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
}

// offloaded is the namespace shop at milan.
func offloaded() client.Object {
	return &offloadingv1beta1.NamespaceMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "milan", Labels: map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan"}},
		Spec:       offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome"}},
	}
}

// data is a volume at milan.
func data() client.Object {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", Annotations: map[string]string{reflection.ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner}},
		Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "db", UID: "claim"}, PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: offloadingv1beta1.PlaceholderDriver, VolumeHandle: "milan/shop-rome/db/r1"}}},
	}
}

// two are the slices and nodes of a provider that has its own and another one.
func two() []client.Object {
	second := virtualNode("second", "pool")
	second.UID = "second-uid"
	return []client.Object{slice("pool", nil, "true"), virtualNode("pool", "pool"), node("pool", "milan"), second, node("second", "milan"), node("milan", "milan"),
		func() client.Object { s := slice("milan", nil, "true"); s.UID = "milan-uid"; return s }(),
		func() client.Object {
			n := virtualNode("milan", "milan")
			n.OwnerReferences[0].UID = "milan-uid"
			return n
		}(), pod("web", "pool", corev1.PodRunning), pod("job", "pool", corev1.PodSucceeded), pod("db", "second", corev1.PodPending), pod("other", "milan", corev1.PodRunning), offloaded()}
}

func one() []client.Object {
	return []client.Object{slice("milan", nil, "true"), virtualNode("milan", "milan"), node("milan", "milan"), pod("web", "milan", corev1.PodRunning), offloaded()}
}

type deletion func(context.Context, share.DeleteOptions) error

// What is deleted, what is said to go with it, and that whoever says no changes nothing.
func TestDelete(t *testing.T) {
	const dropped, nodeDropped = "delete ResourceSlice liqo-tenant-milan/", "delete VirtualNode liqo-tenant-milan/"
	for sentence, test := range map[string]struct {
		run     deletion
		objects []client.Object
		name    string
		asked   string
		writes  []string
	}{
		"a slice with its nodes": {share.Delete, two(), "pool", "Deleting ResourceSlice liqo-tenant-milan/pool (cluster rome) gives back what it was granted (cpu 4), " +
			"evicts 2 pods (shop/web, shop/db) and removes 2 virtual nodes (pool, second).", []string{dropped + "pool (cluster rome)"}},
		"a slice without a node": {share.Delete, []client.Object{slice("pool", nil, "false"), virtualNode("milan", ""), offloaded()}, "pool",
			"Deleting ResourceSlice liqo-tenant-milan/pool (cluster rome) gives back what it was granted (cpu 4).", []string{dropped + "pool (cluster rome)"}},
		"the slice of the peering": {share.Delete, one(), "milan", "Deleting ResourceSlice liqo-tenant-milan/milan (cluster rome) gives back what it was granted (cpu 4), " +
			"evicts 1 pod (shop/web), removes 1 virtual node (milan) and deletes 1 namespace (shop-rome) at milan with everything in it, because no virtual node of milan is left. " +
			"It is the ResourceSlice of the peering, which goes on without it; 'liqoctl peer' asks with it again.", []string{dropped + "milan (cluster rome)"}},
		"a node of a slice's name": {share.DeleteNode, two(), "pool", "Deleting VirtualNode liqo-tenant-milan/pool (cluster rome) evicts 1 pod (shop/web) and removes 1 virtual node (pool). " +
			"ResourceSlice pool keeps what it was granted.", []string{"patch ResourceSlice liqo-tenant-milan/pool (cluster rome)", nodeDropped + "pool (cluster rome)"}},
		"another node of a slice": {share.DeleteNode, two(), "second", "Deleting VirtualNode liqo-tenant-milan/second (cluster rome) evicts 1 pod (shop/db) and removes 1 virtual node (second). " +
			"ResourceSlice pool keeps what it was granted.", []string{nodeDropped + "second (cluster rome)"}},
		"a node of no slice": {share.DeleteNode, append(two(), virtualNode("small", "")), "small",
			"Deleting VirtualNode liqo-tenant-milan/small (cluster rome) removes 1 virtual node (small).", []string{nodeDropped + "small (cluster rome)"}},
		"the last node": {share.DeleteNode, one(), "milan", "Deleting VirtualNode liqo-tenant-milan/milan (cluster rome) evicts 1 pod (shop/web), removes 1 virtual node (milan) and " +
			"deletes 1 namespace (shop-rome) at milan with everything in it, because no virtual node of milan is left. ResourceSlice milan keeps what it was granted.",
			[]string{"patch ResourceSlice liqo-tenant-milan/milan (cluster rome)", nodeDropped + "milan (cluster rome)"}},
		"a node beside volumes that stay": {share.DeleteNode, append(two(), data()), "second",
			"Deleting VirtualNode liqo-tenant-milan/second (cluster rome) evicts 1 pod (shop/db) and removes 1 virtual node (second). ResourceSlice pool keeps what it was granted.",
			[]string{nodeDropped + "second (cluster rome)"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(peered(), test.objects...)})
			no, asked, said := errors.New("no"), "", &progress.Recorder{}
			o := share.DeleteOptions{Cluster: rome.Cluster, Name: test.name, Timeout: 20 * time.Second, Observer: said,
				Confirm: func(_ context.Context, question string) error { asked = question; return no }}
			if err := test.run(t.Context(), o); !errors.Is(err, no) || len(rome.Writes()) > 0 {
				t.Fatalf("whoever says no: %v, wrote %v", err, rome.Writes())
			}
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Error(diff)
			}
			o.Confirm = nil
			if err := test.run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.writes, rome.Writes()); diff != "" {
				t.Error(diff)
			}
			for _, line := range said.Lines() {
				if !strings.HasPrefix(line, "rome: done: Deleted ") {
					t.Errorf("said %q", line)
				}
			}
		})
	}
}

// A slice whose node is deleted asks for none: it would be made again.
func TestADeletedNodeIsNotMadeAgain(t *testing.T) {
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(peered(), two()...)})
	if err := share.DeleteNode(t.Context(), share.DeleteOptions{Cluster: rome.Cluster, Name: "pool", Timeout: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	for name, asks := range map[string]bool{"pool": false, "milan": true} {
		got := &authv1beta1.ResourceSlice{}
		if err := rome.Client.Get(t.Context(), client.ObjectKey{Namespace: tenant, Name: name}, got); err != nil {
			t.Fatal(err)
		}
		if authv1beta1.IsSet(got.Annotations, authv1beta1.CreateVirtualNodeAnnotation) != asks {
			t.Errorf("%s: %v", name, got.Annotations)
		}
	}
}

func TestDeleteRefuses(t *testing.T) {
	theirs := slice("pool", nil, "false")
	theirs.Labels = map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "milan"}
	byHand := virtualNode("small", "")
	byHand.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig-resourceslice-pool"}
	elsewhere := slice("pool", nil, "false")
	elsewhere.Namespace, elsewhere.Labels[corev1beta1.RemoteIDLabel] = "liqo-tenant-turin", "turin"
	silent := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan-too"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"},
		Status: corev1beta1.ForeignClusterStatus{Conditions: []corev1beta1.Condition{{Type: corev1beta1.APIServerStatus, Status: corev1beta1.StatusError, Message: "it does not answer"}}}}
	for sentence, test := range map[string]struct {
		run      deletion
		objects  []client.Object
		name     string
		provider string
		missing  string
		want     string
	}{
		"a slice that is nowhere":      {run: share.Delete, objects: two(), name: "singapore", want: "rome has no resourceslice singapore: list them with 'liqoctl get resourceslice --context rome'"},
		"a slice that is misspelt":     {run: share.Delete, objects: two(), name: "pol", want: "rome has no resourceslice pol: did you mean pool?"},
		"a node that is nowhere":       {run: share.DeleteNode, objects: two(), name: "singapore", want: "rome has no virtualnode singapore: list them with 'liqoctl get virtualnode --context rome'"},
		"a node of another provider":   {run: share.DeleteNode, objects: two(), name: "pool", provider: "turin", want: "rome has no virtualnode pool of provider turin"},
		"a name of two slices":         {run: share.Delete, objects: append(two(), elsewhere), name: "pool", want: "rome has several resourceslices of the name pool: that of milan in namespace liqo-tenant-milan, that of turin in namespace liqo-tenant-turin: say whose is meant with --remote-cluster-id"},
		"a consumer's slice":           {run: share.Delete, objects: []client.Object{theirs}, name: "pool", want: "milan asks rome with ResourceSlice pool: only the consumer deletes it: give it nothing new with 'liqoctl cordon resourceslice pool --context rome', or take all back with 'liqoctl drain tenant milan --context rome'"},
		"a slice that a node needs":    {run: share.Delete, objects: append(two(), byHand), name: "pool", want: "VirtualNode liqo-tenant-milan/small (cluster rome) reaches the provider by the rights of ResourceSlice liqo-tenant-milan/pool (cluster rome): delete that first with 'liqoctl delete virtualnode small --context rome'"},
		"the last node, with data":     {run: share.DeleteNode, objects: append(one(), data()), name: "milan", want: "VirtualNode liqo-tenant-milan/milan (cluster rome) would take the last virtual node of milan away, and there is the data of 1 volume (shop/db): move them"},
		"the last slice, with data":    {run: share.Delete, objects: append(one(), data()), name: "milan", want: "ResourceSlice liqo-tenant-milan/milan (cluster rome) would take the last virtual node of milan away"},
		"a provider that is silent":    {run: share.Delete, objects: append(two(), silent), name: "pool", want: "nothing can be taken back from milan (cluster rome): it does not answer: run the same command once that works again"},
		"no right to delete":           {run: share.DeleteNode, objects: two(), name: "pool", missing: "delete virtualnodes.offloading.liqo.io in namespace liqo-tenant-milan", want: "you are not allowed to: delete virtualnodes"},
		"no right to see which pods":   {run: share.Delete, objects: two(), name: "pool", missing: "list pods", want: "you are not allowed to: list pods"},
		"no right to tell the slice":   {run: share.DeleteNode, objects: two(), name: "pool", missing: "patch resourceslices.authentication.liqo.io in namespace liqo-tenant-milan", want: "you are not allowed to: patch resourceslices"},
		"no right to look for a slice": {run: share.Delete, objects: two(), name: "pool", missing: "list resourceslices.authentication.liqo.io", want: "you are not allowed to: list resourceslices"},
	} {
		t.Run(sentence, func(t *testing.T) {
			known := peered()
			if sentence == "a provider that is silent" {
				known = append(known[:1], known[2])
			}
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(known, test.objects...), Missing: []string{test.missing}})
			err := test.run(t.Context(), share.DeleteOptions{Cluster: rome.Cluster, Name: test.name, ProviderID: test.provider, Timeout: 20 * time.Second})
			if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), test.want) || len(rome.Writes()) > 0 {
				t.Errorf("got %v, wrote %v", err, rome.Writes())
			}
		})
	}
}
