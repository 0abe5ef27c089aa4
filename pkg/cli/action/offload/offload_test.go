package offload_test

import (
	"context"
	"strings"
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
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/reflection"
)

func TestSelector(t *testing.T) {
	requirement := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	cases := map[string]struct {
		selectors []string
		want      []corev1.NodeSelectorTerm
	}{
		"none selects all": {nil, nil},
		"commas mean and": {[]string{"a=b,c!=d"}, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			requirement("a", corev1.NodeSelectorOpIn, "b"), requirement("c", corev1.NodeSelectorOpNotIn, "d"),
		}}}},
		"repeating means or": {[]string{"a", "!b"}, []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{requirement("a", corev1.NodeSelectorOpExists)}},
			{MatchExpressions: []corev1.NodeSelectorRequirement{requirement("b", corev1.NodeSelectorOpDoesNotExist)}},
		}},
		"sets and numbers": {[]string{"a in (y,x),b notin (z),c>1,d<2,e==f"}, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			requirement("a", corev1.NodeSelectorOpIn, "x", "y"), requirement("b", corev1.NodeSelectorOpNotIn, "z"),
			requirement("c", corev1.NodeSelectorOpGt, "1"), requirement("d", corev1.NodeSelectorOpLt, "2"), requirement("e", corev1.NodeSelectorOpIn, "f"),
		}}}},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			got, err := offload.Selector(test.selectors)
			if diff := cmp.Diff(test.want, got.NodeSelectorTerms); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

