package namespaceoffloading

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/placement"
)

const (
	// poll is how long to wait for a provider's answer; its arrival usually comes first.
	poll = 10 * time.Second
	// bindingPrefix and a provider's ID make the name of the RoleBinding of its virtual kubelets.
	bindingPrefix = "liqo-virtual-kubelet-"
	// tokensPrefix and a provider's ID make the name of the RoleBinding by which virtual kubelets that are no nodes get tokens
	// for their pods.
	tokensPrefix = "liqo-virtual-tokens:"
)

// scope is what the phases of one pass learn.
type scope struct {
	// nso as it is in the API server, changed by the phases.
	nso *offloadingv1beta1.NamespaceOffloading
	// before is the object as it was read.
	before *offloadingv1beta1.NamespaceOffloading
	// nodes are the VirtualNodes by provider.
	nodes map[corev1beta1.ClusterID][]offloadingv1beta1.VirtualNode
	// candidates are the same nodes with their labels, without those that leave.
	candidates []placement.Candidate
	// leaving are the nodes that are being drained, with their labels.
	leaving []placement.Candidate
	// maps are the NamespaceMaps by provider.
	maps map[corev1beta1.ClusterID]*offloadingv1beta1.NamespaceMap
	// labels of the namespace.
	labels map[string]string
	// refused says why the namespace must not be offloaded at all: then no cluster is selected, and what was given is taken back; set by
	// decide.
	refused error
	// twin is the wanted name of the twins; set by decide.
	twin string
	// selected says for each provider whether it is selected; set by decide.
	selected map[corev1beta1.ClusterID]bool
	// staying are the clusters that keep their twin until the last node that was selected has been drained; set by decide.
	staying map[corev1beta1.ClusterID]bool
	// kept are the clusters that keep their twin, because volumes there hold data; set by withdraw.
	kept map[corev1beta1.ClusterID]bool
	// past says that the cache was found to show the past; set by confirm.
	past bool
	// now is what the API server itself shows of the same; set by confirm.
	now *scope
}

// gather reads the clusters that the namespace can be extended to.
func gather(ctx context.Context, reader client.Reader, nso *offloadingv1beta1.NamespaceOffloading) (*scope, error) {
	s := &scope{nso: nso, before: nso.DeepCopy(), nodes: map[corev1beta1.ClusterID][]offloadingv1beta1.VirtualNode{},
		maps: map[corev1beta1.ClusterID]*offloadingv1beta1.NamespaceMap{}, kept: map[corev1beta1.ClusterID]bool{}}
	var ns corev1.Namespace
	if err := reader.Get(ctx, client.ObjectKey{Name: nso.Namespace}, &ns); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Namespace %s: %w", nso.Namespace, err)
	}
	s.labels = ns.Labels
	var vns offloadingv1beta1.VirtualNodeList
	if err := reader.List(ctx, &vns); err != nil {
		return nil, fmt.Errorf("listing VirtualNodes: %w", err)
	}
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes, client.MatchingLabels{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}); err != nil {
		return nil, fmt.Errorf("listing virtual Nodes: %w", err)
	}
	live := map[string]map[string]string{}
	for i := range nodes.Items {
		live[nodes.Items[i].Name] = nodes.Items[i].Labels
	}
	for i := range vns.Items {
		vn := vns.Items[i]
		c := placement.Candidate{Cluster: vn.Spec.ClusterID, Node: vn.Name, Labels: placement.NodeLabels(&vn, live[vn.Name])}
		s.nodes[vn.Spec.ClusterID] = append(s.nodes[vn.Spec.ClusterID], vn)
		if !vn.DeletionTimestamp.IsZero() {
			s.leaving = append(s.leaving, c)
			continue
		}
		s.candidates = append(s.candidates, c)
	}
	var list offloadingv1beta1.NamespaceMapList
	if err := reader.List(ctx, &list, client.MatchingLabels{corev1beta1.ReplicationLabel: "true"}); err != nil {
		return nil, fmt.Errorf("listing NamespaceMaps: %w", err)
	}
	for i := range list.Items {
		nm := &list.Items[i]
		if id := nm.Labels[corev1beta1.RemoteIDLabel]; id != "" && !placement.IsPeersMap(nm) && nm.Namespace == corev1beta1.TenantNamespacePrefix+id {
			s.maps[corev1beta1.ClusterID(id)] = nm
		}
	}
	return s, nil
}

