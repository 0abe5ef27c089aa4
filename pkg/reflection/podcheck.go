package reflection

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"
	"k8s.io/utils/ptr"
)

// Rules are what a provider lets pods of other clusters do. The zero value refuses everything that could endanger the
// provider, and lets ordinary pods pass; each field opens one thing.
type Rules struct {
	// ServiceAccounts of the twin namespace that a pod may run as ("*" for any). A pod that names one may mount its token.
	ServiceAccounts []string
	// RuntimeClasses that a pod may ask for ("*" for any).
	RuntimeClasses []string
	// VolumeSources are further kinds of volumes, by their JSON name (hostPath, nfs).
	VolumeSources []string
	// Capabilities are Linux capabilities that may be added besides those of Pod Security's baseline.
	Capabilities []string
	// Sysctls that may be set besides those of Pod Security's baseline.
	Sysctls []string
	// Privileged lets containers be privileged, with any capability, proc mount, seccomp, AppArmor and SELinux setting.
	Privileged bool
	// HostPorts lets containers take ports of the provider's nodes.
	HostPorts bool
	// ControlPlane lets pods tolerate the taints of control plane nodes.
	ControlPlane bool
	// Tolerations are the keys of taints that pods may tolerate ("*" for any but those of control plane nodes), besides those by
	// which Kubernetes tells for how long a pod stays on a node that fails.
	Tolerations []string
	// CSIDrivers that pods may have inline volumes of ("*" for any).
	CSIDrivers []string
	// NodeLabels are keys of nodes' labels, or prefixes of such that end in a slash, that pods may choose nodes by ("*" for any but
	// kubernetes.io/hostname), besides those that tell kinds of nodes apart.
	NodeLabels []string
	// MaxGracePeriod is how long a pod may take to end; zero means DefaultMaxGracePeriod.
	MaxGracePeriod time.Duration
}

// DefaultMaxGracePeriod is how long a pod of another cluster takes to end at most, where the provider does not say otherwise.
const DefaultMaxGracePeriod = time.Hour

// The lists of Pod Security's baseline level.
var (
	baselineCapabilities = []corev1.Capability{"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
		"NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
	baselineSysctls = []string{"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
		"net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem",
		"net.ipv4.tcp_wmem"}
	baselineSELinuxTypes = []string{"container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
	controlPlaneTaints   = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
		"node-role.kubernetes.io/etcd", "node-role.kubernetes.io/controlplane"}
	// failingNodeTaints only tell for how long a pod stays where it runs already: API servers add tolerations of them to every pod.
	failingNodeTaints = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}
)

// maxNameShown bounds what a refusal quotes of a pod.
const maxNameShown = 128

// Messages of refusals; tools and tests rely on them.
const (
	msgNotListed      = "is not on the list of fields that a pod from another cluster may set"
	msgServiceAccount = "the provider does not let pods from other clusters run as a ServiceAccount of its own"
	msgAutomount      = "must be false: the provider gives no ServiceAccount token to pods from other clusters"
	msgRuntimeClass   = "the provider does not offer this RuntimeClass to pods from other clusters"
	msgVolume         = "the provider does not let pods from other clusters use volumes of this kind"
	msgPrivileged     = "the provider does not run privileged containers of other clusters"
	msgSysctl         = "the provider does not let pods from other clusters set this sysctl"
	msgHostPort       = "the provider does not let pods from other clusters take ports of its nodes"
	msgProbeHost      = "must be empty: a probe of another cluster's pod may only reach the pod itself"
	msgControlPlane   = "the provider does not let pods from other clusters tolerate the taints of its control plane"
	msgUnconfined     = "the provider does not run unconfined containers of other clusters"
	msgNoClass        = "must not be empty: a volume without class would be one of the provider's own"
	msgMount          = "names a volume that the pod does not have: what the provider's admission puts into pods is not for containers of other clusters"
	msgTarget         = "names a container that the pod does not have: those that the provider puts into pods are not debugged from other clusters"

	// What the provider's administrator can allow.
	msgCapability = "the provider does not let pods from other clusters add this capability; " +
		"its administrator can, with the value offloading.consumers.capabilities"
	msgToleration = "the provider does not let pods from other clusters tolerate the taint %q; " +
		"its administrator can, with the value offloading.consumers.tolerations"
	msgCSIDriver = "the provider does not let pods from other clusters use inline volumes of driver %q; " +
		"its administrator can, with the value offloading.consumers.csiDrivers"
	msgGracePeriod = "is longer than the provider lets pods from other clusters take to end; " +
		"its administrator can raise the value offloading.consumers.maxTerminationGracePeriod"
)

