package reflection

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// ordinary is a pod that every provider has to accept.
func ordinary() *corev1.PodSpec {
	return &corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{
			Name: "app", Image: "app:1",
			Ports:     []corev1.ContainerPort{{ContainerPort: 80}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
			SecurityContext: &corev1.SecurityContext{
				RunAsNonRoot: ptr.To(true), AllowPrivilegeEscalation: ptr.To(false),
				Capabilities:   &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"ALL"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}},
		}},
		Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
			{Key: "slow", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule}},
		TerminationGracePeriodSeconds: ptr.To[int64](3600),
		NodeSelector:                  map[string]string{"zone": "a"},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}},
		},
	}
}

func volume(source corev1.VolumeSource) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
}

func security(c corev1.SecurityContext) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Containers[0].SecurityContext = &c }
}

func TestCheckShadowPod(t *testing.T) {
	const container = "spec.containers[0]"
	refused := func(path, message string) []string { return []string{path + ": Forbidden: " + message} }
	for name, tc := range map[string]struct {
		set   func(*corev1.PodSpec)
		want  []string
		rules Rules // which let it pass
		never bool  // no rule lets it pass
	}{
		"an ordinary pod": {set: func(*corev1.PodSpec) {}},
		"a node name":     {func(s *corev1.PodSpec) { s.NodeName = "n" }, refused("spec.nodeName", msgNotListed), Rules{}, true},
		"the host's network": {func(s *corev1.PodSpec) { s.HostNetwork = true },
			refused("spec.hostNetwork", msgNotListed), Rules{}, true},
		"the host's processes": {func(s *corev1.PodSpec) { s.HostPID = true }, refused("spec.hostPID", msgNotListed), Rules{}, true},
		"the host's IPC":       {func(s *corev1.PodSpec) { s.HostIPC = true }, refused("spec.hostIPC", msgNotListed), Rules{}, true},
		"a scheduler":          {func(s *corev1.PodSpec) { s.SchedulerName = "x" }, refused("spec.schedulerName", msgNotListed), Rules{}, true},
		"a priority class":     {func(s *corev1.PodSpec) { s.PriorityClassName = "system-node-critical" }, refused("spec.priorityClassName", msgNotListed), Rules{}, true},
		"a priority":           {func(s *corev1.PodSpec) { s.Priority = ptr.To[int32](1) }, refused("spec.priority", msgNotListed), Rules{}, true},
		"resource claims": {func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "x"}} },
			refused("spec.resourceClaims", msgNotListed), Rules{}, true},
		"a container's resource claims": {func(s *corev1.PodSpec) { s.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "x"}} },
			refused(container+".resources.claims", msgNotListed), Rules{}, true},
		"an ephemeral container": {set: func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "b", TTY: true}, TargetContainerName: "app"}}
		}},
		"a privileged ephemeral container": {func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}}}
		}, refused("spec.ephemeralContainers[0].securityContext.privileged", msgPrivileged), Rules{Privileged: true}, false},
		"a debugger that traces": {func(s *corev1.PodSpec) { s.EphemeralContainers = debugger("SYS_PTRACE") },
			refused("spec.ephemeralContainers[0].securityContext.capabilities.add", msgCapability), Rules{Capabilities: []string{"SYS_PTRACE"}}, false},
		"a debugger that looks after the network": {func(s *corev1.PodSpec) { s.EphemeralContainers = debugger("NET_ADMIN", "NET_RAW") },
			refused("spec.ephemeralContainers[0].securityContext.capabilities.add", msgCapability), Rules{Capabilities: []string{"NET_ADMIN", "NET_RAW"}}, false},
		"a debugger with a mighty capability": {func(s *corev1.PodSpec) { s.EphemeralContainers = debugger("SYS_PTRACE", "SYS_ADMIN") },
			refused("spec.ephemeralContainers[0].securityContext.capabilities.add", msgCapability), Rules{Privileged: true}, false},
		"a container that traces": {security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}}}),
			refused(container+".securityContext.capabilities.add", msgCapability), Rules{Capabilities: []string{"SYS_PTRACE"}}, false},
		"scheduling gates": {func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} },
			refused("spec.schedulingGates", msgNotListed), Rules{}, true},
		"a host path":                  {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}), refused("spec.volumes[0].hostPath", msgVolume), Rules{VolumeSources: []string{"hostPath"}}, false},
		"an NFS export":                {volume(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}), refused("spec.volumes[0].nfs", msgVolume), Rules{VolumeSources: []string{"nfs"}}, false},
		"a git repository":             {volume(corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{Repository: "r"}}), refused("spec.volumes[0].gitRepo", msgNotListed), Rules{}, true},
		"a disk of the provider":       {volume(corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}}), refused("spec.volumes[0].gcePersistentDisk", msgNotListed), Rules{}, true},
		"a certificate of the cluster": {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{SignerName: "s"}}}}}), refused("spec.volumes[0].projected.sources[0].podCertificate", msgNotListed), Rules{}, true},
		"a claim of a certain volume": {volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}}}), refused("spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeName", msgNotListed), Rules{}, true},
		"a projected token": {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}}}}),
			refused("spec.volumes[0].projected.sources[0].serviceAccountToken", msgServiceAccount), Rules{ServiceAccounts: []string{"default"}}, false},
		"a token by default": {func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = nil },
			refused("spec.automountServiceAccountToken", msgAutomount), Rules{ServiceAccounts: []string{"default"}}, false},
		"a service account": {func(s *corev1.PodSpec) { s.ServiceAccountName = "admin" },
			refused("spec.serviceAccountName", msgServiceAccount), Rules{ServiceAccounts: []string{"admin"}}, false},
		"a service account by its old name": {func(s *corev1.PodSpec) { s.DeprecatedServiceAccount = "admin" },
			refused("spec.serviceAccount", msgServiceAccount), Rules{ServiceAccounts: []string{"*"}}, false},
		"a runtime class": {func(s *corev1.PodSpec) { s.RuntimeClassName = ptr.To("gvisor") },
			refused("spec.runtimeClassName", msgRuntimeClass), Rules{RuntimeClasses: []string{"gvisor"}}, false},
		"a toleration of the control plane": {func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
		}, refused("spec.tolerations", msgControlPlane), Rules{ControlPlane: true}, false},
		"a toleration of everything": {func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
			refused("spec.tolerations", msgControlPlane), Rules{ControlPlane: true}, false},
		"a toleration of a taint of the provider's own": {tolerating("dedicated"), refused("spec.tolerations", fmt.Sprintf(msgToleration, "dedicated")), Rules{Tolerations: []string{"dedicated"}}, false},
		"a toleration of a cordon":                      {tolerating(corev1.TaintNodeUnschedulable), refused("spec.tolerations", fmt.Sprintf(msgToleration, corev1.TaintNodeUnschedulable)), Rules{Tolerations: []string{"*"}}, false},
		"any toleration, but not the control plane":     {tolerating("node-role.kubernetes.io/master"), refused("spec.tolerations", msgControlPlane), Rules{Tolerations: []string{"*"}, ControlPlane: true}, false},
		"a node by its label":                           {func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelHostname: "n"} }, refused("spec.nodeSelector[kubernetes.io/hostname]", msgNodeName), Rules{}, true},
		"a node by its name":                            {onNode(false, corev1.NodeSelectorTerm{MatchFields: isNode("metadata.name")}), refused("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields", msgNotListed), Rules{}, true},
		"rather a node by its name":                     {onNode(true, corev1.NodeSelectorTerm{MatchFields: isNode("metadata.name")}), refused("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields", msgNotListed), Rules{}, true},
		"a node by an expression of its label":          {onNode(false, corev1.NodeSelectorTerm{MatchExpressions: isNode(corev1.LabelHostname)}), refused("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", msgNodeName), Rules{}, true},
		"rather a node by an expression of its label": {onNode(true, corev1.NodeSelectorTerm{MatchExpressions: isNode(corev1.LabelHostname)}),
			refused("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", msgNodeName), Rules{}, true},
		"nodes of a kind":    {set: onNode(false, corev1.NodeSelectorTerm{MatchExpressions: isNode("disk")})},
		"an end without end": {func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = ptr.To[int64](3601) }, refused("spec.terminationGracePeriodSeconds", msgGracePeriod), Rules{MaxGracePeriod: 2 * time.Hour}, false},
		"an end without end, of a container that fails its probe": {func(s *corev1.PodSpec) {
			s.Containers[0].LivenessProbe = &corev1.Probe{TerminationGracePeriodSeconds: ptr.To[int64](1 << 31)}
		}, refused(container+".livenessProbe.terminationGracePeriodSeconds", msgGracePeriod), Rules{MaxGracePeriod: math.MaxInt64}, false},
		"a host port": {func(s *corev1.PodSpec) { s.Containers[0].Ports[0].HostPort = 80 }, refused(container+".ports[0].hostPort", msgHostPort), Rules{HostPorts: true}, false},
		"a host IP":   {func(s *corev1.PodSpec) { s.Containers[0].Ports[0].HostIP = "127.0.0.1" }, refused(container+".ports[0].hostIP", msgHostPort), Rules{HostPorts: true}, false},
		"a probe of another host": {func(s *corev1.PodSpec) { s.Containers[0].ReadinessProbe.HTTPGet.Host = "169.254.169.254" },
			refused(container+".readinessProbe.httpGet.host", msgProbeHost), Rules{}, true},
		"a hook that calls another host": {func(s *corev1.PodSpec) {
			s.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1"}}}
		}, refused(container+".lifecycle.preStop.tcpSocket.host", msgProbeHost), Rules{}, true},
		"a privileged container":          {security(corev1.SecurityContext{Privileged: ptr.To(true)}), refused(container+".securityContext.privileged", msgPrivileged), Rules{Privileged: true}, false},
		"a container that is not":         {set: security(corev1.SecurityContext{Privileged: ptr.To(false)})},
		"a mighty capability":             {security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}), refused(container+".securityContext.capabilities.add", msgCapability), Rules{Privileged: true}, false},
		"a capability that is listed":     {security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_RAW"}}}), refused(container+".securityContext.capabilities.add", msgCapability), Rules{Capabilities: []string{"NET_RAW"}}, false},
		"a harmless capability, prefixed": {set: security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CAP_CHOWN", "kill"}}})},
		"an unmasked proc":                {security(corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}), refused(container+".securityContext.procMount", msgUnconfined), Rules{Privileged: true}, false},
		"no seccomp":                      {security(corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}), refused(container+".securityContext.seccompProfile.type", msgUnconfined), Rules{Privileged: true}, false},
		"no AppArmor":                     {security(corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}), refused(container+".securityContext.appArmorProfile.type", msgUnconfined), Rules{Privileged: true}, false},
		"an SELinux type":                 {security(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}), refused(container+".securityContext.seLinuxOptions.type", msgUnconfined), Rules{Privileged: true}, false},
		"an SELinux role":                 {security(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Role: "r"}}), refused(container+".securityContext.seLinuxOptions.role", msgUnconfined), Rules{Privileged: true}, false},
		"an SELinux user":                 {security(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{User: "u"}}), refused(container+".securityContext.seLinuxOptions.user", msgUnconfined), Rules{Privileged: true}, false},
		"a Windows host process":          {security(corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: ptr.To(true)}}), refused(container+".securityContext.windowsOptions.hostProcess", msgPrivileged), Rules{}, true},
		"a Windows identity":              {security(corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpecName: ptr.To("x")}}), refused(container+".securityContext.windowsOptions.gmsaCredentialSpecName", msgNotListed), Rules{}, true},
		"a Windows specification":         {security(corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{GMSACredentialSpec: ptr.To("x")}}), refused(container+".securityContext.windowsOptions.gmsaCredentialSpec", msgNotListed), Rules{}, true},
		"a sysctl": {func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		}, refused("spec.securityContext.sysctls[0].name", msgSysctl), Rules{Sysctls: []string{"kernel.msgmax"}}, false},
		"a safe sysctl": {set: func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.tcp_syncookies", Value: "1"}}}
		}},
		"a safe sysctl with slashes": {set: func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel/shm_rmid_forced", Value: "1"}}}
		}},
		"an affinity to others' pods": {func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "x"}}}}
		}, refused("spec.affinity.podAffinity", msgNotListed), Rules{}, true},
		"an anti-affinity that looks into other namespaces": {func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{NamespaceSelector: &metav1.LabelSelector{}}}}}
		}, refused("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector", msgNotListed), Rules{}, true},
		"an init container is looked at, too": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "i", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}}
		}, refused("spec.initContainers[0].securityContext.privileged", msgPrivileged), Rules{Privileged: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := ordinary()
			tc.set(spec)
			if diff := cmp.Diff(tc.want, texts(spec, Rules{})); diff != "" {
				t.Error(diff)
			}
			open := texts(spec, tc.rules)
			if tc.never {
				open = texts(spec, Rules{ServiceAccounts: []string{"*"}, RuntimeClasses: []string{"*"}, VolumeSources: []string{"hostPath", "nfs"},
					Privileged: true, HostPorts: true, ControlPlane: true, Tolerations: []string{"*"}, CSIDrivers: []string{"*"}, MaxGracePeriod: math.MaxInt64})
			}
			if passes := len(open) == 0; passes == tc.never {
				t.Errorf("with the rules relaxed: %v", open)
			}
		})
	}
}

