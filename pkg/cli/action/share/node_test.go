package share_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// kubeconfig is a Secret by which milan is reached.
func kubeconfig(data string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "by-hand"}, Data: map[string][]byte{authv1beta1.KubeconfigKey: []byte(data)}}
}

func TestCreateNode(t *testing.T) {
	owner := []metav1.OwnerReference{{APIVersion: "authentication.liqo.io/v1beta1", Kind: "ResourceSlice", Name: "pool", UID: "slice-uid", Controller: ptr.To(true)}}
	of := &corev1.LocalObjectReference{Name: "kubeconfig-resourceslice-pool"}
	gold := map[string]string{"tier": "gold"}
	said := func(name string) []string {
		return []string{"rome: done: milan granted cpu 4", "rome: done: Virtual node " + name + " runs", "rome: done: Node " + name + " is ready"}
	}
	ofItsName := append([]string{"rome: done: milan granted cpu 4", "rome: done: ResourceSlice pool has a virtual node"}, said("pool")[1:]...)
	const created, update, updateSlice = "create VirtualNode liqo-tenant-milan/", "update VirtualNode liqo-tenant-milan/pool (cluster rome)", "update ResourceSlice liqo-tenant-milan/pool (cluster rome)"
	second := virtualNode("second", "pool")
	second.Spec = offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan", KubeconfigSecretRef: of, ResourceQuota: corev1.ResourceQuotaSpec{Hard: resources("cpu", "4")},
		Labels: map[string]string{"tier": "gold", "region": "eu"}, CreateNode: ptr.To(true)}
	for sentence, test := range map[string]struct {
		objects []client.Object
		options share.NodeOptions
		said    []string
		writes  []string
		want    offloadingv1beta1.VirtualNodeSpec
		owner   []metav1.OwnerReference
	}{
		"that of a slice without one": {
			objects: []client.Object{slice("pool", nil, "false")}, options: share.NodeOptions{Name: "pool", SliceName: "pool"},
			said: ofItsName, writes: []string{updateSlice},
			want:  virtualNode("pool", "pool").Spec,
			owner: owner,
		},
		"that of a slice, with labels": {
			objects: []client.Object{slice("pool", nil, "true"), virtualNode("pool", "pool"), node("pool", "milan")},
			options: share.NodeOptions{Name: "pool", SliceName: "pool", Wish: offloadingv1beta1.VirtualNodeSpec{Labels: gold}},
			said:    ofItsName, writes: []string{update},
			want:  offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan", ResourceQuota: corev1.ResourceQuotaSpec{Hard: resources("cpu", "4")}, Labels: gold},
			owner: owner,
		},
		"that of a slice, again": {
			objects: []client.Object{slice("pool", nil, "true"), virtualNode("pool", "pool"), node("pool", "milan")}, options: share.NodeOptions{Name: "pool", SliceName: "pool"},
			said: ofItsName, want: virtualNode("pool", "pool").Spec, owner: owner,
		},
		"another one of a slice": {
			objects: []client.Object{slice("pool", nil, "false")},
			options: share.NodeOptions{Name: "second", SliceName: "pool", Wish: offloadingv1beta1.VirtualNodeSpec{Labels: gold, CreateNode: ptr.To(true),
				OffloadingPatch: &offloadingv1beta1.OffloadingPatch{NodeSelector: gold, RuntimeClassName: ptr.To("kata")}}},
			said: said("second"), writes: []string{created + "second (cluster rome)"},
			want: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan", KubeconfigSecretRef: of, Labels: gold, CreateNode: ptr.To(true),
				OffloadingPatch: &offloadingv1beta1.OffloadingPatch{NodeSelector: gold, RuntimeClassName: ptr.To("kata")}},
			owner: owner,
		},
		"another one of a slice, again, after the controllers filled it in": {
			objects: []client.Object{slice("pool", nil, "false"), second, node("second", "milan")},
			options: share.NodeOptions{Name: "second", SliceName: "pool", Wish: offloadingv1beta1.VirtualNodeSpec{Labels: gold}},
			said:    said("second"), want: second.Spec, owner: owner,
		},
		"by a kubeconfig": {
			objects: []client.Object{kubeconfig("x")},
			options: share.NodeOptions{Name: "small", SecretName: "by-hand", Wish: offloadingv1beta1.VirtualNodeSpec{
				ResourceQuota: corev1.ResourceQuotaSpec{Hard: resources("cpu", "1")}, StorageClasses: []authv1beta1.StorageType{{StorageClassName: "fast", Default: true}},
				VkOptionsTemplateRef: &corev1.ObjectReference{Namespace: "liqo", Name: "mine"}}},
			said: said("small")[1:], writes: []string{created + "small (cluster rome)"},
			want: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan", KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "by-hand"},
				ResourceQuota: corev1.ResourceQuotaSpec{Hard: resources("cpu", "1")}, StorageClasses: []authv1beta1.StorageType{{StorageClassName: "fast", Default: true}},
				VkOptionsTemplateRef: &corev1.ObjectReference{Namespace: "liqo", Name: "mine"}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(peered(), test.objects...), React: controllers(t, "")})
			told := &progress.Recorder{}
			test.options.Cluster, test.options.ProviderID, test.options.Observer, test.options.Timeout = rome.Cluster, "milan", told, 20*time.Second
			if err := share.CreateNode(t.Context(), test.options); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.said, told.Lines()) + cmp.Diff(test.writes, rome.Writes()); diff != "" {
				t.Error(diff)
			}
			got := &offloadingv1beta1.VirtualNode{}
			if err := rome.Client.Get(t.Context(), client.ObjectKey{Namespace: tenant, Name: test.options.Name}, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Spec) + cmp.Diff(test.owner, got.OwnerReferences); diff != "" {
				t.Error(diff)
			}
			if want := map[bool]string{true: "pool"}[test.options.SliceName != ""]; got.Labels[authv1beta1.ResourceSliceNameLabel] != want {
				t.Errorf("its labels are %v", got.Labels)
			}
		})
	}
}