// CheckShadowPod tells what of a pod the provider refuses; an empty list means that it may run. At most 16 errors are
// returned. Every field that is not known to be harmless is refused, one that a newer Kubernetes added among them.
func CheckShadowPod(spec *corev1.PodSpec, rules Rules) field.ErrorList {
	var errs field.ErrorList
	// The path is that of the pod which the user wrote, not that of the ShadowPod which carries it.
	root := field.NewPath("spec")
	walkPod(root, reflect.ValueOf(spec), func(path *field.Path, owner reflect.Type, f podField, value reflect.Value) bool {
		if len(errs) >= maxPodErrors {
			return false
		}
		switch f.treatment {
		case Copied:
			return true
		case Mapped:
			if check := podRules[owner.Name()+"."+f.name]; check != nil {
				if message := check(rules, value); message != "" {
					errs = append(errs, field.Forbidden(path, message))
					return false
				}
			}
			return true
		default:
			errs = append(errs, field.Forbidden(path, msgNotListed))
			return false
		}
	})
	if !rules.mayMountToken(spec) && (spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken) {
		errs = append(errs, field.Forbidden(root.Child("automountServiceAccountToken"), msgAutomount))
	}
	errs = append(errs, rules.checkNodes(root, spec)...)
	errs = append(errs, checkOwn(root, spec)...)
	return append(errs, rules.checkTokens(root, spec)...)
}

// podRules are the rules of mapped fields: the value is set, the answer is what is wrong with it. A mapped field that is
// not listed is changed by the consumer only and harmless at the provider.
var podRules = map[string]func(Rules, reflect.Value) string{
	"PodSpec.serviceAccountName": func(r Rules, v reflect.Value) string {
		return unless(listed(r.ServiceAccounts, v.String()), msgServiceAccount)
	},
	"PodSpec.serviceAccount": func(r Rules, v reflect.Value) string {
		return unless(listed(r.ServiceAccounts, v.String()), msgServiceAccount)
	},
	"PodSpec.runtimeClassName": func(r Rules, v reflect.Value) string {
		return unless(listed(r.RuntimeClasses, v.Elem().String()), msgRuntimeClass)
	},
	"PodSpec.tolerations":                   func(r Rules, v reflect.Value) string { return r.checkTolerations(v.Interface().([]corev1.Toleration)) },
	"PodSpec.terminationGracePeriodSeconds": Rules.checkGracePeriod,
	"Probe.terminationGracePeriodSeconds":   Rules.checkGracePeriod,
	"ContainerPort.hostPort":                func(r Rules, _ reflect.Value) string { return unless(r.HostPorts, msgHostPort) },
	"ContainerPort.hostIP":                  func(r Rules, _ reflect.Value) string { return unless(r.HostPorts, msgHostPort) },
	"HTTPGetAction.host":                    func(Rules, reflect.Value) string { return msgProbeHost },
	"TCPSocketAction.host":                  func(Rules, reflect.Value) string { return msgProbeHost },
	"VolumeSource.hostPath": func(r Rules, _ reflect.Value) string {
		return unless(slices.Contains(r.VolumeSources, "hostPath"), msgVolume)
	},
	"VolumeSource.nfs": func(r Rules, _ reflect.Value) string {
		return unless(slices.Contains(r.VolumeSources, "nfs"), msgVolume)
	},
	"VolumeSource.csi": func(r Rules, v reflect.Value) string {
		driver := v.Elem().FieldByName("Driver").String()
		return unless(listed(r.CSIDrivers, driver), fmt.Sprintf(msgCSIDriver, cutOff(driver, maxNameShown)))
	},
	"PersistentVolumeClaimSpec.storageClassName": func(_ Rules, v reflect.Value) string { return unless(v.Elem().String() != "", msgNoClass) },
	"SecurityContext.privileged":                 func(r Rules, v reflect.Value) string { return unless(r.Privileged || !v.Elem().Bool(), msgPrivileged) },
	"SecurityContext.procMount": func(r Rules, v reflect.Value) string {
		return unless(r.Privileged || v.Elem().String() == string(corev1.DefaultProcMount), msgUnconfined)
	},
	"Capabilities.add":    func(r Rules, v reflect.Value) string { return r.checkCapabilities(v.Interface().([]corev1.Capability)) },
	"SELinuxOptions.user": func(r Rules, _ reflect.Value) string { return unless(r.Privileged, msgUnconfined) },
	"SELinuxOptions.role": func(r Rules, _ reflect.Value) string { return unless(r.Privileged, msgUnconfined) },
	"SELinuxOptions.type": func(r Rules, v reflect.Value) string {
		return unless(r.Privileged || slices.Contains(baselineSELinuxTypes, v.String()), msgUnconfined)
	},
	"SeccompProfile.type":  unconfined,
	"AppArmorProfile.type": unconfined,
	"Sysctl.name": func(r Rules, v reflect.Value) string {
		name := sysctl.NormalizeName(v.String()) // a pod may write kernel/shm_rmid_forced, too
		return unless(slices.Contains(baselineSysctls, name) || slices.Contains(r.Sysctls, name), msgSysctl)
	},
	"WindowsSecurityContextOptions.hostProcess": func(r Rules, v reflect.Value) string { return unless(!v.Elem().Bool(), msgPrivileged) },
	// A gMSA specification is an identity in the provider's Active Directory.
	"WindowsSecurityContextOptions.gmsaCredentialSpecName": func(Rules, reflect.Value) string { return msgNotListed },
	"WindowsSecurityContextOptions.gmsaCredentialSpec":     func(Rules, reflect.Value) string { return msgNotListed },
}