func tolerating(key string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func isNode(key string) []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}
}

func onNode(rather bool, term corev1.NodeSelectorTerm) func(*corev1.PodSpec) {
	nodes := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}
	if rather {
		nodes = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term}}}
	}
	return func(s *corev1.PodSpec) { s.Affinity = &corev1.Affinity{NodeAffinity: nodes} }
}

func texts(spec *corev1.PodSpec, rules Rules) []string {
	var list []string
	for _, err := range CheckShadowPod(spec, rules) {
		list = append(list, err.Error())
	}
	return list
}

func TestErrorsAreBounded(t *testing.T) {
	spec := ordinary()
	for range 1000 {
		spec.Containers = append(spec.Containers, corev1.Container{Ports: []corev1.ContainerPort{{HostPort: 1}}, VolumeMounts: []corev1.VolumeMount{{Name: "none"}}})
		spec.Volumes = append(spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}}}})
	}
	if n := len(CheckShadowPod(spec, Rules{})); n > 3*maxPodErrors+1 {
		t.Errorf("%d errors", n)
	}
}

// FuzzCheckShadowPod: whatever a hostile consumer sends, the check neither panics nor lets the worst pass.
func FuzzCheckShadowPod(f *testing.F) {
	for _, spec := range []*corev1.PodSpec{ordinary(), {HostNetwork: true}, {NodeName: "n"}} {
		raw, err := spec.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var spec corev1.PodSpec
		if spec.Unmarshal(raw) != nil {
			return
		}
		errs := CheckShadowPod(&spec, Rules{})
		bad := spec.HostNetwork || spec.HostPID || spec.HostIPC || spec.NodeName != "" || spec.PriorityClassName != ""
		for i := range spec.Volumes {
			bad = bad || spec.Volumes[i].HostPath != nil
		}
		for i := range spec.Containers {
			bad = bad || spec.Containers[i].SecurityContext != nil && ptr.Deref(spec.Containers[i].SecurityContext.Privileged, false)
		}
		if bad && len(errs) == 0 {
			t.Error("a dangerous pod passes")
		}
	})
}

func debugger(capabilities ...corev1.Capability) []corev1.EphemeralContainer {
	return []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "d", Image: "b", SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: capabilities}}}}}
}

func TestMayTolerate(t *testing.T) {
	for name, tc := range map[string]struct {
		rules Rules
		key   string
		want  bool
	}{
		"nothing by itself":            {Rules{}, "dedicated", false},
		"what is listed":               {Rules{Tolerations: []string{"dedicated"}}, "dedicated", true},
		"nothing else":                 {Rules{Tolerations: []string{"dedicated"}}, "batch", false},
		"anything":                     {Rules{Tolerations: []string{"*"}}, "batch", true},
		"but no control plane":         {Rules{Tolerations: []string{"*"}}, "node-role.kubernetes.io/control-plane", false},
		"nor one that is listed":       {Rules{Tolerations: []string{"node-role.kubernetes.io/master"}}, "node-role.kubernetes.io/master", false},
		"a control plane that is open": {Rules{ControlPlane: true}, "node-role.kubernetes.io/control-plane", true},
	} {
		if got := tc.rules.MayTolerate(tc.key); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
