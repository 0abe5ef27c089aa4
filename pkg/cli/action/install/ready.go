package install

import (
	"context"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/diagnosis"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// Wait returns when the installation answers: all its Deployments and DaemonSets are available, those of the
// virtual kubelets and of the gateways to peers too, and its webhooks can be called.
func Wait(ctx context.Context, cluster *target.Cluster, observer progress.Observer) error {
	if observer == nil {
		observer = progress.Discard
	}
	err := progress.Run(ctx, observer, cluster.Name, "Waiting for the pods", func(ctx context.Context, task progress.Task) (string, error) {
		return "All pods are ready", await.Until(ctx, task, "the pods in namespace "+cluster.LiqoNamespace, func(ctx context.Context) (bool, string, error) {
			why, err := whyPodsNotReady(ctx, cluster)
			return why == "" && err == nil, why, err
		})
	})
	if err != nil {
		return err
	}
	if err := waitRollout(ctx, cluster, observer); err != nil {
		return err
	}
	return progress.Run(ctx, observer, cluster.Name, "Waiting for the webhooks", func(ctx context.Context, task progress.Task) (string, error) {
		return "The webhooks answer", await.Until(ctx, task, "the webhooks", func(ctx context.Context) (bool, string, error) {
			why, err := whyWebhooksNotReady(ctx, cluster)
			return why == "" && err == nil, why, err
		})
	})
}

// waitRollout returns when what the controller manager runs, if there is any of it, runs as the installation wants it: what is made for virtual
// nodes, and for peers.
func waitRollout(ctx context.Context, cluster *target.Cluster, observer progress.Observer) error {
	r := &rollout{cluster: cluster, missing: map[string]time.Time{}}
	for _, part := range []struct {
		name, done string
		why        func(context.Context) (string, error)
	}{{"the virtual kubelets", "The virtual kubelets run", r.why}, {"the gateways", "The gateways run", r.gateways}} {
		if why, err := part.why(ctx); err == nil && why == "" {
			continue
		}
		err := progress.Run(ctx, observer, cluster.Name, "Waiting for "+part.name, func(ctx context.Context, task progress.Task) (string, error) {
			return part.done, await.Until(ctx, task, part.name, func(ctx context.Context) (bool, string, error) {
				why, err := part.why(ctx)
				return why == "" && err == nil, why, err
			})
		})
		if err != nil {
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
	if err == nil || target.Absent(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsAlreadyExists(err) || apierrors.IsBadRequest(err) {
		return ""
	}
	return "a webhook does not answer: " + err.Error()
}