func unless(ok bool, message string) string {
	if ok {
		return ""
	}
	return message
}

func listed(list []string, name string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, name)
}

func unconfined(r Rules, v reflect.Value) string {
	return unless(r.Privileged || v.String() != string(corev1.SeccompProfileTypeUnconfined), msgUnconfined)
}

func (r Rules) checkCapabilities(added []corev1.Capability) string {
	for _, c := range added {
		c = corev1.Capability(strings.TrimPrefix(strings.ToUpper(string(c)), "CAP_"))
		if !r.Privileged && !slices.Contains(baselineCapabilities, c) && !listed(r.Capabilities, string(c)) {
			return msgCapability
		}
	}
	return ""
}

// MayTolerate tells whether pods may tolerate the taints of a key.
func (r Rules) MayTolerate(key string) bool {
	if slices.Contains(controlPlaneTaints, key) {
		return r.ControlPlane
	}
	return listed(r.Tolerations, key)
}

func (r Rules) checkTolerations(list []corev1.Toleration) string {
	for _, t := range list {
		switch soft := t.Effect == corev1.TaintEffectPreferNoSchedule; {
		case toleratesControlPlane(t) && !r.ControlPlane:
			return msgControlPlane
		case !toleratesControlPlane(t) && !soft && !slices.Contains(failingNodeTaints, t.Key) && !r.MayTolerate(t.Key):
			return fmt.Sprintf(msgToleration, cutOff(t.Key, maxNameShown))
		}
	}
	return ""
}

func (r Rules) checkGracePeriod(seconds reflect.Value) string {
	return unless(seconds.Elem().Int() <= r.longestEnd(), msgGracePeriod)
}

// longestEnd is how many seconds a pod may take to end.
func (r Rules) longestEnd() int64 {
	return int64(cmp.Or(r.MaxGracePeriod, DefaultMaxGracePeriod) / time.Second)
}

// Reduced is a pod without what it runs without just as well: tolerations, which ask for nothing, that the provider does not allow, and what is
// too long of its grace periods. In one sentence it tells what that is; the pod itself and no sentence if it is nothing.
func (r Rules) Reduced(spec *corev1.PodSpec) (reduced *corev1.PodSpec, without string) {
	refused := func(t corev1.Toleration) bool { return r.checkTolerations([]corev1.Toleration{t}) != "" }
	var keys, lacks []string
	for i := range spec.Tolerations {
		if t := &spec.Tolerations[i]; refused(*t) {
			keys = append(keys, cmp.Or(cutOff(t.Key, maxNameShown), "everything"))
		}
	}
	longest, shortened := r.longestEnd(), false
	reduced = spec.DeepCopy()
	shorten := func(seconds *int64) {
		if seconds != nil && *seconds > longest {
			*seconds, shortened = longest, true
		}
	}
	shorten(reduced.TerminationGracePeriodSeconds)
	eachContainer(reduced, func(c *corev1.Container) {
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil {
				shorten(probe.TerminationGracePeriodSeconds)
			}
		}
	})
	if len(keys) > 0 {
		reduced.Tolerations = slices.DeleteFunc(reduced.Tolerations, refused)
		slices.Sort(keys)
		lacks = append(lacks, "it does not tolerate "+enumerated(slices.Compact(keys))+" (offloading.consumers.tolerations)")
	}
	if shortened {
		lacks = append(lacks, fmt.Sprintf("it has %d seconds to end at most (offloading.consumers.maxTerminationGracePeriod)", longest))
	}
	if len(lacks) == 0 {
		return spec, ""
	}
	return reduced, "the pod runs as the provider lets pods from other clusters: " + strings.Join(lacks, ", and ") +
		"; its administrator can allow more, but for taints of the control plane, with the values in brackets"
}

