package info

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/diagnosis"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/target"
)

// Status of a module.
type Status string

// The statuses of a module.
const (
	// Healthy modules work.
	Healthy Status = "Healthy"
	// Unhealthy modules do not; the alerts say why.
	Unhealthy Status = "Unhealthy"
	// Disabled modules are not used.
	Disabled Status = "Disabled"
)

// Local is what is installed in this cluster.
type Local struct {
	// ClusterID of the cluster.
	ClusterID string `json:"clusterID"`
	// Version of Liqo.
	Version string `json:"version"`
	// Labels that consumers see on their virtual nodes.
	Labels map[string]string `json:"labels,omitempty"`
	// APIServerAddr is where other clusters reach the API server.
	APIServerAddr string `json:"APIServerAddr,omitempty"`
}

// Pod is the state of a pod that is not ready.
type Pod struct {
	// Status says why, in a sentence.
	Status string `json:"status"`
	// ReadyContainers of TotalContainers.
	ReadyContainers int `json:"readyContainers"`
	TotalContainers int `json:"totalContainers"`
	// Restarts of all containers.
	Restarts int32 `json:"restarts"`
}

// Health of the installation.
type Health struct {
	// Healthy tells whether all that should run is there, and all pods are ready.
	Healthy bool `json:"healthy"`
	// Lacking are what is not there that should be, or has not all its pods.
	Lacking []string `json:"lacking,omitempty"`
	// UnhealthyPods by name.
	UnhealthyPods map[string]Pod `json:"unhealthyPods,omitempty"`
	// Namespace that they are in.
	Namespace string `json:"-"`
}

// Peer is a line about one peer.
type Peer struct {
	// ClusterID and Role of the peer.
	ClusterID string               `json:"clusterID"`
	Role      corev1beta1.RoleType `json:"role"`
	// The modules' statuses.
	NetworkingStatus     Status `json:"networkingStatus"`
	AuthenticationStatus Status `json:"authenticationStatus"`
	OffloadingStatus     Status `json:"offloadingStatus"`
	// Cause is the first cause of what does not work; nil if all is well.
	Cause *Cause `json:"cause,omitempty"`
}

// Peerings are the active peerings.
type Peerings struct {
	// Peers sorted by cluster ID.
	Peers []Peer `json:"peers"`
}

// Report about an installation.
type Report struct {
	Local    Local    `json:"local"`
	Health   Health   `json:"health"`
	Network  *Network `json:"network,omitempty"`
	Peerings Peerings `json:"peerings"`
}

// Read reads the state of an installation. The network is read only on request.
func Read(ctx context.Context, cluster *target.Cluster, network bool) (*Report, error) {
	installation, err := cluster.RequireInstalled(ctx)
	if err != nil {
		return nil, err
	}
	config := &installation.Config
	report := &Report{Local: Local{
		ClusterID: installation.ClusterID, Version: installation.Version,
		Labels: config.Discovery.ClusterLabels, APIServerAddr: config.APIServer.Address,
	}}
	if network {
		if report.Network, err = ownNetwork(ctx, cluster, installation); err != nil {
			return nil, err
		}
	}
	pods := &corev1.PodList{}
	if err := cluster.List(ctx, pods, client.InNamespace(cluster.LiqoNamespace)); err != nil {
		return nil, err
	}
	report.Health = health(pods.Items)
	report.Health.Namespace = cluster.LiqoNamespace
	if installation.Deployment == nil || len(pods.Items) == 0 {
		report.Health.Healthy = false
	}
	lacking, err := lacks(ctx, cluster, installation)
	if err != nil {
		return nil, err
	}
	for _, lack := range lacking {
		report.Health.Healthy = false
		report.Health.Lacking = append(report.Health.Lacking, lack.String())
	}
	foreign := &corev1beta1.ForeignClusterList{}
	if err := cluster.List(ctx, foreign); err != nil {
		return nil, err
	}
	report.Peerings.Peers = peers(foreign.Items)
	if err := explain(ctx, cluster, installation, lacking, foreign.Items, report.Peerings.Peers); err != nil {
		return nil, err
	}
	left, err := leftovers(ctx, cluster, foreign.Items)
	report.Peerings.Peers = append(report.Peerings.Peers, left...)
	slices.SortFunc(report.Peerings.Peers, func(a, b Peer) int { return strings.Compare(a.ClusterID, b.ClusterID) })
	return report, err
}

