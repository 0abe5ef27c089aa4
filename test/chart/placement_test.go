package chart

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"helm.sh/helm/v3/pkg/chartutil"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/reflection"
)

// place gives the pod that the API server stores for one of a namespace that is offloaded so.
func place(t failer, m *mutation, pod *corev1.Pod, offloading *offloadingv1beta1.NamespaceOffloading) *corev1.Pod {
	t.Helper()
	text, err := json.Marshal(offloading)
	if err != nil {
		t.Fatal(err)
	}
	// Parameters come as they were stored, whatever a client sent.
	params := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &params.Object); err != nil {
		t.Fatal(err)
	}
	return m.apply(t, pod, params, corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")).(*corev1.Pod)
}

func drawTerms(most int) *rapid.Generator[[]corev1.NodeSelectorTerm] {
	requirement := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	expressions := rapid.SampledFrom([]corev1.NodeSelectorRequirement{requirement("region", "In", "north", "south"), requirement("region", "NotIn", "south"),
		requirement("gpu", "Exists"), requirement("liqo.io/type", "In", "virtual-node"), requirement("liqo.io/type", "NotIn", "virtual-node")})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{
			MatchExpressions: rapid.SliceOfNDistinct(expressions, 0, 3, func(r corev1.NodeSelectorRequirement) string { return r.Key + string(r.Operator) }).Draw(t, "expressions"),
			MatchFields:      rapid.SliceOfN(rapid.Just(requirement(metav1.ObjectNameField, "In", "one")), 0, 1).Draw(t, "fields"),
		}
	}), 0, most)
}

// What the API server does by itself from Kubernetes 1.36 on is what the webhook does before.
func TestPlacementIsTheWebhooks(t *testing.T) {
	policy := compiled(t, valueSets["default"], "placement.yaml")
	rapid.Check(t, func(t *rapid.T) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{
			Containers:  []corev1.Container{{Name: "c", Image: "i"}},
			Tolerations: rapid.SliceOfN(rapid.SampledFrom([]corev1.Toleration{{Key: "own", Operator: "Exists"}, placement.VirtualNodeToleration()}), 0, 2).Draw(t, "tolerations"),
		}}
		if class := rapid.SampledFrom([]string{"", "liqo", "gvisor"}).Draw(t, "runtime class"); class != "" {
			pod.Spec.RuntimeClassName = ptr.To(class)
		}
		preferred := []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "fast", Operator: "Exists"}}}}}
		switch rapid.SampledFrom([]string{"none", "empty", "pods", "preferred", "required"}).Draw(t, "affinity") {
		case "empty":
			pod.Spec.Affinity = &corev1.Affinity{}
		case "pods":
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
		case "preferred":
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}
		case "required":
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred,
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: drawTerms(3).Draw(t, "own")}}}
		}
		offloading := &offloadingv1beta1.NamespaceOffloading{Spec: offloadingv1beta1.NamespaceOffloadingSpec{
			PodOffloadingStrategy: rapid.SampledFrom([]offloadingv1beta1.PodOffloadingStrategyType{"", "Local", "Remote", "LocalAndRemote"}).Draw(t, "strategy"),
			ClusterSelector:       corev1.NodeSelector{NodeSelectorTerms: drawTerms(3).Draw(t, "selector")},
		}}
		if rapid.Bool().Draw(t, "unoffloading") {
			offloading.DeletionTimestamp = &metav1.Time{}
			*offloading.DeletionTimestamp = metav1.Now()
		}

		want := pod.DeepCopy()
		if offloading.DeletionTimestamp == nil {
			placement.MutatePod(want, placement.PodRules{Strategy: offloading.Spec.PodOffloadingStrategy, Selector: offloading.Spec.ClusterSelector})
		}
		got := place(t, policy, pod.DeepCopy(), offloading)
		if diff := cmp.Diff(normal(want), normal(got), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(got, place(t, policy, got.DeepCopy(), offloading), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("once more: %s", diff)
		}
	})
}

