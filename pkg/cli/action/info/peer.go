package info

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/diagnosis"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/kube/conditions"
)

// Identity of a peer.
type Identity struct {
	// ClusterID and Role of the peer.
	ClusterID string               `json:"clusterID"`
	Role      corev1beta1.RoleType `json:"role"`
}

// Module of a peering.
type Module struct {
	// Status of the module.
	Status Status `json:"status"`
	// Alerts say what does not work.
	Alerts []string `json:"alerts,omitempty"`
}

// Slice is a share of resources that is consumed or provided.
type Slice struct {
	// Name of the ResourceSlice.
	Name string `json:"name"`
	// Action is Consuming or Providing.
	Action string `json:"action"`
	// Accepted tells whether it was granted.
	Accepted bool `json:"accepted"`
	// Alerts say what is wrong with it, Wanted those of them that are so by the wish of an administrator of this cluster.
	Alerts []string `json:"alerts,omitempty"`
	Wanted []string `json:"-"`
	// Asked are the resources that were asked for; what is left out was for the provider to decide.
	Asked corev1.ResourceList `json:"asked,omitempty"`
	// Resources granted.
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// Authentication module of a peering.
type Authentication struct {
	Module `json:",inline"`
	// APIServerAddr of a provider.
	APIServerAddr string `json:"APIServerAddr,omitempty"`
	// ResourceSlices in both directions.
	ResourceSlices []Slice `json:"resourceSlices,omitempty"`
}

// Node is a virtual node.
type Node struct {
	// Name of the VirtualNode.
	Name string `json:"name"`
	// Status of the node.
	Status Status `json:"status"`
	// Secret with the credentials, and the ResourceSlice that the node was made of.
	Secret        string `json:"secret,omitempty"`
	ResourceSlice string `json:"resourceSlice,omitempty"`
	// Resources that the node offers.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Alerts say what waits for an administrator.
	Alerts []string `json:"alerts,omitempty"`
}

// Offloading module of a peering.
type Offloading struct {
	Module `json:",inline"`
	// VirtualNodes of the peer.
	VirtualNodes []Node `json:"virtualNodes,omitempty"`
}

// PeerReport is all about one peer.
type PeerReport struct {
	// Causes are what does not work, the first cause first; none if all is well.
	Causes []Cause `json:"causes,omitempty"`
	// Conditions of the ForeignCluster, its VirtualNodes and their Nodes.
	Conditions []Condition `json:"conditions,omitempty"`
	// Hosted is what a consumer that is silent has here; nil if it is not.
	Hosted *offloaded.Hosted `json:"hosted,omitempty"`
	// Unseen is what the user is not allowed to look at, although it may be a cause.
	Unseen         []string       `json:"unseen,omitempty"`
	Info           Identity       `json:"info"`
	Network        Networking     `json:"network"`
	Authentication Authentication `json:"authentication"`
	Offloading     Offloading     `json:"offloading"`
}

// The actions of slices.
const (
	// Consuming: this cluster uses the peer's resources.
	Consuming = "Consuming"
	// Providing: the peer uses this cluster's resources.
	Providing = "Providing"
)

// ReadPeers reads the state of some peerings by cluster ID; of all of them if none is given.
func ReadPeers(ctx context.Context, cluster *target.Cluster, ids []string) (map[string]*PeerReport, error) {
	installation, err := cluster.RequireInstalled(ctx)
	if err != nil {
		return nil, err
	}
	lacking, err := lacks(ctx, cluster, installation)
	if err != nil {
		return nil, err
	}
	foreign := &corev1beta1.ForeignClusterList{}
	if err := cluster.List(ctx, foreign); err != nil {
		return nil, err
	}
	nodes, err := unreachable(ctx, cluster, installation)
	if err != nil {
		return nil, err
	}
	reports := map[string]*PeerReport{}
	var known []string
	for i := range foreign.Items {
		id := string(foreign.Items[i].Spec.ClusterID)
		known = append(known, id)
		if len(ids) > 0 && !slices.Contains(ids, id) {
			continue
		}
		report, err := readPeer(ctx, cluster, lacking, nodes, &foreign.Items[i])
		if err != nil {
			return nil, err
		}
		reports[id] = report
	}
	for _, id := range ids {
		if reports[id] == nil {
			slices.Sort(known)
			return nil, failure.Unmet("peer with it first: liqoctl peer; the present peers are: "+orNone(known), "%s is no peer of cluster %s", id, cluster.Name)
		}
	}
	return reports, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// parts are the objects that a peering consists of, as far as they are in this cluster.
type parts struct {
	foreign *corev1beta1.ForeignCluster
	// namespace is the tenant namespace, and liqoNamespace that of the installation.
	namespace, liqoNamespace string
	slices                   []authv1beta1.ResourceSlice
	virtual                  []offloadingv1beta1.VirtualNode
	maps                     []offloadingv1beta1.NamespaceMap
	nodes                    []corev1.Node
	// pods in the tenant namespace, such as the virtual kubelets, and those of the installation.
	pods, liqo []corev1.Pod
	lacking    []diagnosis.Lack // what the installation lacks
	// unreachable are nodes of this cluster to which the network does not reach.
	unreachable []Condition
	hosted      *offloaded.Hosted // what a silent consumer has here
	network     *network.Peer     // nil if there is none
	unseen      []string
}

func readPeer(ctx context.Context, cluster *target.Cluster, lacking []diagnosis.Lack, unreachable []Condition,
	foreign *corev1beta1.ForeignCluster,
) (*PeerReport, error) {
	id := string(foreign.Spec.ClusterID)
	p := &parts{foreign: foreign, lacking: lacking, unreachable: unreachable, liqoNamespace: cluster.LiqoNamespace}
	p.namespace = foreign.Status.TenantNamespace.Local
	if p.namespace == "" {
		p.namespace = corev1beta1.TenantNamespacePrefix + id
	}
	resourceSlices, virtual := &authv1beta1.ResourceSliceList{}, &offloadingv1beta1.VirtualNodeList{}
	maps, nodes, pods, liqo := &offloadingv1beta1.NamespaceMapList{}, &corev1.NodeList{}, &corev1.PodList{}, &corev1.PodList{}
	for _, read := range []struct {
		list    client.ObjectList
		options []client.ListOption
		// unseen says what cannot be seen without the right to; empty where the report makes no sense without.
		unseen string
	}{
		{resourceSlices, []client.ListOption{client.InNamespace(p.namespace)}, ""},
		{virtual, []client.ListOption{client.InNamespace(p.namespace)}, ""},
		{maps, []client.ListOption{client.InNamespace(p.namespace), client.MatchingLabels{corev1beta1.ReplicationLabel: "true"}}, "the NamespaceMap"},
		{nodes, []client.ListOption{client.MatchingLabels{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: id}}, "nodes"},
		{pods, []client.ListOption{client.InNamespace(p.namespace)}, podsIn(p.namespace)},
		{liqo, []client.ListOption{client.InNamespace(p.liqoNamespace)}, podsIn(p.liqoNamespace)},
	} {
		err := cluster.List(ctx, read.list, read.options...)
		if apierrors.IsForbidden(err) && read.unseen != "" {
			p.unseen = append(p.unseen, read.unseen)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	p.slices, p.virtual, p.maps, p.nodes, p.pods, p.liqo = resourceSlices.Items, virtual.Items, maps.Items, nodes.Items, pods.Items, liqo.Items
	if foreign.Status.Modules.Networking.Enabled {
		found, err := network.Of(ctx, cluster, id)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		if err != nil {
			p.unseen = append(p.unseen, "gateways and Connections")
		}
		p.network = found
	}
	if silent(foreign) {
		hosted, err := offloaded.Hosts(ctx, cluster, id)
		switch {
		case apierrors.IsForbidden(err):
			p.unseen = append(p.unseen, "the namespaces, pods and claims that it has here")
		case err != nil:
			return nil, err
		default:
			p.hosted = hosted
		}
	}
	return p.report(), nil
}

// silent tells whether the peer is a consumer that gives no sign of life any more.
func silent(foreign *corev1beta1.ForeignCluster) bool {
	c := conditions.Find(foreign.Status.Modules.Authentication.Conditions, corev1beta1.AuthTenantStatus)
	return c != nil && c.Reason == authv1beta1.ReasonConsumerSilent
}

// report sums the parts up.
func (p *parts) report() *PeerReport {
	report := Peering(p.foreign, p.slices, p.virtual)
	report.Unseen, report.Hosted = p.unseen, p.hosted
	report.Network = networking(report.Network.Module, p.network)
	report.Conditions = ofForeign(p.foreign)
	if p.foreign.Status.Modules.Networking.Enabled {
		report.Conditions = append(report.Conditions, p.unreachable...)
		for _, c := range p.unreachable {
			report.Network.Status = Unhealthy
			report.Network.Alerts = append(report.Network.Alerts, c.Object+": "+c.Message)
		}
	}
	for i := range p.virtual {
		report.Conditions = append(report.Conditions, own("VirtualNode "+p.virtual[i].Name, p.virtual[i].Status.All())...)
	}
	for i := range p.maps {
		report.Conditions = append(report.Conditions, ofMap(&p.maps[i])...)
	}
	for i := range p.nodes {
		report.Conditions = append(report.Conditions, ofNode(&p.nodes[i])...)
	}
	report.Causes = causes(p, report)
	for i := range report.Causes {
		if p.hosted != nil && strings.Contains(report.Causes[i].Message, authv1beta1.ReasonConsumerSilent) {
			report.Causes[i].Message += ". It has here: " + p.hosted.String()
		}
	}
	return report
}

// Peering sums one peering up from its objects.
func Peering(foreign *corev1beta1.ForeignCluster, resourceSlices []authv1beta1.ResourceSlice, nodes []offloadingv1beta1.VirtualNode) *PeerReport {
	modules := &foreign.Status.Modules
	report := &PeerReport{
		Info:           Identity{ClusterID: string(foreign.Spec.ClusterID), Role: roleOf(foreign)},
		Network:        Networking{Module: moduleOf(modules.Networking)},
		Authentication: Authentication{Module: moduleOf(authentication(foreign)), APIServerAddr: foreign.Status.APIServerURL},
		Offloading:     Offloading{Module: moduleOf(modules.Offloading)},
	}
	for i := range resourceSlices {
		report.Authentication.ResourceSlices = append(report.Authentication.ResourceSlices, sliceOf(&resourceSlices[i]))
	}
	slices.SortFunc(report.Authentication.ResourceSlices, func(a, b Slice) int { return strings.Compare(a.Name+a.Action, b.Name+b.Action) })
	for i := range nodes {
		report.Offloading.VirtualNodes = append(report.Offloading.VirtualNodes, nodeOf(&nodes[i]))
	}
	slices.SortFunc(report.Offloading.VirtualNodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return report
}

func moduleOf(module corev1beta1.Module) Module {
	status := statusOf(module)
	if status == Disabled {
		return Module{Status: status}
	}
	return Module{Status: status, Alerts: alertsOf(module)}
}

func sliceOf(slice *authv1beta1.ResourceSlice) Slice {
	result := Slice{Name: slice.Name, Action: Consuming, Asked: slice.Spec.Resources, Resources: slice.Status.Resources}
	if slice.Labels[corev1beta1.ReplicatedLabel] == "true" {
		result.Action = Providing
	}
	accepted := 0
	for _, condition := range slices.Concat(slice.Status.Conditions, slice.Status.Summary) {
		yes := condition.Status == authv1beta1.Accepted || condition.Status == string(metav1.ConditionTrue)
		positive := yes && !slices.Contains(authv1beta1.Troubles, condition.Type)
		switch {
		case positive && (condition.Type == authv1beta1.AuthenticationCondition || condition.Type == authv1beta1.ResourcesCondition):
			accepted++
		case !positive && condition.Message != "":
			result.Alerts = append(result.Alerts, condition.Type+" is "+condition.Status+": "+condition.Message)
			if result.Action == Providing && (condition.Reason == authv1beta1.ReasonTenantCordoned || condition.Reason == authv1beta1.ReasonSliceCordoned) {
				result.Wanted = append(result.Wanted, result.Alerts[len(result.Alerts)-1])
			}
		}
	}
	result.Accepted = accepted == 2
	return result
}

func nodeOf(node *offloadingv1beta1.VirtualNode) Node {
	result := Node{Name: node.Name, Status: Unhealthy, ResourceSlice: node.Labels[authv1beta1.ResourceSliceNameLabel], Resources: node.Spec.ResourceQuota.Hard}
	if node.Spec.KubeconfigSecretRef != nil {
		result.Secret = node.Spec.KubeconfigSecretRef.Name
	}
	for _, condition := range node.Status.All() {
		if condition.Type == corev1beta1.ConditionReady && condition.Status == string(metav1.ConditionTrue) {
			result.Status = Healthy
		}
		if slices.Contains(problems, condition.Type) {
			result.Alerts = append(result.Alerts, condition.Type+": "+condition.Message)
		}
	}
	return result
}