func TestCreateNodeRefuses(t *testing.T) {
	theirs, going := slice("pool", nil, "false"), slice("pool", nil, "false")
	theirs.Labels[corev1beta1.ReplicatedLabel] = "true"
	going.DeletionTimestamp, going.Finalizers = ptr.To(metav1.Now()), []string{"liqo.io/test"}
	placed := slice("pool", nil, "false")
	placed.Status.NodeSelector = map[string]string{"gpu": "true"}
	leaving := virtualNode("pool", "pool")
	leaving.DeletionTimestamp, leaving.Finalizers = ptr.To(metav1.Now()), []string{"liqo.io/test"}
	ofPool := share.NodeOptions{Name: "pool", SliceName: "pool"}
	bySecret := share.NodeOptions{Name: "pool", SecretName: "by-hand"}
	const anew = "choose another name, or delete it with 'liqoctl delete virtualnode pool --remote-cluster-id milan' and create it again"
	for sentence, test := range map[string]struct {
		objects  []client.Object
		options  share.NodeOptions
		provider string
		missing  string
		want     string
	}{
		"an unknown cluster":             {options: ofPool, provider: "turin", want: "cluster rome has no peer turin"},
		"no slice":                       {options: ofPool, want: "rome asks milan with no ResourceSlice pool: create it with 'liqoctl create resourceslice pool --remote-cluster-id milan'"},
		"a slice that is misspelt":       {options: ofPool, objects: []client.Object{slice("pools", nil, "false")}, want: "rome asks milan with no ResourceSlice pool: did you mean pools?"},
		"a consumer's slice":             {options: ofPool, objects: []client.Object{theirs}, want: "milan asks this cluster with ResourceSlice pool, and grants nothing by it"},
		"a slice that is being deleted":  {options: ofPool, objects: []client.Object{going}, want: "ResourceSlice liqo-tenant-milan/pool (cluster rome) is being deleted"},
		"a node that is being deleted":   {options: ofPool, objects: []client.Object{slice("pool", nil, "false"), leaving}, want: "VirtualNode liqo-tenant-milan/pool (cluster rome) is being deleted"},
		"no right to read it":            {options: ofPool, missing: "list resourceslices.authentication.liqo.io in namespace liqo-tenant-milan", want: "you are not allowed to: list resourceslices"},
		"no Secret":                      {options: bySecret, want: "Secret liqo-tenant-milan/by-hand (cluster rome) does not exist: put the kubeconfig for milan there, under the key kubeconfig"},
		"a Secret without a kubeconfig":  {options: bySecret, objects: []client.Object{kubeconfig("")}, want: "Secret liqo-tenant-milan/by-hand (cluster rome) has no kubeconfig"},
		"a real node of the name":        {options: ofPool, objects: []client.Object{slice("pool", nil, "false"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}}, want: "Node pool (cluster rome) is a real node"},
		"one of a slice, not of it":      {options: ofPool, objects: []client.Object{slice("pool", nil, "false"), virtualNode("pool", "")}, want: "VirtualNode liqo-tenant-milan/pool (cluster rome) is there already, and is otherwise: " + anew},
		"one of a slice, not by Secret":  {options: bySecret, objects: []client.Object{kubeconfig("x"), virtualNode("pool", "pool")}, want: "is there already, and is otherwise"},
		"one by a Secret, of other size": {options: bySecret, objects: []client.Object{kubeconfig("x"), virtualNode("pool", "")}, want: "is there already, and is otherwise"},
		"one of a slice, with other labels": {options: share.NodeOptions{Name: "second", SliceName: "pool", Wish: offloadingv1beta1.VirtualNodeSpec{Labels: map[string]string{"a": "b"}}},
			objects: []client.Object{slice("pool", nil, "false"), virtualNode("second", "pool")}, want: "is there already, and is otherwise"},
		"nodes that the provider chooses": {options: share.NodeOptions{Name: "pool", SliceName: "pool", Wish: offloadingv1beta1.VirtualNodeSpec{
			OffloadingPatch: &offloadingv1beta1.OffloadingPatch{NodeSelector: map[string]string{"a": "b"}}}}, objects: []client.Object{placed}, want: "milan says itself on which of its nodes"},
	} {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(peered(), test.objects...), React: controllers(t, ""), Missing: []string{test.missing}})
			test.options.Cluster, test.options.ProviderID, test.options.Timeout = rome.Cluster, "milan", 20*time.Second
			if test.provider != "" {
				test.options.ProviderID = test.provider
			}
			err := share.CreateNode(t.Context(), test.options)
			if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), test.want) || len(rome.Writes()) > 0 {
				t.Errorf("got %v, wrote %v", err, rome.Writes())
			}
		})
	}
}