// breaking are pods that no provider takes, by the field that the policy names, and beside them some that differ little.
func breaking() map[string]func(*corev1.Pod) {
	all := map[string]func(*corev1.Pod){}
	for _, init := range []bool{false, true} {
		container := func(change func(*corev1.Container)) func(*corev1.Pod) {
			return func(p *corev1.Pod) {
				if init {
					p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "i"}}
					change(&p.Spec.InitContainers[0])
					return
				}
				change(&p.Spec.Containers[0])
			}
		}
		add := func(name string, change func(*corev1.Container)) {
			all[fmt.Sprintf("%s, init container: %v", name, init)] = container(change)
		}
		secured := func(name string, s corev1.SecurityContext) {
			add(name, func(c *corev1.Container) { c.SecurityContext = &s })
		}
		add("a host port", func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}} })
		add("a host address", func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostIP: "127.0.0.1"}} })
		add("a port", func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80}} })
		add("claims", func(c *corev1.Container) { c.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}} })
		for name, host := range map[string]string{"another host": "10.0.0.1", "no host": ""} {
			get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: host, Path: "/"}}
			tcp := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: host}}
			hook := &corev1.LifecycleHandler{HTTPGet: get.HTTPGet}
			add("liveness of "+name, func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{ProbeHandler: get} })
			add("readiness of "+name, func(c *corev1.Container) { c.ReadinessProbe = &corev1.Probe{ProbeHandler: tcp} })
			add("startup of "+name, func(c *corev1.Container) { c.StartupProbe = &corev1.Probe{ProbeHandler: get} })
			add("hooks of "+name, func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PostStart: hook, PreStop: hook} })
		}
		secured("privileged", corev1.SecurityContext{Privileged: ptr.To(true)})
		secured("not privileged", corev1.SecurityContext{Privileged: ptr.To(false)})
		secured("unmasked proc", corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)})
		secured("default proc", corev1.SecurityContext{ProcMount: ptr.To(corev1.DefaultProcMount)})
		secured("mighty capabilities, which a provider may allow", corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}})
	}
	contexts := func(name string, seLinux *corev1.SELinuxOptions, seccomp *corev1.SeccompProfile, appArmor *corev1.AppArmorProfile, windows *corev1.WindowsSecurityContextOptions) {
		all[name+" of a container"] = func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{SELinuxOptions: seLinux, SeccompProfile: seccomp, AppArmorProfile: appArmor, WindowsOptions: windows}
		}
		all[name+" of the pod"] = func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: seLinux, SeccompProfile: seccomp, AppArmorProfile: appArmor, WindowsOptions: windows}
		}
	}
	contexts("SELinux", &corev1.SELinuxOptions{User: "u", Role: "r", Type: "spc_t"}, nil, nil, nil)
	contexts("harmless SELinux", &corev1.SELinuxOptions{Type: "container_t", Level: "s0"}, nil, nil, nil)
	contexts("unconfined", nil, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}, &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}, nil)
	contexts("confined", nil, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}, &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}, nil)
	contexts("Windows", nil, nil, nil, &corev1.WindowsSecurityContextOptions{HostProcess: ptr.To(true), GMSACredentialSpecName: ptr.To("a"), GMSACredentialSpec: ptr.To("b")})
	all["a sysctl"] = func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
	}
	all["a safe sysctl"] = func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.tcp_rmem", Value: "1"}}}
	}
	for _, name := range []string{"kernel/shm_rmid_forced", "net/ipv4/tcp_rmem", "net.ipv4/tcp_rmem", "kernel/msgmax"} {
		all["sysctl "+name] = func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: name, Value: "1"}}}
		}
	}
	all["resource claims"] = func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }
	all["ports of a shared host"] = func(p *corev1.Pod) {
		p.Spec.HostNetwork, p.Spec.Containers[0].Ports = true, []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, HostIP: "::1"}}
	}
	for _, toleration := range []corev1.Toleration{{Operator: "Exists"}, {Operator: "Exists", Effect: "NoExecute"}, {Operator: "Exists", Effect: "PreferNoSchedule"},
		{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists"}, {Key: "node-role.kubernetes.io/etcd", Value: "true"}, {Key: "node.kubernetes.io/not-ready", Operator: "Exists"}} {
		all[fmt.Sprintf("a toleration: %+v", toleration)] = func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{toleration} }
	}
	volume := func(name string, source corev1.VolumeSource) {
		all[name] = func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
	}
	sources := reflect.TypeFor[corev1.VolumeSource]()
	for i := range sources.NumField() {
		var source corev1.VolumeSource
		reflect.ValueOf(&source).Elem().Field(i).Set(reflect.New(sources.Field(i).Type.Elem()))
		volume("a volume of kind "+sources.Field(i).Name, source)
	}
	projected := reflect.TypeFor[corev1.VolumeProjection]()
	for i := range projected.NumField() {
		var source corev1.VolumeProjection
		reflect.ValueOf(&source).Elem().Field(i).Set(reflect.New(projected.Field(i).Type.Elem()))
		volume("a projection of "+projected.Field(i).Name, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source}}})
	}
	for name, spec := range map[string]corev1.PersistentVolumeClaimSpec{"an ephemeral volume of a name": {VolumeName: "pv"}, "an ephemeral volume": {},
		"an ephemeral volume from elsewhere": {DataSourceRef: &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "a", Namespace: ptr.To("b")}}} {
		volume(name, corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec}}})
	}
	return all
}

