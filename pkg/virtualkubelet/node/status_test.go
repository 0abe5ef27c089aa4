package node

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/peer"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func facts(change ...func(*Facts)) Facts {
	f := Facts{
		Said:     Said{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")}},
		Hostname: "milan", Address: "10.0.0.9", Port: 10250, Cluster: "milan", Version: "v1.36.3", Platform: "linux/arm64", Connected: true,
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func TestStatus(t *testing.T) {
	got, changed := Status(&corev1.NodeStatus{}, facts(), noon)
	at := metav1.NewTime(noon)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at}
	}
	want := &corev1.NodeStatus{
		Capacity: facts().Capacity, Allocatable: facts().Capacity,
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.9"}, {Type: corev1.NodeHostName, Address: "milan"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "arm64",
			OSImage: "cluster milan", ContainerRuntimeVersion: "liqo://milan"},
		DeclaredFeatures: []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"},
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, ReasonReady, "the provider's API server answers"),
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, ReasonSufficientResources, "the provider grants resources"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, ReasonSufficientResources, "the provider grants resources"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, ReasonSufficientResources, "the provider grants resources"),
			condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, ReasonNetworkNotManaged, "the network between the clusters is not watched over"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || !changed {
		t.Errorf("changed = %v: %s", changed, diff)
	}
	if _, changed := Status(got, facts(), noon.Add(time.Hour)); changed {
		t.Error("the same facts change the status")
	}
}

func TestTheNetworkShows(t *testing.T) {
	for name, tc := range map[string]struct {
		network Network
		want    string
	}{
		"nobody watches over it":  {Network{}, "False NetworkNotManaged: the network between the clusters is not watched over"},
		"the other end answers":   {Network{Watched: true, Connected: true, Message: "no news"}, "False NetworkConnected: the other end of the tunnel to the provider answers"},
		"the other end is silent": {Network{Watched: true, Message: "no handshake"}, "True NetworkNotConnected: no handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _ := Status(&corev1.NodeStatus{}, facts(func(f *Facts) { f.Network = tc.network }), noon)
			for _, c := range status.Conditions {
				if got := string(c.Status) + " " + c.Reason + ": " + c.Message; c.Type == corev1.NodeNetworkUnavailable && got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
					t.Error("the network decides about the readiness of the node")
				}
			}
		})
	}
}

func TestDeclaredFeatures(t *testing.T) {
	of := []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"}
	for name, tc := range map[string]struct {
		old     []string
		version string
		unknown bool
		want    []string
	}{
		"a provider that resizes pods as a whole": {nil, "v1.36.0", false, of},
		"a vendor's":                               {nil, "v1.37.1-gke.1200", false, of},
		"a provider that does not":                 {of, "v1.35.9", false, nil},
		"a provider that is not known yet":         {of, "", false, of},
		"a provider that cannot be understood":     {nil, "milan", false, nil},
		"an API server here that does not know it": {nil, "v1.36.0", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := Status(&corev1.NodeStatus{DeclaredFeatures: tc.old}, facts(func(f *Facts) { f.Version, f.NoFeatures = tc.version, tc.unknown }), noon)
			if diff := cmp.Diff(tc.want, got.DeclaredFeatures); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadiness(t *testing.T) {
	for name, tc := range map[string]struct {
		facts  Facts
		status corev1.ConditionStatus
		reason string
	}{
		"all is well":             {facts(), corev1.ConditionTrue, ReasonReady},
		"asked to slow down":      {facts(func(f *Facts) { f.Reason = peer.ReasonThrottled }), corev1.ConditionTrue, "RemoteThrottled"},
		"new credentials are bad": {facts(func(f *Facts) { f.Reason = peer.ReasonInvalidKubeconfig }), corev1.ConditionTrue, ReasonReady},
		"the provider is silent":  {facts(func(f *Facts) { f.Connected, f.Reason = false, "Unreachable" }), corev1.ConditionFalse, "Unreachable"},
		"nothing is granted":      {facts(func(f *Facts) { f.Capacity = nil }), corev1.ConditionFalse, ReasonInsufficientResources},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := Status(&corev1.NodeStatus{}, tc.facts, noon)
			if c := got.Conditions[0]; c.Status != tc.status || c.Reason != tc.reason {
				t.Errorf("Ready is %v", c)
			}
		})
	}
}

// The provider's nodes know what runs on them, its API server knows only itself.
func TestThePlatformIsThatOfTheNodes(t *testing.T) {
	for want, nodes := range map[string]*authv1beta1.ProviderNodes{
		"linux/arm64": nil, "linux/s390x": {OperatingSystem: "linux", Architecture: "s390x"}, "linux/": {OperatingSystem: "linux"}, "/": {},
	} {
		got, _ := Status(&corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "plan9", Architecture: "mips"}}, facts(func(f *Facts) { f.Nodes = nodes }), noon)
		if is := got.NodeInfo.OperatingSystem + "/" + got.NodeInfo.Architecture; is != want {
			t.Errorf("got %s, want %s", is, want)
		}
	}
}

