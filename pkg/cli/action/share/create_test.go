package share_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
)

const tenant = "liqo-tenant-milan"

// peered is what rome has of its provider milan.
func peered() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant, Labels: map[string]string{
			corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: "milan"}}},
		&corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}},
		&authv1beta1.Identity{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "controlplane-milan"}},
	}
}

// resources are pairs of names and quantities.
func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// slice is one of rome's, as the controllers leave it.
func slice(name string, asked corev1.ResourceList, node string) *authv1beta1.ResourceSlice {
	s := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name, UID: "slice-uid", Annotations: map[string]string{authv1beta1.CreateVirtualNodeAnnotation: node},
			Labels: map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan", corev1beta1.RemoteClusterIDLabel: "milan"}},
		Spec: authv1beta1.ResourceSliceSpec{Class: authv1beta1.DefaultResourceSliceClass, Resources: asked,
			ConsumerClusterID: ptr.To(corev1beta1.ClusterID("rome")), ProviderClusterID: ptr.To(corev1beta1.ClusterID("milan"))},
	}
	grant(s, "")
	return s
}

// grant writes milan's answer.
func grant(s *authv1beta1.ResourceSlice, denial string) {
	status := authv1beta1.Accepted
	if denial != "" {
		status = authv1beta1.Denied
	}
	s.Status.Resources = resources("cpu", "4")
	if s.Spec.Class == authv1beta1.DefaultResourceSliceClass {
		s.Status.NodeSelector, _ = labels.ConvertSelectorToLabelsMap(s.Annotations[authv1beta1.NodeSelectorAnnotation])
	}
	s.Status.Conditions = []corev1beta1.Condition{
		{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted},
		{Type: authv1beta1.ResourcesCondition, Status: status, Reason: denial, Message: "not here"},
	}
}

// virtualNode is one that was made of a slice, if that is named.
func virtualNode(name, of string) *offloadingv1beta1.VirtualNode {
	node := &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name, UID: "node-uid", Labels: map[string]string{}},
		Spec:       offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan", ResourceQuota: corev1.ResourceQuotaSpec{Hard: resources("cpu", "4")}},
		Status:     offloadingv1beta1.VirtualNodeStatus{Summary: []corev1beta1.Condition{{Type: "Ready", Status: "True"}}},
	}
	if of != "" {
		node.Labels[authv1beta1.ResourceSliceNameLabel] = of
		node.OwnerReferences = []metav1.OwnerReference{{APIVersion: authv1beta1.GroupVersion.String(), Kind: "ResourceSlice", Name: of, UID: "slice-uid", Controller: ptr.To(true)}}
	}
	return node
}

func node(name, owner string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: owner}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// controllers do at rome what its controllers and milan do after a write.
func controllers(t *testing.T, denial string) func(context.Context, client.Client, client.Object) {
	return func(ctx context.Context, c client.Client, written client.Object) {
		must := func(err error) {
			if client.IgnoreAlreadyExists(err) != nil {
				t.Error(err)
			}
		}
		switch object := written.(type) {
		case *authv1beta1.ResourceSlice:
			grant(object, denial)
			must(c.Status().Update(ctx, object))
			if denial == "" && authv1beta1.IsSet(object.Annotations, authv1beta1.CreateVirtualNodeAnnotation) {
				must(c.Create(ctx, virtualNode(object.Name, object.Name)))
				must(c.Create(ctx, node(object.Name, "milan")))
			}
		case *offloadingv1beta1.VirtualNode:
			object.Status = virtualNode("", "").Status
			must(c.Status().Update(ctx, object))
			must(c.Create(ctx, node(object.Name, "milan")))
		}
	}
}

