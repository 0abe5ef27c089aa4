package offload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/placement"
)

const (
	// DefaultTimeout of Namespace, for each namespace.
	DefaultTimeout = 20 * time.Second
	// failures is how often the same failure must be seen in a row before it is believed.
	failures = 4
)

// Options of Namespace.
type Options struct {
	// Cluster that the namespaces are in.
	Cluster *target.Cluster
	// Namespaces to offload.
	Namespaces []string
	// Spec of the NamespaceOffloadings.
	Spec offloadingv1beta1.NamespaceOffloadingSpec
	// Evict the pods that run where the new spec does not let them start any more. Without it they stay, and the observer is told of them.
	Evict bool
	// Timeout for each namespace, and for its evictions; 0 means DefaultTimeout.
	Timeout time.Duration
	// Confirm asks whether to go on, before anything is touched, if namespaces are taken back from clusters that they were offloaded
	// to; the question says what goes. An error ends the command. nil means that nobody is asked.
	Confirm func(ctx context.Context, question string) error
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// Result is what became of one namespace.
type Result struct {
	// Namespace in this cluster, and the name of its twins.
	Namespace       string `json:"namespace"`
	RemoteNamespace string `json:"remoteNamespace,omitempty"`
	// Phase of the offloading.
	Phase offloadingv1beta1.OffloadingPhaseType `json:"phase,omitempty"`
	// Clusters that the namespace was extended to.
	Clusters []string `json:"clusters,omitempty"`
}

// Render returns the object that offloads a namespace, as a manifest: what only the cluster writes is left out.
func Render(namespace string, spec offloadingv1beta1.NamespaceOffloadingSpec, stamp target.Stamp) (map[string]any, error) {
	return target.Manifest(&offloadingv1beta1.NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName, Labels: stamp.Labels, Annotations: stamp.Annotations,
		},
		Spec: spec,
	})
}

// WhyNever refuses a namespace that can never be offloaded, as far as its name and labels show it.
func WhyNever(home placement.HomeNamespaces, namespace *corev1.Namespace) error {
	if why := home.WhyNeverOffloaded(namespace.Name, namespace.Labels); why != "" {
		return failure.Unmet("offload the namespaces of your applications instead", "%s", why)
	}
	return nil
}