var spec = offloadingv1beta1.NamespaceOffloadingSpec{
	NamespaceMappingStrategy: offloadingv1beta1.DefaultNameMappingStrategyType,
	PodOffloadingStrategy:    offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType,
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// answering plays the controller: it answers with a phase, and one cluster's condition.
func answering(t *testing.T, phase offloadingv1beta1.OffloadingPhaseType, status corev1.ConditionStatus) func(context.Context, client.Client, client.Object) {
	return func(ctx context.Context, store client.Client, written client.Object) {
		offloading, ok := written.(*offloadingv1beta1.NamespaceOffloading)
		if !ok {
			return
		}
		offloading.Status.OffloadingPhase, offloading.Status.ObservedGeneration = phase, offloading.Generation
		offloading.Status.RemoteNamespaceName = offloading.Namespace + "-rome"
		offloading.Status.RemoteNamespacesConditions = map[corev1beta1.ClusterID]offloadingv1beta1.RemoteNamespaceConditions{"milan": {{
			Type: offloadingv1beta1.RemoteNamespaceReadyCondition, Status: status, Reason: offloadingv1beta1.ReasonNamespaceConflict, Message: "the name is taken",
		}}}
		if err := store.Status().Update(ctx, offloading); err != nil {
			t.Error(err)
		}
	}
}

func TestOffloading(t *testing.T) {
	existing := func(change func(*offloadingv1beta1.NamespaceOffloading)) client.Object {
		object := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}, Spec: spec}
		change(object)
		return object
	}
	cases := map[string]struct {
		phase   offloadingv1beta1.OffloadingPhaseType
		status  corev1.ConditionStatus
		objects []client.Object
		missing []string
		offload string
		lines   []string
		code    failure.Code
		want    string
	}{
		"to a cluster": {
			phase: offloadingv1beta1.ReadyOffloadingPhaseType, status: corev1.ConditionTrue, objects: []client.Object{namespace("shop")},
			lines: []string{"rome: done: Namespace shop offloaded to milan"},
		},
		"to nobody": {
			phase: offloadingv1beta1.NoClusterSelectedOffloadingPhaseType, status: corev1.ConditionFalse, objects: []client.Object{namespace("shop")},
			lines: []string{"rome: warned: Namespace shop is offloaded, but no cluster is selected: peer with a provider first: liqoctl peer"},
		},
		"to a cluster that refuses": {
			phase: offloadingv1beta1.AllFailedOffloadingPhaseType, status: corev1.ConditionFalse, objects: []client.Object{namespace("shop")},
			code: failure.Failed, want: "namespace shop could not be offloaded (AllFailed): milan: NamespaceConflict: the name is taken: solve that, or choose other clusters with --selector, and run the same command again",
		},
		"to a cluster that does not answer": {
			phase: offloadingv1beta1.InProgressOffloadingPhaseType, status: corev1.ConditionFalse, objects: []client.Object{namespace("shop")},
			code: failure.Timeout, want: "timed out waiting for NamespaceOffloading shop/offloading (cluster rome) to be ready: milan: NamespaceConflict: the name is taken: run the same command again to continue, with a longer --timeout if it needs one",
		},
		"a namespace that does not exist": {
			code: failure.Precondition, want: "Namespace shop (cluster rome) does not exist: create it with 'kubectl create namespace shop'",
		},
		"a namespace that never leaves": {
			objects: []client.Object{namespace("liqo")}, offload: "liqo", code: failure.Precondition,
			want: "namespace liqo can never be offloaded: Liqo itself runs in it, with its private keys: offload the namespaces of your applications instead",
		},
		"a namespace that its label keeps": {
			objects: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{corev1beta1.TenantNamespaceLabel: "true"}}}},
			offload: "milan", code: failure.Precondition,
			want: "namespace milan can never be offloaded: it is the tenant namespace of a peering, and holds its private keys and kubeconfigs: offload the namespaces of your applications instead",
		},
		"without the right": {
			missing: []string{"create namespaceoffloadings.offloading.liqo.io in namespace shop"}, code: failure.Precondition,
			want: "you are not allowed to: create namespaceoffloadings.offloading.liqo.io in namespace shop (cluster rome): ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs",
		},
		"with another mapping than before": {
			objects: []client.Object{namespace("shop"), existing(func(o *offloadingv1beta1.NamespaceOffloading) {
				o.Spec.NamespaceMappingStrategy = offloadingv1beta1.EnforceSameNameMappingStrategyType
			})},
			code: failure.Precondition, want: "applying NamespaceOffloading shop/offloading (cluster rome): the namespace is offloaded with the mapping strategy EnforceSameName, which cannot be changed: unoffload it first with 'liqoctl unoffload namespace shop'",
		},
		"with another remote name than before": {
			objects: []client.Object{namespace("shop"), existing(func(o *offloadingv1beta1.NamespaceOffloading) { o.Spec.RemoteNamespaceName = "x" })},
			code:    failure.Precondition, want: "applying NamespaceOffloading shop/offloading (cluster rome): the namespace is offloaded with the remote name \"x\", which cannot be changed: unoffload it first with 'liqoctl unoffload namespace shop'",
		},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if test.offload == "" {
				test.offload = "shop"
			}
			cluster := fixture.New(t, fixture.Options{Name: "kind-rome", ClusterID: "rome", Objects: test.objects, Missing: test.missing, React: answering(t, test.phase, test.status)})
			recorder, timeout := &progress.Recorder{}, 20*time.Second
			if test.code == failure.Timeout {
				timeout = 5 * time.Second
			}
			_, err := offload.Namespace(context.Background(), offload.Options{
				Cluster: cluster.Cluster, Namespaces: []string{test.offload}, Spec: spec, Timeout: timeout, Observer: recorder,
			})
			if failure.CodeOf(err) != test.code {
				t.Fatalf("got %v (code %d), want code %d", err, failure.CodeOf(err), test.code)
			}
			if err != nil {
				if diff := cmp.Diff(test.want, err.Error()); diff != "" {
					t.Error(diff)
				}
				return
			}
			if diff := cmp.Diff(test.lines, recorder.Lines()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOffloadingAgainWritesNothing(t *testing.T) {
	cluster := fixture.New(t, fixture.Options{
		Name: "rome", ClusterID: "rome", Objects: []client.Object{namespace("shop")}, React: answering(t, offloadingv1beta1.ReadyOffloadingPhaseType, corev1.ConditionTrue),
	})
	o := offload.Options{Cluster: cluster.Cluster, Namespaces: []string{"shop"}, Spec: spec, Timeout: 20 * time.Second}
	for range 2 {
		results, err := offload.Namespace(context.Background(), o)
		want := []offload.Result{{Namespace: "shop", RemoteNamespace: "shop-rome", Phase: "Ready", Clusters: []string{"milan"}}}
		if diff := cmp.Diff(want, results); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
	}
	if writes := cluster.Writes(); len(writes) != 1 {
		t.Errorf("written: %v", writes)
	}
}

func TestUndoing(t *testing.T) {
	cluster := fixture.New(t, fixture.Options{
		Name: "rome", ClusterID: "rome",
		Objects: []client.Object{&offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}, Spec: spec}},
	})
	recorder := &progress.Recorder{}
	err := offload.Undo(context.Background(), offload.UndoOptions{Cluster: cluster.Cluster, Namespaces: []string{"shop", "bank"}, Observer: recorder})
	want := []string{"rome: done: Namespace shop is local again", "rome: warning: Namespace bank is not offloaded"}
	if diff := cmp.Diff(want, recorder.Lines()); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// H4: a namespace stays offloaded while volumes at a provider hold its data, unless the user gives them up.