func TestCreate(t *testing.T) {
	asked := func(change func(*share.CreateOptions)) share.CreateOptions {
		o := share.CreateOptions{ProviderID: "milan", Name: "gpus", Class: "default", Resources: resources("cpu", "4")}
		if change != nil {
			change(&o)
		}
		return o
	}
	const ask, created = "rome: done: milan granted cpu 4", "create ResourceSlice liqo-tenant-milan/gpus (cluster rome)"
	all := []string{ask, "rome: done: Virtual node gpus runs", "rome: done: Node gpus is ready"}
	for sentence, test := range map[string]struct {
		objects []client.Object
		options share.CreateOptions
		said    []string
		writes  []string
	}{
		"a new one":                              {options: asked(nil), said: all, writes: []string{created}},
		"of nodes that the provider tells apart": {options: asked(func(o *share.CreateOptions) { o.Nodes = labels.Set{"pool": "arm"} }), said: all, writes: []string{created}},
		"of nodes that it does not": {options: asked(func(o *share.CreateOptions) { o.Nodes, o.Class = labels.Set{"pool": "arm"}, "theirs" }),
			said: append([]string{"rome: warned: milan granted cpu 4, and of all its nodes: who answers this class there knows no node selectors"}, all[1:]...), writes: []string{created}},
		"without a virtual node":      {options: asked(func(o *share.CreateOptions) { o.NoVirtualNode = true }), said: all[:1], writes: []string{created}},
		"more than there is":          {options: asked(func(o *share.CreateOptions) { o.Resources = resources("cpu", "8") }), said: append([]string{"rome: warned: milan granted cpu 4; less than asked for: cpu 4 of 8"}, all[1:]...), writes: []string{created}},
		"one that is there":           {objects: []client.Object{slice("gpus", resources("cpu", "4000m"), "true"), virtualNode("gpus", "gpus"), node("gpus", "milan")}, options: asked(nil), said: all},
		"one that has its node":       {objects: []client.Object{node("gpus", "milan"), virtualNode("gpus", "gpus")}, options: asked(nil), said: all, writes: []string{created}},
		"a real node, but none wants": {objects: []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}}}, options: asked(func(o *share.CreateOptions) { o.NoVirtualNode = true }), said: all[:1], writes: []string{created}},
	} {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(peered(), test.objects...), React: controllers(t, "")})
			said := &progress.Recorder{}
			test.options.Cluster, test.options.Observer, test.options.Timeout = rome.Cluster, said, 20*time.Second
			if err := share.Create(t.Context(), test.options); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.said, said.Lines()) + cmp.Diff(test.writes, rome.Writes()); diff != "" {
				t.Error(diff)
			}
			got := &authv1beta1.ResourceSlice{}
			if err := rome.Client.Get(t.Context(), client.ObjectKey{Namespace: tenant, Name: "gpus"}, got); err != nil {
				t.Fatal(err)
			}
			wanted := !test.options.NoVirtualNode
			if authv1beta1.IsSet(got.Annotations, authv1beta1.CreateVirtualNodeAnnotation) != wanted || got.Labels[corev1beta1.RemoteIDLabel] != "milan" || got.Labels[corev1beta1.ReplicationLabel] != "true" {
				t.Errorf("it is %+v", got.ObjectMeta)
			}
		})
	}
}