// The manifest of a slice's virtual node says whose it is, so that it follows the slice and goes with it; nothing is written.
func TestTheManifestOfASlicesNode(t *testing.T) {
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(peered(), slice("pool", nil, "false"))})
	o := share.NodeOptions{Cluster: rome.Cluster, ProviderID: "milan", Name: "second", SliceName: "pool"}
	got, err := o.Manifest(t.Context(), target.Stamp{Labels: map[string]string{"team": "a"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "offloading.liqo.io/v1beta1", "kind": "VirtualNode",
		"metadata": map[string]any{"namespace": tenant, "name": "second", "labels": map[string]any{"team": "a", authv1beta1.ResourceSliceNameLabel: "pool"},
			"ownerReferences": []any{map[string]any{"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice", "name": "pool", "uid": "slice-uid", "controller": true}}},
		"spec": map[string]any{"clusterID": "milan", "kubeconfigSecretRef": map[string]any{"name": "kubeconfig-resourceslice-pool"}, "resourceQuota": map[string]any{}},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(rome.Writes()) > 0 {
		t.Errorf("%s, wrote %v", diff, rome.Writes())
	}
	o.SliceName = "pol"
	if _, err := o.Manifest(t.Context(), target.Stamp{}); failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), "did you mean pool?") {
		t.Errorf("got %v", err)
	}
}
