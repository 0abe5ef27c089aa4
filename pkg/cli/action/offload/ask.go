package offload

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/placement"
)

// ask says what offloading the namespaces another way takes back from the clusters that are not selected any more, and asks whether
// to go on. Nothing was touched before.
func ask(ctx context.Context, o Options) error {
	var losses []string
	for _, namespace := range o.Namespaces {
		lost, err := lost(ctx, o, namespace)
		if err != nil {
			return err
		}
		losses = append(losses, lost...)
	}
	if len(losses) == 0 || o.Confirm == nil {
		return nil
	}
	return o.Confirm(ctx, strings.Join(losses, " "))
}

// lost says, a sentence for each cluster, what goes if a namespace is offloaded as the options say.
func lost(ctx context.Context, o Options, namespace string) ([]string, error) {
	present := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
	found, err := o.Cluster.Get(ctx, present)
	if err != nil || !found || equality.Semantic.DeepEqual(present.Spec.ClusterSelector, o.Spec.ClusterSelector) {
		return nil, err
	}
	if err := whyNotChangeable(present, o.Spec); err != nil {
		return nil, fmt.Errorf("applying %s: %w", o.Cluster.Describe(present), err)
	}
	rights := target.Rights(offloadingv1beta1.GroupVersion.Group, "virtualnodes", "", "list")
	if err := o.Cluster.RequireRights(ctx, append(rights, offloaded.Rights("", namespace)...)); err != nil {
		return nil, err
	}
	leaving, err := leavingClusters(ctx, o, namespace)
	if err != nil {
		return nil, err
	}
	var sentences []string
	for _, cluster := range leaving {
		holdings, err := offloaded.At(ctx, o.Cluster, cluster, namespace)
		if err != nil {
			return nil, err
		}
		if claims := holdings.Claims(); len(claims) > 0 {
			return nil, failure.Unmet("move them with 'liqoctl move volume' or delete the claims, or select that cluster too",
				"namespace %s would be taken back from %s, where it has the data of %s", namespace, cluster, offloaded.Counted("volume", claims))
		}
		sentence := fmt.Sprintf("Namespace %s is taken back from %s: %s is deleted there with everything in it", namespace, cluster, holdings.Namespaces[namespace])
		if len(holdings.Pods) > 0 {
			sentence += ", and with it " + offloaded.Counted("pod", holdings.Pods)
		}
		sentences = append(sentences, sentence+".")
	}
	return sentences, nil
}

// leavingClusters are those that have a twin of the namespace, and of whose virtual nodes none is selected any more.
func leavingClusters(ctx context.Context, o Options, namespace string) ([]string, error) {
	nodes, virtual, sent := &corev1.NodeList{}, &offloadingv1beta1.VirtualNodeList{}, &offloadingv1beta1.NamespaceMapList{}
	if err := o.Cluster.List(ctx, nodes, client.MatchingLabels{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}); err != nil {
		return nil, err
	}
	if err := o.Cluster.List(ctx, virtual); err != nil {
		return nil, err
	}
	if err := o.Cluster.List(ctx, sent, client.MatchingLabels{corev1beta1.ReplicationLabel: "true"}); err != nil {
		return nil, err
	}
	live := map[string]map[string]string{}
	for i := range nodes.Items {
		live[nodes.Items[i].Name] = nodes.Items[i].Labels
	}
	var candidates []placement.Candidate
	for i := range virtual.Items {
		vn := &virtual.Items[i]
		candidates = append(candidates, placement.Candidate{Cluster: vn.Spec.ClusterID, Node: vn.Name, Labels: placement.NodeLabels(vn, live[vn.Name])})
	}
	selected, err := placement.SelectClusters(o.Spec.ClusterSelector, candidates)
	if err != nil {
		return nil, failure.Misuse("write it as kubectl does, for example --selector region=europe,tier!=test", "%w", err)
	}
	var leaving []string
	for i := range sent.Items {
		cluster := sent.Items[i].Labels[corev1beta1.RemoteIDLabel]
		if _, wanted := sent.Items[i].Spec.DesiredMapping[namespace]; wanted && !selected[corev1beta1.ClusterID(cluster)] {
			leaving = append(leaving, cluster)
		}
	}
	return leaving, nil
}