// What no provider takes is kept at home, with a note of why, by the policy as by the webhook; whoever must not or wants not to stay at
// home is not.
func TestWhatNoProviderTakesStaysAtHome(t *testing.T) {
	policy := compiled(t, valueSets["default"], "placement.yaml")
	kept := 0
	for name, change := range breaking() {
		for _, strategy := range []offloadingv1beta1.PodOffloadingStrategyType{"", "Remote"} {
			for _, asks := range []bool{false, true} {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
				change(pod)
				if asks {
					pod.Spec.NodeSelector = map[string]string{"liqo.io/type": "virtual-node"}
					pod.Annotations = map[string]string{"own": "x"}
				}
				offloading := &offloadingv1beta1.NamespaceOffloading{Spec: offloadingv1beta1.NamespaceOffloadingSpec{PodOffloadingStrategy: strategy}}
				want := pod.DeepCopy()
				placement.MutatePod(want, placement.PodRules{Strategy: strategy, Never: reflection.NeverOffloaded(pod)})
				got := place(t, policy, pod.DeepCopy(), offloading)
				if diff := cmp.Diff(normal(want), normal(got), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s, strategy %q, asks for a virtual node: %v: %s", name, strategy, asks, diff)
				}
				if got.Annotations["offloading.liqo.io/kept-at-home"] != "" {
					kept++
				}
			}
		}
	}
	if kept < 50 {
		t.Errorf("%d pods are kept at home", kept)
	}
}

// The toleration that a pod was given stays when somebody replaces the list; nothing else is done to a pod that exists.
func TestTheTolerationOfAPlacedPodStays(t *testing.T) {
	policy := compiledAt(t, valueSets["default"], "placement.yaml", 2)
	own, given := corev1.Toleration{Key: "own", Operator: "Exists"}, placement.VirtualNodeToleration()
	for name, tc := range map[string]struct{ old, next, want []corev1.Toleration }{
		"another list":                 {[]corev1.Toleration{given}, []corev1.Toleration{own}, []corev1.Toleration{own, given}},
		"no list":                      {[]corev1.Toleration{own, given}, nil, []corev1.Toleration{given}},
		"the list with it":             {[]corev1.Toleration{given}, []corev1.Toleration{given, own}, []corev1.Toleration{given, own}},
		"a pod that was not placed":    {nil, []corev1.Toleration{own}, []corev1.Toleration{own}},
		"a pod with a list of its own": {[]corev1.Toleration{own}, []corev1.Toleration{own}, []corev1.Toleration{own}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tc.old}}, &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tc.next}}
			got := policy.update(t, after, before, corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")).(*corev1.Pod)
			if diff := cmp.Diff(tc.want, got.Spec.Tolerations); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every API server decides about the pods of offloaded namespaces: by itself if it can, else by asking the webhook about each.
func TestSomeoneDecidesAboutEveryPod(t *testing.T) {
	for _, tc := range []struct {
		version       chartutil.KubeVersion
		byItself      bool
		failurePolicy admissionregistrationv1.FailurePolicyType
	}{
		{chartutil.KubeVersion{Version: "v1.36.0-rc.0", Major: "1", Minor: "36"}, true, admissionregistrationv1.Ignore},
		{chartutil.KubeVersion{Version: "v1.35.9", Major: "1", Minor: "35"}, false, admissionregistrationv1.Fail},
	} {
		rendered, err := renderFor(t, tc.version, valueSets["default"])
		if err != nil {
			t.Fatal(err)
		}
		if policy := strings.Contains(rendered["liqo/templates/placement.yaml"], "kind: MutatingAdmissionPolicyBinding"); policy != tc.byItself {
			t.Errorf("%s: policy liqo-placement is there: %v, want %v", tc.version.Version, policy, tc.byItself)
		}
		var configuration admissionregistrationv1.MutatingWebhookConfiguration
		if err := yaml.UnmarshalStrict([]byte(strings.Split(rendered["liqo/templates/webhooks.yaml"], "\n---")[0]), &configuration); err != nil {
			t.Fatal(err)
		}
		pods := configuration.Webhooks[0]
		if pods.Name != "pod.mutate.liqo.io" || *pods.FailurePolicy != tc.failurePolicy || (pods.ObjectSelector != nil) != tc.byItself {
			t.Errorf("%s: the first webhook is %s, fails with %s and selects %v", tc.version.Version, pods.Name, *pods.FailurePolicy, pods.ObjectSelector)
		}
	}
}

// normal leaves terms that select nothing out, which say nothing beside one that selects something.
func normal(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		some := len(required.NodeSelectorTerms) > 0
		required.NodeSelectorTerms = slices.DeleteFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
			return len(term.MatchExpressions)+len(term.MatchFields) == 0
		})
		if some && len(required.NodeSelectorTerms) == 0 {
			required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
		}
	}
	return pod
}

// BenchmarkPlacement is what the policy costs the API server for each pod.
func BenchmarkPlacement(b *testing.B) {
	policy := compiled(b, valueSets["default"], "placement.yaml")
	offloading := &offloadingv1beta1.NamespaceOffloading{Spec: offloadingv1beta1.NamespaceOffloadingSpec{PodOffloadingStrategy: "Remote"}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	for b.Loop() {
		place(b, policy, pod, offloading)
	}
}
