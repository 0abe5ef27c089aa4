package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/diagnosis"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// state is something that an installation is not finished without.
type state struct {
	// title says that it is waited for, done that it is reached, and name what it is in errors.
	title, done, name string
	// why says what is missing; empty if nothing is.
	why func(context.Context) (string, error)
}

// wait returns when a state is reached.
func (s state) wait(ctx context.Context, cluster *target.Cluster, observer progress.Observer) error {
	return progress.Run(ctx, observer, cluster.Name, s.title, func(ctx context.Context, task progress.Task) (string, error) {
		return s.done, await.Until(ctx, task, s.name, func(ctx context.Context) (bool, string, error) {
			why, err := s.why(ctx)
			return why == "" && err == nil, why, err
		})
	})
}

// Wait returns when the installation answers: all its Deployments and DaemonSets are available, those of the
// virtual kubelets and of the gateways to peers too, its webhooks can be called, and the API server judges by our kinds.
func Wait(ctx context.Context, cluster *target.Cluster, observer progress.Observer) error {
	if observer == nil {
		observer = progress.Discard
	}
	of := func(why func(context.Context, *target.Cluster) (string, error)) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return why(ctx, cluster) }
	}
	pods := state{"Waiting for the pods", "All pods are ready", "the pods in namespace " + cluster.LiqoNamespace, of(whyPodsNotReady)}
	if err := pods.wait(ctx, cluster, observer); err != nil {
		return err
	}
	if err := waitRollout(ctx, cluster, observer); err != nil {
		return err
	}
	for _, s := range []state{
		{"Waiting for the webhooks", "The webhooks answer", "the webhooks", of(whyWebhooksNotReady)},
		{"Waiting for the API server to know Liqo's kinds", "The API server knows Liqo's kinds, which its policies decide by",
			"the API server to know the kinds that Liqo's policies decide by", of(whyKindsNotKnown)},
	} {
		if err := s.wait(ctx, cluster, observer); err != nil {
			return err
		}
	}
	return nil
}

// waitRollout returns when what the controller manager runs, if there is any of it, runs as the installation wants it: what is made for virtual
// nodes, and for peers.
func waitRollout(ctx context.Context, cluster *target.Cluster, observer progress.Observer) error {
	r := &rollout{cluster: cluster, missing: map[string]time.Time{}}
	for _, part := range []state{
		{"Waiting for the virtual kubelets", "The virtual kubelets run", "the virtual kubelets", r.why},
		{"Waiting for the gateways", "The gateways run", "the gateways", r.gateways},
	} {
		if why, err := part.why(ctx); err == nil && why == "" {
			continue
		}
		if err := part.wait(ctx, cluster, observer); err != nil {
			return err
		}
	}
	return nil
}

func whyPodsNotReady(ctx context.Context, cluster *target.Cluster) (string, error) {
	installation, err := cluster.Installed(ctx)
	if err != nil {
		return "", err
	}
	lacks, err := diagnosis.Installation(ctx, cluster, installation, true)
	var reasons []string
	for _, lack := range lacks {
		reasons = append(reasons, lack.String())
	}
	return strings.Join(reasons, "; "), err
}

// whyWebhooksNotReady looks whether the API server can verify our webhooks, and then has it call one.
func whyWebhooksNotReady(ctx context.Context, cluster *target.Cluster) (string, error) {
	ours := client.MatchingLabels{corev1beta1.WebhookLabel: "true"}
	validating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if err := cluster.List(ctx, validating, ours); err != nil {
		return "", err
	}
	for i := range validating.Items {
		for _, webhook := range validating.Items[i].Webhooks {
			if len(webhook.ClientConfig.CABundle) == 0 {
				return "the certificate of webhook " + webhook.Name + " is not in place yet", nil
			}
		}
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	if err := cluster.List(ctx, mutating, ours); err != nil {
		return "", err
	}
	for i := range mutating.Items {
		for _, webhook := range mutating.Items[i].Webhooks {
			if len(webhook.ClientConfig.CABundle) == 0 {
				return "the certificate of webhook " + webhook.Name + " is not in place yet", nil
			}
		}
	}
	return probe(ctx, cluster), nil
}

// probe has the API server call a webhook with an object that is never stored. Any verdict is an answer. The webhook is one that changes
// objects: it is called before any policy, which could give the verdict in its place.
func probe(ctx context.Context, cluster *target.Cluster) string {
	object := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	err := cluster.Client.Create(ctx, object, client.DryRunAll)
	if err == nil || target.Absent(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) ||
		apierrors.IsAlreadyExists(err) || apierrors.IsBadRequest(err) {
		return ""
	}
	return "a webhook does not answer: " + err.Error()
}

// judge is the policy that whyKindsNotKnown asks by, and byKinds is in each verdict that blames the kind of its parameters: API servers say that it
// is not found, not known, or not yet synced.
const judge, byKinds = "liqo-controller-manager-offloaded", "paramKind"

// whyKindsNotKnown has the API server judge an object that is never stored by a policy whose parameters are of a kind of ours. An API server looks
// for new kinds twice a minute; until it has found ours, it refuses what such policies match, the pods of offloaded namespaces among it. The object
// is a RoleBinding to nobody. Where there is no NamespaceOffloading, as in the namespace of Liqo, the policy refuses it to everybody for that, which
// is the verdict of an API server that knows the kind. All other answers say nothing about kinds, and end the waiting as well: the policy is not
// installed, or the user may not make RoleBindings. Of several API servers the one that answers is asked.
func whyKindsNotKnown(ctx context.Context, cluster *target.Cluster) (string, error) {
	object := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.LiqoNamespace, Name: "probe",
			Labels: map[string]string{offloadingv1beta1.ComponentLabel: offloadingv1beta1.ReflectionComponent}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: offloadingv1beta1.LocalClusterRole},
	}
	err := cluster.Client.Create(ctx, object, client.DryRunAll)
	var answer apierrors.APIStatus
	switch {
	case err == nil, target.Absent(err):
		return "", nil
	case !errors.As(err, &answer):
		return "", fmt.Errorf("trying RoleBinding %s/%s: %w", object.Namespace, object.Name, err)
	case strings.Contains(err.Error(), judge) && strings.Contains(err.Error(), byKinds):
		return "until then it refuses pods of offloaded namespaces: " + err.Error(), nil
	}
	return "", nil
}