// decide finds the twins' name and the selected clusters.
func (r *reconciler) decide(_ context.Context, s *scope) error {
	spec := &s.nso.Spec
	if why := r.Home.WhyNeverOffloaded(s.nso.Namespace, s.labels); why != "" {
		s.refused = reconcile.Terminate(offloadingv1beta1.ReasonNamespaceNeverOffloaded, fmt.Errorf("%s; delete this NamespaceOffloading", why))
		s.selected, s.staying = map[corev1beta1.ClusterID]bool{}, map[corev1beta1.ClusterID]bool{}
		return nil
	}
	var err error
	s.twin, err = placement.RemoteNamespaceName(spec.NamespaceMappingStrategy, s.nso.Namespace, r.ClusterID, spec.RemoteNamespaceName)
	if err != nil {
		return reconcile.Terminate(offloadingv1beta1.ReasonNamespaceNotAllowed, err)
	}
	selected, err := placement.SelectClusters(spec.ClusterSelector, s.candidates)
	if err != nil {
		return reconcile.Terminate(offloadingv1beta1.ReasonInvalidClusterSelector, err)
	}
	staying, err := placement.SelectClusters(spec.ClusterSelector, s.leaving)
	if err != nil {
		return reconcile.Terminate(offloadingv1beta1.ReasonInvalidClusterSelector, err)
	}
	s.selected, s.staying = selected, staying
	return nil
}

// stays tells whether a cluster has a twin only until its nodes have been drained.
func (s *scope) stays(cluster corev1beta1.ClusterID) bool {
	return s.staying[cluster] && !s.selected[cluster] && s.wanted(cluster)
}

// wanted tells whether a cluster has been asked for a twin.
func (s *scope) wanted(cluster corev1beta1.ClusterID) bool {
	nm := s.maps[cluster]
	if nm == nil {
		return false
	}
	_, wanted := nm.Spec.DesiredMapping[s.nso.Namespace]
	return wanted
}

// mark labels the namespace for the pod webhook, or takes that label away, and for the tokens of its pods.
func (r *reconciler) mark(ctx context.Context, s *scope) error {
	elsewhere := s.nso.Spec.PodOffloadingStrategy != offloadingv1beta1.LocalPodOffloadingStrategyType
	labels := map[string]bool{offloadingv1beta1.SchedulingLabel: s.refused == nil && elsewhere}
	if s.refused == nil {
		labels[offloadingv1beta1.OffloadedLabel] = true
	}
	if labels[offloadingv1beta1.SchedulingLabel] {
		large, err := r.waiting.large(ctx, r.Live, s.nso)
		if err != nil {
			return err
		}
		if large {
			labels[offloadingv1beta1.LargePodsLabel] = true
		}
	}
	return r.label(ctx, s.nso.Namespace, labels)
}

// label puts labels on a namespace, or takes them away.
func (r *reconciler) label(ctx context.Context, name string, wanted map[string]bool) error {
	var ns corev1.Namespace
	if err := r.Get(ctx, client.ObjectKey{Name: name}, &ns); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	changed := ns.DeepCopy()
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	for label, on := range wanted {
		if delete(changed.Labels, label); on {
			changed.Labels[label] = "true"
		}
	}
	if maps.Equal(changed.Labels, ns.Labels) {
		return nil
	}
	if err := r.Patch(ctx, changed, client.MergeFrom(&ns)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling Namespace %s: %w", name, err)
	}
	return nil
}