func TestWhatOthersSetStays(t *testing.T) {
	old := &corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", MachineID: "m"},
		Conditions:      []corev1.NodeCondition{{Type: "Mine", Status: corev1.ConditionTrue}},
		VolumesAttached: []corev1.AttachedVolume{{Name: "v"}}}
	got, _ := Status(old, facts(func(f *Facts) { f.Version, f.Platform = "", "" }), noon)
	if got.Conditions[0].Type != "Mine" || got.NodeInfo.MachineID != "m" || got.NodeInfo.KubeletVersion != "v1.36.3" || len(got.VolumesAttached) != 1 {
		t.Errorf("got %+v", got)
	}
}

// What is the case only sometimes is a condition while it is, and is written once.
func TestTroublesAreConditions(t *testing.T) {
	for condition, tc := range map[string]struct {
		trouble func(*Facts)
		want    string
	}{
		offloadingv1beta1.RemovalsHeldCondition:  {func(f *Facts) { f.Held = "12 pods" }, "True ManyAtOnce 12 pods"},
		offloadingv1beta1.OverCommittedCondition: {func(f *Facts) { f.Over = "by cpu 1" }, "True MoreRunsThanIsOffered by cpu 1"},
	} {
		of := func(status *corev1.NodeStatus) (said []string) {
			for _, c := range status.Conditions {
				if string(c.Type) == condition {
					said = append(said, string(c.Status)+" "+c.Reason+" "+c.Message)
				}
			}
			return said
		}
		none, _ := Status(&corev1.NodeStatus{}, facts(), noon)
		there, changed := Status(none, facts(tc.trouble), noon)
		if diff := cmp.Diff([]string{tc.want}, of(there)); diff != "" || !changed || len(of(none)) > 0 {
			t.Errorf("%s: changed %t: %s", condition, changed, diff)
		}
		if _, changed := Status(there, facts(tc.trouble), noon.Add(time.Hour)); changed {
			t.Errorf("%s: the same is written again", condition)
		}
		if after, changed := Status(there, facts(), noon); len(of(after)) > 0 || !changed {
			t.Errorf("%s: changed %t, it says %v", condition, changed, of(after))
		}
	}
}

func TestTimesMoveOnlyWithTheCondition(t *testing.T) {
	first, _ := Status(&corev1.NodeStatus{}, facts(), noon)
	later, _ := Status(first, facts(func(f *Facts) { f.Connected, f.Reason = false, "Unreachable" }), noon.Add(time.Hour))
	if !later.Conditions[0].LastTransitionTime.Time.Equal(noon.Add(time.Hour)) || !later.Conditions[1].LastTransitionTime.Time.Equal(noon) {
		t.Errorf("got %v", later.Conditions)
	}
}

func TestLossAndReturnAreNews(t *testing.T) {
	status := func(status corev1.ConditionStatus, reason string) *corev1.NodeStatus {
		return &corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: reason, Message: "as " + reason}}}
	}
	well, lost := status(corev1.ConditionTrue, ReasonReady), status(corev1.ConditionFalse, "Unreachable")
	unknown := status(corev1.ConditionUnknown, "NodeStatusUnknown")
	for name, tc := range map[string]struct {
		before, after *corev1.NodeStatus
		want          string
	}{
		"it comes up":                            {&corev1.NodeStatus{}, well, ""},
		"it is lost":                             {well, lost, "Warning Unreachable as Unreachable"},
		"it stays lost":                          {lost, lost, ""},
		"it is lost for another reason":          {lost, status(corev1.ConditionFalse, "RightsRevoked"), "Warning RightsRevoked as RightsRevoked"},
		"it is back":                             {lost, well, "Normal VirtualKubeletReady as VirtualKubeletReady"},
		"Kubernetes wrote that it hears no more": {unknown, lost, ""},
		"it is back after that":                  {unknown, well, "Normal VirtualKubeletReady as VirtualKubeletReady"},
		"the provider asks for patience":         {well, status(corev1.ConditionTrue, "RemoteThrottled"), ""},
	} {
		kind, reason, message := News(tc.before, tc.after)
		if got := strings.TrimSpace(kind + " " + reason + " " + message); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
