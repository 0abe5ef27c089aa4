package move

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/reflection"
)

// load finds the claim.
func (j *job) load(ctx context.Context, _ progress.Task) error {
	installation, err := j.Cluster.RequireInstalled(ctx)
	if err != nil {
		return err
	}
	if j.Image == "" {
		j.Image = installation.Config.Storage.MoverImage
	}
	if j.Image == "" {
		j.Image = DefaultImage + ":" + installation.Version
	}
	j.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Claim}}
	found, err := j.Cluster.Get(ctx, j.claim)
	switch {
	case err != nil:
		return err
	case !found:
		return failure.Unmet("list them with 'kubectl get persistentvolumeclaims'", "there is no PersistentVolumeClaim %s/%s", j.Namespace, j.Claim)
	case j.claim.Status.Phase != corev1.ClaimBound || !j.claim.DeletionTimestamp.IsZero():
		return failure.Unmet("wait until it is bound", "PersistentVolumeClaim %s/%s has no volume", j.Namespace, j.Claim)
	}
	j.uid = j.claim.UID
	return nil
}

// check refuses what cannot work before anything is made.
func (j *job) check(ctx context.Context, task progress.Task) error {
	j.volume = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: j.claim.Spec.VolumeName}}
	if found, err := j.Cluster.Get(ctx, j.volume); err != nil {
		return err
	} else if !found || !reflection.OwnVolume(j.volume) {
		return failure.Unmet("only volumes of a class of provisioner "+offloadingv1beta1.StorageProvisioner+" can be moved",
			"PersistentVolumeClaim %s/%s is of another class", j.Namespace, j.Claim)
	}
	if mode := j.volume.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return failure.Unmet("copy it with a program that knows what is in it", "the volume is a block device without a file system")
	}
	j.report.From = j.volume.Name
	if err := j.idle(ctx); err != nil {
		return err
	}
	return j.checkNode(ctx)
}

// checkNode refuses a target that is the present place, or cannot run the helper.
func (j *job) checkNode(ctx context.Context) error {
	j.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: j.TargetNode}}
	if found, err := j.Cluster.Get(ctx, j.node); err != nil {
		return err
	} else if !found {
		return failure.Unmet("list them with 'kubectl get nodes'", "there is no Node %s", j.TargetNode)
	}
	if affinity := j.volume.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		selector, err := nodeaffinity.NewNodeSelector(affinity.Required)
		if err == nil && selector.Match(j.node) {
			return failure.Unmet("name another node with --target-node", "the volume can be used on Node %s already", j.TargetNode)
		}
	}
	source, remote := reflection.HandleOf(j.volume)
	if remote {
		if err := j.checkOffloaded(ctx, source.Cluster); err != nil {
			return err
		}
	}
	destination := clusterOf(j.node)
	if destination != "" {
		if err := j.checkOffloaded(ctx, destination); err != nil {
			return err
		}
	}
	if remote && destination != "" {
		return nil
	}
	return j.checkPhysical(ctx)
}

// checkPhysical refuses a namespace whose pods may not run on physical nodes, where a helper is needed.
func (j *job) checkPhysical(ctx context.Context) error {
	nso := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
	found, err := j.Cluster.Get(ctx, nso)
	if err == nil && found && nso.Spec.PodOffloadingStrategy == offloadingv1beta1.RemotePodOffloadingStrategyType {
		return failure.Unmet("offload the namespace with --pod-offloading-strategy LocalAndRemote",
			"pods of namespace %s may not run on physical nodes, so nothing there can read or write the volume", j.Namespace)
	}
	return err
}

// clusterOf is the cluster that a virtual node stands for; empty for physical nodes.
func clusterOf(node *corev1.Node) string {
	if node.Labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
		return ""
	}
	return node.Labels[corev1beta1.RemoteClusterIDLabel]
}

func (j *job) checkOffloaded(ctx context.Context, cluster string) error {
	m := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: corev1beta1.TenantNamespacePrefix + cluster, Name: cluster}}
	found, err := j.Cluster.Get(ctx, m)
	if err != nil {
		return err
	}
	if found && placement.EffectiveMapping(m.Spec.DesiredMapping, m.Status.CurrentMapping)[j.Namespace] != "" {
		return nil
	}
	return failure.Unmet("liqoctl offload namespace "+j.Namespace, "namespace %s is not offloaded to cluster %s", j.Namespace, cluster)
}

// idle refuses while a pod uses the claim, or keeps it from being deleted although it has ended.
func (j *job) idle(ctx context.Context) error {
	active, ended, err := j.users(ctx)
	switch {
	case err != nil:
		return err
	case len(active) > 0:
		return failure.Unmet("stop them, for example with 'kubectl scale --replicas 0', and run the same command again", "pods use the volume: %s", firsts(active))
	case len(ended) > 0:
		return failure.Unmet("delete them, and run the same command again", "pods that have ended still hold the claim: %s", firsts(ended))
	}
	return nil
}

// users names the pods that use the claim, but for the helpers, and those on a node that have ended: Kubernetes keeps a claim
// for these, too.
func (j *job) users(ctx context.Context) (active, ended []string, err error) {
	pods := &corev1.PodList{}
	if err := j.Cluster.List(ctx, pods, client.InNamespace(j.Namespace)); err != nil {
		return nil, nil, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case pod.Labels[offloadingv1beta1.MoveLabel] == string(j.uid) || !uses(pod, j.Claim):
		case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
			active = append(active, pod.Name)
		case pod.Spec.NodeName != "":
			ended = append(ended, pod.Name)
		}
	}
	return active, ended, nil
}

// uses tells whether a pod uses a claim, by its name or as the claim of a generic ephemeral volume.
func uses(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(reflection.ClaimsOf(pod), func(c reflection.PodClaim) bool { return c.Name == claim })
}

func firsts(names []string) string { return strings.Join(names[:min(len(names), 5)], ", ") }