// toleratesControlPlane also holds for the toleration of everything.
func toleratesControlPlane(t corev1.Toleration) bool {
	return t.Key == "" && t.Operator == corev1.TolerationOpExists && t.Effect != corev1.TaintEffectPreferNoSchedule ||
		slices.Contains(controlPlaneTaints, t.Key)
}

// mayMountToken says whether the pod may have a token of the account that it runs as.
func (r Rules) mayMountToken(spec *corev1.PodSpec) bool {
	name := spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	return listed(r.ServiceAccounts, name)
}

// checkTokens refuses projected tokens of an account that the pod may not run as.
func (r Rules) checkTokens(root *field.Path, spec *corev1.PodSpec) field.ErrorList {
	if r.mayMountToken(spec) {
		return nil
	}
	var errs field.ErrorList
	for i := range spec.Volumes {
		for j, source := range ptr.Deref(spec.Volumes[i].Projected, corev1.ProjectedVolumeSource{}).Sources {
			if source.ServiceAccountToken != nil && len(errs) < maxPodErrors {
				errs = append(errs, field.Forbidden(root.Child("volumes").Index(i).Child("projected", "sources").Index(j).
					Child("serviceAccountToken"), msgServiceAccount))
			}
		}
	}
	return errs
}

// whyNotOffloadable lists the fields of a local pod that cannot be honoured at any provider.
func whyNotOffloadable(spec *corev1.PodSpec) []string {
	wrong := 0
	walkPod(nil, reflect.ValueOf(spec), func(_ *field.Path, _ reflect.Type, f podField, _ reflect.Value) bool {
		if !f.offloadable() {
			wrong++
		}
		return f.inside()
	})
	if wrong == 0 {
		return nil // as most pods, whose fields need no names
	}
	why := make([]string, 0, min(wrong, maxPodErrors))
	walkPod(field.NewPath("spec"), reflect.ValueOf(spec), func(path *field.Path, _ reflect.Type, f podField, _ reflect.Value) bool {
		if !f.offloadable() && len(why) < maxPodErrors {
			why = append(why, fmt.Sprintf("%s cannot be offloaded", path))
		}
		return f.inside()
	})
	return why
}

// mostOpen is the provider that offers all that a configuration can offer.
var mostOpen = Rules{ServiceAccounts: []string{"*"}, RuntimeClasses: []string{"*"}, Capabilities: []string{"*"}, Tolerations: []string{"*"},
	CSIDrivers: []string{"*"}, MaxGracePeriod: math.MaxInt64}

// anyNumber stands in the path of an entry of a list.
var anyNumber = regexp.MustCompile(`\[\d+\]`)

// NeverOffloaded names the fields of a new pod that no provider takes, whatever its configuration: each once, in order, as
// ports.hostPort or volumes.hostPath. Nothing is named of most pods. Admission policy liqo-placement says the same.
func NeverOffloaded(local *corev1.Pod) []string {
	var fields []string
	spec, _ := mostOpen.Reduced(&local.Spec)
	refused := func(owner reflect.Type, f podField, value reflect.Value) bool {
		check := podRules[owner.Name()+"."+f.name]
		switch {
		case !f.offloadable():
			return true
		case f.treatment != Mapped || check == nil, local.Spec.HostNetwork && owner == reflect.TypeFor[corev1.ContainerPort]():
			return false // of a pod that shares its host's network the ports of the host are dropped
		}
		return check(mostOpen, value) != ""
	}
	wrong := false
	walkPod(nil, reflect.ValueOf(spec), func(_ *field.Path, owner reflect.Type, f podField, value reflect.Value) bool {
		wrong = wrong || refused(owner, f, value)
		return !wrong && f.inside()
	})
	if !wrong {
		return nil // as most pods, whose fields need no names
	}
	walkPod(field.NewPath("spec"), reflect.ValueOf(spec), func(path *field.Path, owner reflect.Type, f podField, value reflect.Value) bool {
		if !refused(owner, f, value) {
			return f.inside()
		}
		name := strings.TrimPrefix(anyNumber.ReplaceAllString(path.String(), ""), "spec.")
		fields = append(fields, strings.TrimPrefix(strings.TrimPrefix(name, "initContainers."), "containers."))
		return false
	})
	slices.Sort(fields)
	return slices.Compact(fields)
}

// inside tells whether what a field holds is looked at in its turn.
func (f *podField) inside() bool { return f.treatment == Copied || f.treatment == Mapped }

// offloadable tells whether a local pod may have the field set.
func (f *podField) offloadable() bool { return f.inside() || f.treatment == Local }