// lacks are what the installation lacks. Whoever may not look for it is told of none.
func lacks(ctx context.Context, cluster *target.Cluster, installation *target.Installation) ([]diagnosis.Lack, error) {
	lacking, err := diagnosis.Installation(ctx, cluster, installation, false)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return lacking, err
}

// leftovers are clusters that are no peers any more, and have something here that nobody asks for. Whoever may not look for it is told of none.
func leftovers(ctx context.Context, cluster *target.Cluster, foreign []corev1beta1.ForeignCluster) ([]Peer, error) {
	ids, err := offloaded.Others(ctx, cluster)
	var left []Peer
	for _, id := range ids {
		if slices.ContainsFunc(foreign, func(fc corev1beta1.ForeignCluster) bool { return string(fc.Spec.ClusterID) == id }) {
			continue
		}
		var hosted *offloaded.Hosted
		if hosted, err = offloaded.Hosts(ctx, cluster, id); err != nil {
			break
		}
		remove := "remove it with 'liqoctl unpeer --force " + id + "'"
		if len(hosted.Claims) > 0 {
			remove = "it takes that up when it peers again; to lose it, run 'liqoctl unpeer --force " + id + " --delete-volumes'"
		}
		left = append(left, Peer{id, corev1beta1.UnknownRole, Disabled, Disabled, Disabled, &Cause{"Cluster " + id,
			fmt.Sprintf("it is no peer any more, and nobody asks for what it has here: %s; %s", hosted, remove)}})
	}
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return left, err
}

// explain adds the first cause to the peers of which something does not work.
func explain(ctx context.Context, cluster *target.Cluster, installation *target.Installation, lacking []diagnosis.Lack,
	foreign []corev1beta1.ForeignCluster, peers []Peer,
) error {
	nodes, err := unreachable(ctx, cluster, installation)
	if err != nil {
		return err
	}
	for i := range foreign {
		all, err := readPeer(ctx, cluster, lacking, nodes, &foreign[i])
		if err != nil {
			return err
		}
		for j := range peers {
			if peers[j].ClusterID != string(foreign[i].Spec.ClusterID) {
				continue
			}
			peers[j].NetworkingStatus = all.Network.Status
			if len(all.Causes) > 0 {
				peers[j].Cause = &all.Causes[0]
			}
		}
	}
	return nil
}

// health sums pods up. Pods that ended well are no concern.
func health(pods []corev1.Pod) Health {
	result := Health{Healthy: true}
	for i := range pods {
		pod := &pods[i]
		why := diagnosis.WhyNotReady(pod)
		if why == "" || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		state := Pod{Status: why, TotalContainers: len(pod.Spec.Containers)}
		for _, container := range pod.Status.ContainerStatuses {
			state.Restarts += container.RestartCount
			if container.Ready {
				state.ReadyContainers++
			}
		}
		if result.UnhealthyPods == nil {
			result.UnhealthyPods = map[string]Pod{}
		}
		result.Healthy, result.UnhealthyPods[pod.Name] = false, state
	}
	return result
}

func peers(foreign []corev1beta1.ForeignCluster) []Peer {
	result := make([]Peer, 0, len(foreign))
	for i := range foreign {
		modules := &foreign[i].Status.Modules
		result = append(result, Peer{
			ClusterID: string(foreign[i].Spec.ClusterID), Role: roleOf(&foreign[i]), NetworkingStatus: statusOf(modules.Networking),
			AuthenticationStatus: statusOf(authentication(&foreign[i])), OffloadingStatus: statusOf(modules.Offloading),
		})
	}
	return result
}

func roleOf(foreign *corev1beta1.ForeignCluster) corev1beta1.RoleType {
	if foreign.Status.Role == "" {
		return corev1beta1.UnknownRole
	}
	return foreign.Status.Role
}

// statusOf sums a module up.
func statusOf(module corev1beta1.Module) Status {
	switch {
	case !module.Enabled:
		return Disabled
	case len(alertsOf(module)) > 0:
		return Unhealthy
	default:
		return Healthy
	}
}

// alertsOf are the messages of the conditions that are not positive.
func alertsOf(module corev1beta1.Module) []string {
	var alerts []string
	for _, condition := range module.Conditions {
		if isGood(condition) {
			continue
		}
		message := condition.Message
		if message == "" {
			message = strings.TrimSpace(condition.Status + " " + condition.Reason)
		}
		alerts = append(alerts, condition.Type+": "+message)
	}
	return alerts
}