// What cannot be is refused in one sentence, and nothing is written.
func TestCreateRefuses(t *testing.T) {
	taken := slice("gpus", resources("cpu", "8"), "false")
	taken.Spec.Class = "gold"
	ofNodes := slice("gpus", resources("cpu", "4"), "true")
	ofNodes.Annotations[authv1beta1.NodeSelectorAnnotation] = "pool=arm"
	going := slice("gpus", resources("cpu", "4"), "true")
	going.DeletionTimestamp, going.Finalizers = ptr.To(metav1.Now()), []string{"liqo.io/test"}
	theirs := slice("gpus", resources("cpu", "4"), "true")
	theirs.Labels[corev1beta1.ReplicatedLabel] = "true"
	const anew = "choose another name, or delete this one with 'liqoctl delete resourceslice gpus --remote-cluster-id milan' and create it again"
	for sentence, test := range map[string]struct {
		objects  []client.Object
		provider string
		missing  string
		want     string
	}{
		"an unknown cluster":                {provider: "turin", want: "cluster rome has no peer turin, and nothing is left of one: give the ID of a peer: milan"},
		"a cluster that is misspelt":        {provider: "milano", want: "cluster rome has no peer milano, and nothing is left of one: did you mean milan?"},
		"the cluster itself":                {provider: "rome", want: "rome is this cluster itself: name the provider with --remote-cluster-id"},
		"a consumer that is no provider":    {provider: "oslo", objects: []client.Object{&corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "oslo"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "oslo"}}}, want: "oslo is no provider of rome"},
		"no right to create":                {missing: "create resourceslices.authentication.liqo.io in namespace liqo-tenant-milan", want: "you are not allowed to: create resourceslices"},
		"a slice that asks for other":       {objects: []client.Object{taken}, want: "it is there already, and asks for something else: cpu 8 of class gold, without a virtual node: " + anew},
		"a slice without a node":            {objects: []client.Object{slice("gpus", resources("cpu", "4"), "false")}, want: "asks for something else: cpu 4 of class default, without a virtual node"},
		"a slice of certain nodes":          {objects: []client.Object{ofNodes}, want: "asks for something else: cpu 4 of class default, with a virtual node, of nodes with pool=arm"},
		"a slice that is being deleted":     {objects: []client.Object{going}, want: "it is being deleted: wait until it is gone, and run the same command again"},
		"a consumer's slice of the name":    {objects: []client.Object{theirs}, want: "it is there already: milan asks this cluster with it: choose another name"},
		"a real node of the name":           {objects: []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}}}, want: "Node gpus (cluster rome) is a real node, and the virtual node would have that name: choose another name"},
		"another provider's node":           {objects: []client.Object{node("gpus", "turin")}, want: "Node gpus (cluster rome) is a virtual node of turin, and that of milan would have its name: choose another name"},
		"a virtual node that is not its":    {objects: []client.Object{virtualNode("gpus", "")}, want: "VirtualNode liqo-tenant-milan/gpus (cluster rome) is not made of that ResourceSlice"},
		"a virtual node of another slice's": {objects: []client.Object{virtualNode("gpus", "pool")}, want: "VirtualNode liqo-tenant-milan/gpus (cluster rome) is not made of that ResourceSlice"},
	} {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(peered(), test.objects...), React: controllers(t, ""), Missing: []string{test.missing}})
			provider := test.provider
			if provider == "" {
				provider = "milan"
			}
			err := share.Create(t.Context(), share.CreateOptions{Cluster: rome.Cluster, ProviderID: provider, Name: "gpus", Resources: resources("cpu", "4"), Timeout: 20 * time.Second})
			if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), test.want) || len(rome.Writes()) > 0 {
				t.Errorf("got %v, wrote %v", err, rome.Writes())
			}
		})
	}
}

// A denial says what to do, and how to ask for something else now that a slice of the name is there.
func TestCreateIsDenied(t *testing.T) {
	for reason, want := range map[string]string{
		authv1beta1.ReasonDefaultClassDisabled: "ask the provider's administrator for its class, and delete this one with 'liqoctl delete resourceslice gpus --remote-cluster-id milan' and create it again with --class",
		authv1beta1.ReasonTenantLimit:          "delete a ResourceSlice that is not needed any more, or ask the provider's administrator, and run the same command again",
		"Other":                                "ask the provider's administrator, and run the same command again",
	} {
		rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: peered(), React: controllers(t, reason)})
		err := share.Create(t.Context(), share.CreateOptions{Cluster: rome.Cluster, ProviderID: "milan", Name: "gpus", Timeout: 20 * time.Second})
		if got := "the provider denied ResourceSlice gpus: " + reason + ": not here: " + want; err == nil || failure.CodeOf(err) != failure.Failed || err.Error() != got {
			t.Errorf("got %v", err)
		}
	}
}
