package network

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/authenticate"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/networking/inputs"
)

// side is one of the two clusters.
type side struct {
	cluster *target.Cluster
	// id of the cluster, and that of the other one.
	id, peerID string
	// namespace is the tenant namespace of the other one.
	namespace string
}

// ofPeer selects what stands for the peer.
func (s side) ofPeer() []client.ListOption {
	return []client.ListOption{client.InNamespace(s.namespace), client.MatchingLabels{corev1beta1.RemoteClusterIDLabel: s.peerID}}
}

// find reads the object of its kind that counts for the peer; false if there is none, and then it has the name that it is to get.
func (s side) find(ctx context.Context, object client.Object) (bool, error) {
	kind, err := s.cluster.Client.GroupVersionKindFor(object)
	if err != nil {
		return false, fmt.Errorf("finding what stands for cluster %s: %w", s.peerID, err)
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := s.cluster.List(ctx, all, s.ofPeer()...); err != nil {
		return false, err
	}
	object.SetNamespace(s.namespace)
	object.SetName(s.peerID)
	if counts := inputs.OfPeer(all.Items, s.peerID); counts != nil {
		object.SetName(counts.Name)
	}
	return s.cluster.Get(ctx, object)
}

// ensure makes the object that counts for the peer as mutate wants it; one that is being deleted is waited for first.
func (s side) ensure(ctx context.Context, task progress.Task, object client.Object, mutate func() error) (target.Change, error) {
	err := await.Until(ctx, task, "what stood for cluster "+s.peerID+" earlier to be gone", func(ctx context.Context) (bool, string, error) {
		there, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return false, "", fmt.Errorf("%T is no object", object)
		}
		found, err := s.find(ctx, there)
		object.SetNamespace(there.GetNamespace())
		object.SetName(there.GetName())
		return !found || there.GetDeletionTimestamp().IsZero(), s.cluster.Describe(there) + " is being deleted", err
	})
	if err != nil {
		return "", err
	}
	return s.cluster.Ensure(ctx, object, func() error {
		labels := object.GetLabels()
		if labels[corev1beta1.RemoteClusterIDLabel] != s.peerID {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[corev1beta1.RemoteClusterIDLabel] = s.peerID
			object.SetLabels(labels)
		}
		return mutate()
	})
}

// namespaces makes both tenant namespaces.
func (r *run) namespaces(ctx context.Context) error {
	for _, s := range []side{r.local, r.remote} {
		err := progress.Run(ctx, r.observer, s.cluster.Name, "Preparing tenant namespace "+s.namespace,
			func(ctx context.Context, task progress.Task) (string, error) {
				change, err := authenticate.EnsureNamespace(ctx, task, s.cluster, s.peerID)
				r.note(change)
				return "Tenant namespace " + s.namespace + " " + string(change), err
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// unobserved is what is said of an object at which its controller has not looked since it was changed.
const unobserved = "the controller manager has not looked at it yet"

// looked tells whether a controller has looked at an object of this generation, by its condition Ready.
func looked(conditions []metav1.Condition, generation int64) bool {
	ready := meta.FindStatusCondition(conditions, corev1beta1.ConditionReady)
	return ready != nil && ready.ObservedGeneration >= generation
}

// said is what the condition Ready of an object says while the object is waited for.
func said(conditions []metav1.Condition, generation int64) string {
	if !looked(conditions, generation) {
		return unobserved
	}
	ready := meta.FindStatusCondition(conditions, corev1beta1.ConditionReady)
	if ready.Status == metav1.ConditionTrue {
		return "it is ready, and its status is not complete yet"
	}
	return strings.TrimSuffix(ready.Reason+": "+ready.Message, ": ")
}

// settled is how often the same refusal must be seen in a row before it is believed: controllers may still be working on it.
const settled = 10

// hopeless maps the reasons after which waiting is of no use to what the user can do, before the same command is run again.
var hopeless = map[string]string{
	networkingv1beta1.ReasonRangeRefused:     "give the other cluster ranges that a peer may have",
	networkingv1beta1.ReasonPoolExhausted:    "give this cluster more room with 'liqoctl install --set ipam.pools={RANGE,...}'",
	networkingv1beta1.ReasonTemplateInvalid:  "correct the template, or name another one by the --gw- flags",
	networkingv1beta1.ReasonSecretInvalid:    "correct the Secret, or delete it to have another one made",
	networkingv1beta1.ReasonGatewayNameTaken: "remove what has the name",
}

// WayOut is what mends an object of the network that is not ready for a reason; empty where that is not certain.
func WayOut(reason string) string {
	if reason == networkingv1beta1.ReasonKeyMissing {
		return "run 'liqoctl network connect' again"
	}
	return hopeless[reason]
}

// judge tells what an object is waited for, and ends the waiting if that is of no use.
type judge struct {
	object, reason string
	seen           int
}

// look judges the condition Ready of an object of this generation that is not as it is wanted.
func (j *judge) look(conditions []metav1.Condition, generation int64) (missing string, err error) {
	missing, reason := said(conditions, generation), ""
	if ready := meta.FindStatusCondition(conditions, corev1beta1.ConditionReady); missing != unobserved && ready.Status != metav1.ConditionTrue {
		reason = ready.Reason
	}
	if reason != j.reason {
		j.reason, j.seen = reason, 0
	}
	j.seen++
	if next, end := hopeless[reason]; end && j.seen >= settled {
		return "", failure.New(failure.Failed, next+", and run the same command again", "%s was refused: %s", j.object, missing)
	}
	return missing, nil
}

// until waits as await.Until does; next is the way out when the time is over.
func until(ctx context.Context, task progress.Task, what, next string, check await.Check) error {
	err := await.Until(ctx, task, what, check)
	if text, _ := nextOf(err); failure.CodeOf(err) == failure.Timeout {
		return failure.New(failure.Timeout, next, "%s", text)
	}
	return err
}

func nextOf(err error) (text, next string) {
	if err == nil {
		return "", ""
	}
	return failure.NextOf(err)
}

// initRights are what a user needs in a cluster for Init.
func initRights(cluster *target.Cluster, namespace string) []target.Right {
	rights := append(target.Rights("", "namespaces", "", "get", "create", "update"),
		target.Rights(ipamv1alpha1.GroupVersion.Group, "networks", cluster.LiqoNamespace, "list")...)
	rights = append(rights, target.Rights(corev1beta1.GroupVersion.Group, "foreignclusters", "", "list")...)
	return append(rights, target.Rights(networkingv1beta1.GroupVersion.Group, "configurations", namespace, "get", "list", "create", "update")...)
}

// connectRights are what a user needs in a cluster for Connect.
func connectRights(cluster *target.Cluster, namespace string) []target.Right {
	rights, group := initRights(cluster, namespace), networkingv1beta1.GroupVersion.Group
	for _, resource := range []string{"gatewayservers", "gatewayclients"} {
		rights = append(rights, target.Rights(group, resource, namespace, "get", "list", "create", "update")...)
	}
	rights = append(rights, target.Rights(group, "publickeies", namespace, "get", "list", "create", "update")...)
	rights = append(rights, target.Rights(group, "connections", namespace, "list")...)
	return append(rights, target.Rights("", "secrets", namespace, "get")...)
}