// Namespace offloads namespaces. The results cover those that succeeded; the errors of the others are joined.
func Namespace(ctx context.Context, o Options) ([]Result, error) {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	installation, err := o.Cluster.RequireInstalled(ctx)
	if err != nil {
		return nil, err
	}
	for _, namespace := range o.Namespaces {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, err := o.Cluster.Get(ctx, object); err != nil {
			return nil, err
		}
		if err := WhyNever(o.Cluster.HomeNamespaces(installation), object); err != nil {
			return nil, err
		}
		rights := target.Rights(offloadingv1beta1.GroupVersion.Group, "namespaceoffloadings", namespace, "get", "create", "update")
		if o.Evict {
			rights = append(rights, evictionRights(namespace)...)
		}
		if err := o.Cluster.RequireRights(ctx, rights); err != nil {
			return nil, err
		}
	}
	if err := ask(ctx, o); err != nil {
		return nil, err
	}
	var results []Result
	var problems []error
	for _, namespace := range o.Namespaces {
		result, stricter, err := one(ctx, o, namespace)
		if err == nil {
			rules := placement.PodRules{Strategy: o.Spec.PodOffloadingStrategy, Selector: o.Spec.ClusterSelector, RuntimeClass: installation.Config.RuntimeClass}
			err = settle(ctx, o, namespace, rules, stricter)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		results = append(results, *result)
	}
	if len(problems) == 1 {
		return results, problems[0]
	}
	return results, errors.Join(problems...)
}

// one offloads a namespace, and tells whether its strategy became stricter.
func one(ctx context.Context, o Options, namespace string) (result *Result, stricter bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	result = &Result{Namespace: namespace}
	err = progress.Run(ctx, o.Observer, o.Cluster.Name, "Offloading namespace "+namespace, func(ctx context.Context, task progress.Task) (string, error) {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if found, err := o.Cluster.Get(ctx, object); err != nil || !found {
			if err == nil {
				err = failure.Unmet("create it with 'kubectl create namespace "+namespace+"'", "%s does not exist", o.Cluster.Describe(object))
			}
			return "", err
		}
		offloading, became, err := apply(ctx, o, namespace)
		if err != nil {
			return "", err
		}
		stricter = became
		if err := answered(ctx, task, o.Cluster, offloading); err != nil {
			return "", err
		}
		result.Phase, result.RemoteNamespace = offloading.Status.OffloadingPhase, offloading.Status.RemoteNamespaceName
		result.Clusters = readyClusters(offloading)
		if result.Phase == offloadingv1beta1.NoClusterSelectedOffloadingPhaseType {
			return "", progress.Warned("Namespace " + namespace + " is offloaded, but no cluster is selected: " + hint(offloading))
		}
		return fmt.Sprintf("Namespace %s offloaded to %s", namespace, strings.Join(result.Clusters, ", ")), nil
	})
	return result, stricter, err
}

func hint(offloading *offloadingv1beta1.NamespaceOffloading) string {
	if len(offloading.Spec.ClusterSelector.NodeSelectorTerms) == 0 {
		return "peer with a provider first: liqoctl peer"
	}
	return "compare the selector with the labels of the virtual nodes: kubectl get nodes --show-labels -l liqo.io/type=virtual-node"
}

// apply writes the NamespaceOffloading, refuses what the API server would refuse to change, and tells whether the strategy became stricter.
func apply(ctx context.Context, o Options, namespace string) (*offloadingv1beta1.NamespaceOffloading, bool, error) {
	became := false
	offloading := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
	_, err := o.Cluster.Ensure(ctx, offloading, func() error {
		have := offloading.Spec
		if offloading.ResourceVersion != "" {
			if err := whyNotChangeable(offloading, o.Spec); err != nil {
				return err
			}
			became = stricter(have.PodOffloadingStrategy, o.Spec.PodOffloadingStrategy)
		}
		if !equality.Semantic.DeepEqual(have, o.Spec) {
			offloading.Spec = o.Spec
		}
		return nil
	})
	return offloading, became, err
}

func whyNotChangeable(offloading *offloadingv1beta1.NamespaceOffloading, want offloadingv1beta1.NamespaceOffloadingSpec) error {
	next := "unoffload it first with 'liqoctl unoffload namespace " + offloading.Namespace + "'"
	switch {
	case !offloading.DeletionTimestamp.IsZero():
		return failure.Unmet("wait until that is done", "it is being unoffloaded")
	case offloading.Spec.NamespaceMappingStrategy != want.NamespaceMappingStrategy:
		return failure.Unmet(next, "the namespace is offloaded with the mapping strategy %s, which cannot be changed", offloading.Spec.NamespaceMappingStrategy)
	case offloading.Spec.RemoteNamespaceName != want.RemoteNamespaceName:
		return failure.Unmet(next, "the namespace is offloaded with the remote name %q, which cannot be changed", offloading.Spec.RemoteNamespaceName)
	}
	return nil
}

// stricter tells whether a change of strategy leaves pods where they would not be scheduled any more.
func stricter(before, after offloadingv1beta1.PodOffloadingStrategyType) bool {
	return before != after && after != offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType
}

// answered waits until every selected cluster has answered for the present generation.
func answered(ctx context.Context, task progress.Task, cluster *target.Cluster, offloading *offloadingv1beta1.NamespaceOffloading) error {
	seen := 0
	return await.Until(ctx, task, cluster.Describe(offloading)+" to be ready", func(ctx context.Context) (bool, string, error) {
		if found, err := cluster.Get(ctx, offloading); err != nil || !found {
			return false, "it is gone", err
		}
		if offloading.Status.ObservedGeneration < offloading.Generation {
			return false, "the controller manager has not looked at it yet", nil
		}
		switch offloading.Status.OffloadingPhase {
		case offloadingv1beta1.ReadyOffloadingPhaseType, offloadingv1beta1.NoClusterSelectedOffloadingPhaseType:
			return true, "", nil
		case offloadingv1beta1.SomeFailedOffloadingPhaseType, offloadingv1beta1.AllFailedOffloadingPhaseType:
			if seen++; seen >= failures {
				return false, "", failure.New(failure.Failed, "solve that, or choose other clusters with --selector, and run the same command again",
					"namespace %s could not be offloaded (%s): %s", offloading.Namespace, offloading.Status.OffloadingPhase, pending(offloading))
			}
		default:
			seen = 0
		}
		return false, pending(offloading), nil
	})
}

// pending says, by cluster, what keeps the twins from being ready.
func pending(offloading *offloadingv1beta1.NamespaceOffloading) string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(offloading.Status.RemoteNamespacesConditions)) {
		for _, condition := range offloading.Status.RemoteNamespacesConditions[id] {
			if condition.Type == offloadingv1beta1.RemoteNamespaceReadyCondition && condition.Status != corev1.ConditionTrue {
				parts = append(parts, fmt.Sprintf("%s: %s: %s", id, condition.Reason, condition.Message))
			}
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, "; ")
	}
	for i := range offloading.Status.Conditions {
		if condition := &offloading.Status.Conditions[i]; condition.Type == corev1beta1.ConditionReady && condition.Message != "" {
			return condition.Reason + ": " + condition.Message
		}
	}
	return "no cluster has answered yet"
}

func readyClusters(offloading *offloadingv1beta1.NamespaceOffloading) []string {
	var ready []string
	for _, id := range slices.Sorted(maps.Keys(offloading.Status.RemoteNamespacesConditions)) {
		for _, condition := range offloading.Status.RemoteNamespacesConditions[id] {
			if condition.Type == offloadingv1beta1.RemoteNamespaceReadyCondition && condition.Status == corev1.ConditionTrue {
				ready = append(ready, string(id))
			}
		}
	}
	return ready
}