func TestUndoingIsRefusedWhileVolumesHoldData(t *testing.T) {
	cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: []client.Object{
		&offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}, Spec: spec},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", Annotations: map[string]string{reflection.ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner}},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: offloadingv1beta1.PlaceholderDriver, VolumeHandle: "milan/shop-rome/data/r1"}},
				ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "u1"},
			},
		},
	}})
	o := offload.UndoOptions{Cluster: cluster.Cluster, Namespaces: []string{"shop"}}
	if err := offload.Undo(t.Context(), o); failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), "shop/data in milan") || len(cluster.Writes()) > 0 {
		t.Errorf("got %v, wrote %v", err, cluster.Writes())
	}
	o.DeleteVolumes = true
	if err := offload.Undo(t.Context(), o); err != nil || cluster.Writes()[0] != "patch NamespaceOffloading shop/offloading (cluster rome)" {
		t.Errorf("got %v, wrote %v", err, cluster.Writes())
	}
}

// What is at a provider that does not work cannot be taken back: that is said at once, with the way out, and nothing is begun.
func TestUndoingIsRefusedWhileAProviderIsLost(t *testing.T) {
	cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: []client.Object{
		&offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}, Spec: spec},
		&offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "offloading"}, Spec: spec},
		&offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", Labels: map[string]string{
			corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan"}},
			Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome"}}},
		&corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"},
			Status: corev1beta1.ForeignClusterStatus{Conditions: []corev1beta1.Condition{
				{Type: corev1beta1.APIServerStatus, Status: corev1beta1.StatusError, Message: "no route to it"}}}},
	}})
	err := offload.Undo(t.Context(), offload.UndoOptions{Cluster: cluster.Cluster, Namespaces: []string{"shop"}})
	want := "namespace shop cannot be taken back from milan (cluster rome): no route to it: " +
		"run the same command once that works again; if it never will, end the peering first: liqoctl unpeer --force milan"
	if failure.CodeOf(err) != failure.Precondition || err.Error() != want || len(cluster.Writes()) > 0 {
		t.Errorf("got %v, wrote %v", err, cluster.Writes())
	}
	if err := offload.Undo(t.Context(), offload.UndoOptions{Cluster: cluster.Cluster, Namespaces: []string{"other"}}); err != nil {
		t.Errorf("a namespace that is not offloaded there: %v", err)
	}
}

// Whatever right is missing, for any of the namespaces, is found before the first one is touched.
func TestUndoingWithoutARightTouchesNothing(t *testing.T) {
	for sentence, test := range map[string]struct {
		missing string
		volumes bool
		refused bool
	}{
		"who may not delete what offloads the second one": {"delete namespaceoffloadings.offloading.liqo.io in namespace bank", false, true},
		"who cannot see where they are":                   {"list namespacemaps.offloading.liqo.io", false, true},
		"who cannot see their volumes":                    {"list persistentvolumes", false, true},
		"who may not delete claims, and wants to":         {"delete persistentvolumeclaims in namespace shop", true, true},
		"who may not delete claims":                       {"delete persistentvolumeclaims in namespace shop", false, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Missing: []string{test.missing}, Objects: []client.Object{
				&offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}},
				&offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "offloading"}},
			}})
			err := offload.Undo(t.Context(), offload.UndoOptions{Cluster: cluster.Cluster, Namespaces: []string{"shop", "bank"}, DeleteVolumes: test.volumes})
			if !test.refused {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			want := "you are not allowed to: " + test.missing + " (cluster rome): ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs"
			if failure.CodeOf(err) != failure.Precondition || err.Error() != want || len(cluster.Writes()) > 0 {
				t.Errorf("got %v, written %v", err, cluster.Writes())
			}
		})
	}
}