// extend asks the selected clusters for their twin and gives their virtual kubelets their rights here.
func (r *reconciler) extend(ctx context.Context, s *scope) error {
	var namespace corev1.Namespace
	if err := r.Get(ctx, client.ObjectKey{Name: s.nso.Namespace}, &namespace); err != nil {
		return fmt.Errorf("reading Namespace %s: %w", s.nso.Namespace, err)
	}
	uid := string(namespace.UID)
	var pending error
	for _, cluster := range slices.Sorted(maps.Keys(s.nodes)) {
		if !s.selected[cluster] && !s.stays(cluster) {
			continue
		}
		if err := r.bind(ctx, s, cluster); err != nil {
			return err
		}
		if !s.selected[cluster] {
			continue
		}
		nm := s.maps[cluster]
		if nm == nil || !nm.DeletionTimestamp.IsZero() {
			pending = reconcile.Wait(offloadingv1beta1.ReasonTwinPending, fmt.Sprintf("waiting for the NamespaceMap of cluster %s", cluster), poll)
			continue
		}
		if nm.Spec.DesiredMapping[s.nso.Namespace] == s.twin && nm.Spec.OriginUIDs[s.nso.Namespace] == uid {
			continue
		}
		if err := r.want(ctx, nm, s.nso.Namespace, &s.twin, &uid); err != nil {
			return err
		}
	}
	return pending
}

// withdraw takes the namespace away from the clusters that are not selected any more, unless volumes there hold its data. Of a cluster
// whose nodes are being drained it is not taken away before they are: its pods would go with it, whatever protects them.
func (r *reconciler) withdraw(ctx context.Context, s *scope) error {
	var held error
	for _, cluster := range slices.Sorted(maps.Keys(s.maps)) {
		if s.selected[cluster] || s.staying[cluster] || !s.wanted(cluster) {
			continue
		}
		why, err := r.held(ctx, s, cluster)
		if err != nil {
			return err
		}
		if why != nil {
			s.kept[cluster], held = true, why
			continue
		}
		if err := r.confirm(ctx, s, cluster); err != nil {
			return err
		}
		if err := r.want(ctx, s.maps[cluster], s.nso.Namespace, nil, nil); err != nil {
			return err
		}
	}
	if err := r.unbind(ctx, s); err != nil {
		return err
	}
	return held
}

// want sets, or with nil removes, one entry of a NamespaceMap. A twin about which the provider has not answered yet is removed with a
// confirmation: else it would be taken for one that an old backup does not know.
func (r *reconciler) want(ctx context.Context, nm *offloadingv1beta1.NamespaceMap, namespace string, twin, uid *string) error {
	changes := map[string]any{"spec": map[string]any{
		"desiredMapping": map[string]*string{namespace: twin}, "originUIDs": map[string]*string{namespace: uid}}}
	if _, answered := nm.Status.CurrentMapping[namespace]; twin == nil && !answered {
		confirmed := strings.Trim(nm.Annotations[offloadingv1beta1.ConfirmedRemovalsAnnotation]+","+namespace, ",")
		changes["metadata"] = map[string]any{"annotations": map[string]string{offloadingv1beta1.ConfirmedRemovalsAnnotation: confirmed}}
	}
	patch, err := json.Marshal(changes)
	if err != nil {
		return fmt.Errorf("encoding the patch of NamespaceMap %s/%s: %w", nm.Namespace, nm.Name, err)
	}
	if err := r.Patch(ctx, nm, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing NamespaceMap %s/%s: %w", nm.Namespace, nm.Name, err)
	}
	return nil
}

// bind gives the virtual kubelets of a provider their rights in the namespace.
func (r *reconciler) bind(ctx context.Context, s *scope, cluster corev1beta1.ClusterID) error {
	var subjects []rbacv1.Subject
	for i := range s.nodes[cluster] {
		vn := &s.nodes[cluster][i]
		subjects = append(subjects, binding.ServiceAccount(vn.Namespace, vn.Name))
	}
	slices.SortFunc(subjects, func(a, b rbacv1.Subject) int { return strings.Compare(a.Name, b.Name) })
	want := binding.New(s.nso.Namespace, bindingPrefix+string(cluster), offloadingv1beta1.LocalClusterRole, subjects...)
	want.Labels[corev1beta1.RemoteClusterIDLabel] = string(cluster)
	want.Labels[offloadingv1beta1.ComponentLabel] = offloadingv1beta1.ReflectionComponent
	tokens := binding.New(s.nso.Namespace, tokensPrefix+string(cluster), offloadingv1beta1.VirtualKubeletTokensClusterRole, subjects...)
	tokens.Labels = want.Labels
	if r.NodeIdentity == v1alpha1.NodeIdentityServiceAccount {
		return binding.Keeper(r.Client).All(ctx, want, tokens)
	}
	if err := binding.Keeper(r.Client).All(ctx, want); err != nil {
		return err
	}
	return binding.Keeper(r.Client).Remove(ctx, tokens)
}

