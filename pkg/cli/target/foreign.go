package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
)

// ForeignCluster returns what the cluster knows of a peer; nil if it knows none of that ID.
func (c *Cluster) ForeignCluster(ctx context.Context, peerID string) (*corev1beta1.ForeignCluster, error) {
	list := &corev1beta1.ForeignClusterList{}
	if err := c.List(ctx, list); err != nil {
		return nil, err
	}
	index := slices.IndexFunc(list.Items, func(f corev1beta1.ForeignCluster) bool { return string(f.Spec.ClusterID) == peerID })
	if index < 0 {
		return nil, nil
	}
	return &list.Items[index], nil
}

// NoPeer is the error that no peer has an ID: it names those that there are, the likest first.
func (c *Cluster) NoPeer(ctx context.Context, id string) error {
	list := &corev1beta1.ForeignClusterList{}
	if err := c.List(ctx, list); err != nil {
		return err
	}
	var known []string
	for i := range list.Items {
		known = append(known, string(list.Items[i].Spec.ClusterID))
	}
	slices.Sort(known)
	next := "it has no peers"
	if likely := failure.Nearest(id, known); len(likely) > 0 {
		next = "did you mean " + strings.Join(likely, " or ") + "?"
	} else if len(known) > 0 {
		next = "give the ID of a peer: " + strings.Join(known[:min(len(known), 10)], ", ")
	}
	return failure.Unmet(next, "cluster %s has no peer %s, and nothing is left of one", c.Name, id)
}

// RequireAnswering refuses to take anything back from a provider that does not answer, or does not let this cluster work any more.
func (c *Cluster) RequireAnswering(ctx context.Context, peerID string) error {
	peer, err := c.ForeignCluster(ctx, peerID)
	if err != nil || peer.WhyLost() == "" {
		return err
	}
	return failure.Unmet("run the same command once that works again; if it never will: liqoctl unpeer --force "+peerID,
		"nothing can be taken back from %s (cluster %s): %s", peerID, c.Name, peer.WhyLost())
}

// MarkDead says of a peer that it will not come back, or takes that word back, and that of CutOff. It tells whether anything changed.
func (c *Cluster) MarkDead(ctx context.Context, peer *corev1beta1.ForeignCluster, dead bool) (bool, error) {
	if peer == nil || dead == peer.IsMarkedDead() && (dead || !peer.IsCutOff()) {
		return false, nil
	}
	changed := peer.DeepCopy()
	if dead {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, corev1beta1.PermanentlyUnreachableAnnotation, "true")
	} else {
		delete(changed.Annotations, corev1beta1.PermanentlyUnreachableAnnotation)
		delete(changed.Annotations, corev1beta1.CutOffAnnotation)
		delete(changed.Annotations, corev1beta1.CutOffByAnnotation)
	}
	return true, c.patchPeer(ctx, peer, changed)
}

// CutOff notes who takes a peer's reach into the cluster away, and when; mark says that the peer is not talked to any more, although it
// answers.
func (c *Cluster) CutOff(ctx context.Context, peer *corev1beta1.ForeignCluster, mark bool) error {
	if peer == nil || mark && peer.IsCutOff() {
		return nil
	}
	changed := peer.DeepCopy()
	if mark {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, corev1beta1.CutOffAnnotation, "true")
	}
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, corev1beta1.CutOffByAnnotation, c.user(ctx)+" at "+time.Now().UTC().Format(time.RFC3339))
	return c.patchPeer(ctx, peer, changed)
}

// user is who the API server takes us for; nobody's name is worth a refusal.
func (c *Cluster) user(ctx context.Context) string {
	review, err := c.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username == "" {
		return "an unknown user"
	}
	return review.Status.UserInfo.Username
}

// RequireNotCutOff refuses to connect with a peer whose reach was revoked.
func (c *Cluster) RequireNotCutOff(ctx context.Context, peerID string) error {
	peer, err := c.ForeignCluster(ctx, peerID)
	if err != nil {
		return err
	}
	if why, back, revoked := strings.Cut(peer.WhyCutOff(), "; "); revoked {
		return failure.Unmet(back, "%s is cut off from cluster %s: %s", peerID, c.Name, why)
	}
	return nil
}

func (c *Cluster) patchPeer(ctx context.Context, peer, changed *corev1beta1.ForeignCluster) error {
	if err := c.Client.Patch(ctx, changed, client.MergeFrom(peer)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing %s: %w", c.Describe(peer), err)
	}
	return nil
}