// unbind removes the rights of virtual kubelets whose provider is not selected any more.
func (r *reconciler) unbind(ctx context.Context, s *scope) error {
	var list rbacv1.RoleBindingList
	if err := r.List(ctx, &list, client.InNamespace(s.nso.Namespace), client.MatchingLabels{corev1beta1.ManagedLabel: "true"}); err != nil {
		return fmt.Errorf("listing RoleBindings in %s: %w", s.nso.Namespace, err)
	}
	for i := range list.Items {
		rb := &list.Items[i]
		cluster := rb.Labels[corev1beta1.RemoteClusterIDLabel]
		id := corev1beta1.ClusterID(cluster)
		if cluster == "" || !ours(rb.Name, cluster) || s.selected[id] || s.staying[id] || s.kept[id] {
			continue
		}
		if err := r.confirm(ctx, s, id); err != nil {
			return err
		}
		if err := binding.Keeper(r.Client).Remove(ctx, rb); err != nil {
			return err
		}
	}
	return nil
}

// ours tells whether a RoleBinding of that name is one that bind makes for the provider.
func ours(name, cluster string) bool {
	return name == bindingPrefix+cluster || name == tokensPrefix+cluster
}

// finish undoes the offloading and lets the object go once no provider has a twin any more.
func (r *reconciler) finish(ctx context.Context, s *scope) error {
	if !controllerutil.ContainsFinalizer(s.nso, offloadingv1beta1.NamespaceOffloadingFinalizer) {
		return nil
	}
	if _, err := r.present(ctx, s); err != nil {
		return err
	}
	if err := r.label(ctx, s.nso.Namespace, map[string]bool{offloadingv1beta1.SchedulingLabel: false}); err != nil {
		return err
	}
	s.selected, s.staying = nil, nil
	if err := r.withdraw(ctx, s); err != nil {
		if len(s.kept) > 0 {
			if reported := r.report(ctx, s, err); reported != nil {
				return reported
			}
		}
		return err
	}
	waiting, err := r.remaining(ctx, s)
	if err != nil {
		return err
	}
	if err := r.report(ctx, s, waiting); err != nil {
		return err
	}
	if waiting != nil {
		return waiting
	}
	if err := r.confirmGone(ctx, s); err != nil {
		return err
	}
	if err := r.label(ctx, s.nso.Namespace, map[string]bool{offloadingv1beta1.OffloadedLabel: false, offloadingv1beta1.LargePodsLabel: false}); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(s.nso, offloadingv1beta1.NamespaceOffloadingFinalizer)
	return r.patch(ctx, s)
}

// remaining returns what is waited for if a provider still has a twin. Dead providers are not waited for.
func (r *reconciler) remaining(ctx context.Context, s *scope) (waiting, err error) {
	for _, cluster := range slices.Sorted(maps.Keys(s.maps)) {
		answer, there := s.maps[cluster].Status.CurrentMapping[s.nso.Namespace]
		if !there {
			continue
		}
		dead, err := r.dead(ctx, cluster)
		if err != nil {
			return nil, err
		}
		if dead {
			continue
		}
		return reconcile.Wait(offloadingv1beta1.ReasonTwinTerminating, terminating(cluster, answer), poll), nil
	}
	return nil, nil
}

// terminating says that a provider has not removed a twin yet, and why if it says so.
func terminating(cluster corev1beta1.ClusterID, answer offloadingv1beta1.RemoteNamespaceStatus) string {
	why := bounded(answer.Message)
	if why != "" {
		why = " (" + why + ")"
	}
	return fmt.Sprintf("waiting for cluster %s to remove namespace %q%s; if that cluster will not come back, use liqoctl unpeer --force",
		cluster, answer.RemoteNamespace, why)
}
