package chart

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

const provisioned = "/opt/local-path/pvc-6f0ebff2-85ba-4bd8-9c07-206cdc91259f_shop_data"

// liqosVolume is one of class liqo on a folder of a node.
func liqosVolume(path string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "liqo.io/storage"}},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}},
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "1"}}}
	for _, c := range change {
		c(volume)
	}
	return volume
}

func flowSchema(name string, change ...func(*flowcontrolv1.FlowSchema)) *flowcontrolv1.FlowSchema {
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/managed": "true"}}, Spec: flowcontrolv1.FlowSchemaSpec{
		MatchingPrecedence: 8000, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name},
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: []flowcontrolv1.Subject{
			{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: "liqo.io:tenant:rome"}},
			{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "liqo.io:consumer:rome"}}}}}}}
	for _, c := range change {
		c(schema)
	}
	return schema
}

// T38: a stolen controller manager changes and removes nothing that is not Liqo's: no volumes, no bindings, no order of who is served first.
func TestTheManagerTouchesOnlyItsOwnObjects(t *testing.T) {
	policy := policyNamed(t, valueSets["default"], "managerobjects.yaml", "liqo-controller-manager-objects")
	attempts := func(operation admission.Operation, group, resource string, object, old runtime.Object) attempt {
		return attempt{operation: operation, group: group, resource: resource, name: "x", object: object, old: old}
	}
	created := func(v *corev1.PersistentVolume) attempt {
		return attempts(admission.Create, "", "persistentvolumes", v, nil)
	}
	others := liqosVolume(provisioned, func(v *corev1.PersistentVolume) { v.Name, v.Annotations = "salaries", nil })
	ordered := func(s *flowcontrolv1.FlowSchema) attempt {
		return attempts(admission.Create, flowcontrolv1.GroupName, "flowschemas", s, nil)
	}
	theirs, ours := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "nodes"}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "liqo", Labels: map[string]string{"liqo.io/managed": "true"}}}
	level := func(name string, change func(*flowcontrolv1.PriorityLevelConfiguration)) attempt {
		l := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/managed": "true"}},
			Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To[int32](1), LendablePercent: ptr.To[int32](0), BorrowingLimitPercent: ptr.To[int32](0),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 1, HandSize: 1, QueueLengthLimit: 50}}}}}
		change(l)
		return attempts(admission.Create, flowcontrolv1.GroupName, "prioritylevelconfigurations", l, nil)
	}
	const volume, binding, order = "VolumeNotAllowed", "BindingNotAllowed", "FlowSchemaNotAllowed"
	for what, tc := range map[string]struct {
		attempt attempt
		want    string
	}{
		"a volume of a provisioner's folder": {created(liqosVolume(provisioned)), ""},
		"a volume of a driver": {created(liqosVolume("", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "liqo.io/placeholder", VolumeHandle: "milan/a/b/c"}}
		})), ""},
		"a volume of a folder that is listed": {created(liqosVolume("/mnt/disks/vol1")), ""},
		"a volume beside such a folder":       {created(liqosVolume("/mnt/disks-of-others")), volume},
		"a volume of before that grows":       {attempts(admission.Update, "", "persistentvolumes", liqosVolume("/data/a"), liqosVolume("/data/a")), ""},
		"a volume of the node's root":         {created(liqosVolume("/")), volume},
		"a volume of the node's kubelet":      {created(liqosVolume("/var/lib/kubelet")), volume},
		"a local volume of its root": {created(liqosVolume("", func(v *corev1.PersistentVolume) {
			v.Spec.HostPath, v.Spec.Local = nil, &corev1.LocalVolumeSource{Path: "/"}
		})), volume},
		"a volume that is not Liqo's":    {created(liqosVolume(provisioned, func(v *corev1.PersistentVolume) { v.Annotations = nil })), volume},
		"a volume by another name":       {created(liqosVolume(provisioned, func(v *corev1.PersistentVolume) { v.Name = "loot" })), volume},
		"another size":                   {attempts(admission.Update, "", "persistentvolumes", liqosVolume(provisioned), liqosVolume(provisioned)), ""},
		"a volume for another claim":     {attempts(admission.Update, "", "persistentvolumes", liqosVolume(provisioned, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "shop-rome" }), liqosVolume(provisioned)), volume},
		"a volume for a claim made anew": {attempts(admission.Update, "", "persistentvolumes", liqosVolume(provisioned, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }), liqosVolume(provisioned)), volume},
		"others' volume made its own":    {attempts(admission.Update, "", "persistentvolumes", liqosVolume(provisioned), others), volume},
		"the status of others' volume":   {attempts(admission.Update, "", "persistentvolumes/status", others, others), volume},
		"the end of its volume":          {attempts(admission.Delete, "", "persistentvolumes", nil, liqosVolume(provisioned)), ""},
		"the end of others' volume":      {attempts(admission.Delete, "", "persistentvolumes", nil, others), volume},
		"the end of its binding":         {attempts(admission.Delete, rbacv1.GroupName, "clusterrolebindings", nil, ours), ""},
		"the end of others' binding":     {attempts(admission.Delete, rbacv1.GroupName, "clusterrolebindings", nil, theirs), binding},
		"the end of others' RoleBinding": {attempts(admission.Delete, rbacv1.GroupName, "rolebindings", nil, &rbacv1.RoleBinding{}), binding},
		"a consumer's queue":             {ordered(flowSchema("liqo-consumer-rome")), ""},
		"a queue by another name":        {ordered(flowSchema("last")), order},
		"a queue before Kubernetes' own": {ordered(flowSchema("liqo-consumer-rome", func(s *flowcontrolv1.FlowSchema) { s.Spec.MatchingPrecedence = 2 })), order},
		"a queue of another level":       {ordered(flowSchema("liqo-consumer-rome", func(s *flowcontrolv1.FlowSchema) { s.Spec.PriorityLevelConfiguration.Name = "exempt" })), order},
		"the requests of all nodes":      {ordered(flowSchema("liqo-consumer-rome", func(s *flowcontrolv1.FlowSchema) { s.Spec.Rules[0].Subjects[1].Group.Name = "system:nodes" })), order},
		"the requests of an account": {ordered(flowSchema("liqo-consumer-rome", func(s *flowcontrolv1.FlowSchema) {
			s.Spec.Rules[0].Subjects[0] = flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: "a", Name: "b"}}
		})), order},
		"a consumer's level":      {level("liqo-consumer-rome", func(*flowcontrolv1.PriorityLevelConfiguration) {}), ""},
		"a level by another name": {level("last", func(*flowcontrolv1.PriorityLevelConfiguration) {}), order},
		"a level of all places": {level("liqo-consumer-rome", func(l *flowcontrolv1.PriorityLevelConfiguration) {
			l.Spec.Limited.NominalConcurrencyShares = ptr.To[int32](1000)
		}), order},
		"a level that borrows": {level("liqo-consumer-rome", func(l *flowcontrolv1.PriorityLevelConfiguration) { l.Spec.Limited.BorrowingLimitPercent = nil }), order},
		"a level without bounds": {level("liqo-consumer-rome", func(l *flowcontrolv1.PriorityLevelConfiguration) {
			l.Spec = flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementExempt}
		}), order},
		"a level of queues that fill an API server's memory": {level("liqo-consumer-rome", func(l *flowcontrolv1.PriorityLevelConfiguration) {
			l.Spec.Limited.LimitResponse.Queuing.Queues = 10_000_000
		}), order},
		"a level whose queue is long": {level("liqo-consumer-rome", func(l *flowcontrolv1.PriorityLevelConfiguration) {
			l.Spec.Limited.LimitResponse.Queuing.QueueLengthLimit = 10_000
		}), order},
		"the end of Kubernetes' own level": {attempts(admission.Delete, flowcontrolv1.GroupName, "prioritylevelconfigurations", nil, flowSchema("system")), order},
		"the end of others' FlowSchema":    {attempts(admission.Delete, flowcontrolv1.GroupName, "flowschemas", nil, flowSchema("system-nodes")), order},
		"the end of a consumer's queue":    {attempts(admission.Delete, flowcontrolv1.GroupName, "flowschemas", nil, flowSchema("liqo-consumer-rome")), ""},
		"a FlowSchema that it takes over":  {attempts(admission.Update, flowcontrolv1.GroupName, "flowschemas", flowSchema("liqo-consumer-rome"), flowSchema("system-nodes")), order},
	} {
		t.Run(what, func(t *testing.T) {
			tc.attempt.user = managerUser
			if got := policy.try(t, tc.attempt, nil); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("refused with %q, want %q", got, tc.want)
			}
			if tc.attempt.user = "kubernetes-admin"; policy.try(t, tc.attempt, nil) != "" {
				t.Error("an administrator is refused")
			}
		})
	}
}

// refusal is what a mutating policy whose change cannot be made says; empty if it lets the request pass.
func (m *mutation) refusal(t *testing.T, who, subresource string, operation admission.Operation, pod *corev1.Pod) string {
	t.Helper()
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	attributes := admission.NewAttributesRecord(pod, nil, kind, "shop-rome", pod.Name, resource, subresource, operation, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: who})
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(pod)}
	ctx := m.compiler.CreateContext(context.Background())
	result := m.matcher.Match(ctx, versioned, nil, nil)
	if result.Error != nil {
		t.Fatal(result.Error)
	}
	if !result.Matches {
		return ""
	}
	_, err := m.patchers[0].Patch(ctx, patch.Request{MatchedResource: schema.GroupVersionResource(resource), ObjectInterfaces: admission.NewObjectInterfacesFromScheme(clientgoscheme.Scheme),
		VersionedAttributes: versioned, OptionalVariables: plugincel.OptionalVariableBindings{}}, celconfig.RuntimeCELCostBudget)
	if err == nil {
		t.Fatal("the change can be made")
	}
	return err.Error()
}

// T31: whoever took the controller manager over gets no node by a pod either.
func TestTheManagersPodsGetAtNoNode(t *testing.T) {
	const pods = 4
	for values, capabilities := range map[string]bool{"": false, "offloading: {consumers: {capabilities: [SYS_ADMIN]}}": true} {
		m := compiledAt(t, values, "managerobjects.yaml", pods)
		for what, tc := range map[string]struct {
			change  func(*corev1.PodSpec)
			refused bool
		}{
			"a pod": {func(*corev1.PodSpec) {}, false},
			"an ordinary one": {func(s *corev1.PodSpec) {
				s.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			}, false},
			"the node's files": {func(s *corev1.PodSpec) {
				s.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			}, true},
			"the node's network": {func(s *corev1.PodSpec) { s.HostNetwork = true }, true},
			"its processes":      {func(s *corev1.PodSpec) { s.HostPID = true }, true},
			"its shared memory":  {func(s *corev1.PodSpec) { s.HostIPC = true }, true},
			"its ports":          {func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 22}} }, true},
			"privileges": {func(s *corev1.PodSpec) {
				s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
			}, true},
			"privileges at first": {func(s *corev1.PodSpec) {
				s.InitContainers = []corev1.Container{{SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}}
			}, true},
			"the kernel's files": {func(s *corev1.PodSpec) {
				s.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}
			}, true},
			"modules":            {func(s *corev1.PodSpec) { added(s, "SYS_MODULE") }, true},
			"modules by prefix":  {func(s *corev1.PodSpec) { added(s, "cap_sys_module") }, true},
			"everything":         {func(s *corev1.PodSpec) { added(s, "ALL") }, true},
			"a bound port":       {func(s *corev1.PodSpec) { added(s, "NET_BIND_SERVICE") }, false},
			"tracing":            {func(s *corev1.PodSpec) { added(s, "SYS_PTRACE") }, false},
			"what a value names": {func(s *corev1.PodSpec) { added(s, "SYS_ADMIN") }, !capabilities},
		} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}
			tc.change(&pod.Spec)
			if why := m.refusal(t, managerUser, "", admission.Create, pod); (why != "") != tc.refused || tc.refused && !strings.Contains(why, "PodNotAllowed") {
				t.Errorf("%s: %q", what, why)
			}
			if why := m.refusal(t, "kubernetes-admin", "", admission.Create, pod); why != "" {
				t.Errorf("%s of an administrator: %q", what, why)
			}
		}
		debugging := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "a"}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "b"}}}}}
		if why := m.refusal(t, managerUser, "ephemeralcontainers", admission.Update, debugging); why != "" {
			t.Errorf("a container for debugging beside what the provider put in: %s", why)
		}
		debugging.Spec.EphemeralContainers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		if why := m.refusal(t, managerUser, "ephemeralcontainers", admission.Update, debugging); why == "" {
			t.Error("a privileged container for debugging is let in")
		}
	}
}

func added(spec *corev1.PodSpec, capability corev1.Capability) {
	spec.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{capability}}}
}

// T25: a consumer opens streams into the containers that it brought, and into no sidecar that the provider put beside them.
func TestStreamsGoToContainersThatTheConsumerBrought(t *testing.T) {
	policy := policyNamed(t, valueSets["default"], "admissionpolicies.yaml", "liqo-consumer-streams")
	pod := func(annotations map[string]string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: annotations, Labels: map[string]string{"liqo.io/managed-by": "shadowpod", "offloading.liqo.io/origin": "rome"}}}
		for _, name := range []string{"a", "b", "sidecar"} {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		}
		p.Spec.InitContainers = []corev1.Container{{Name: "vault-init"}}
		return p
	}
	listed := map[string]string{"offloading.liqo.io/containers": "a,b"}
	for what, tc := range map[string]struct {
		pod       *corev1.Pod
		container string
		refused   bool
	}{
		"its own":              {pod(listed), "a", false},
		"its other one":        {pod(listed), "b", false},
		"the provider's":       {pod(listed), "sidecar", true},
		"an injected init":     {pod(listed), "vault-init", true},
		"one for debugging":    {pod(map[string]string{"offloading.liqo.io/containers": "a,b,debugger"}), "debugger", false},
		"an administrator's":   {pod(listed), "debugger", true},
		"none by name":         {pod(listed), "", true},
		"its own by default":   {pod(map[string]string{"offloading.liqo.io/containers": "a,b", "kubectl.kubernetes.io/default-container": "b"}), "", false},
		"another by default":   {pod(map[string]string{"offloading.liqo.io/containers": "a,b", "kubectl.kubernetes.io/default-container": "sidecar"}), "", true},
		"a pod of before":      {pod(nil), "a", false},
		"none of several, all": {pod(map[string]string{"offloading.liqo.io/containers": "a,b,sidecar"}), "", false},
	} {
		for _, stream := range []runtime.Object{&corev1.PodExecOptions{Container: tc.container}, &corev1.PodAttachOptions{Container: tc.container}} {
			resource := "pods/exec"
			if _, attach := stream.(*corev1.PodAttachOptions); attach {
				resource = "pods/attach"
			}
			why := policy.try(t, attempt{user: "liqo.io:consumer:rome:a", groups: []string{"liqo.io:consumer:rome"}, operation: admission.Connect, resource: resource,
				namespace: twinNamed("shop-rome"), name: "web", object: stream}, tc.pod)
			if (why != "") != tc.refused || tc.refused && !strings.Contains(why, "NotYourContainer") {
				t.Errorf("%s by %s: %q", what, resource, why)
			}
		}
		if why := policy.try(t, attempt{user: "liqo.io:consumer:rome:a", groups: []string{"liqo.io:consumer:rome"}, operation: admission.Connect, resource: "pods/portforward",
			namespace: twinNamed("shop-rome"), name: "web", object: &corev1.PodPortForwardOptions{}}, tc.pod); why != "" {
			t.Errorf("port-forward: %q", why)
		}
	}
}

// T10: what the provider's admission puts beside a consumer's containers has files that are not the consumer's to read by its processes.
func TestNoProcessesAreSharedWithWhatTheProviderPutsIn(t *testing.T) {
	policy := policyNamed(t, valueSets["default"], "managerobjects.yaml", "liqo-consumer-processes")
	containers := func(names ...string) (list []corev1.Container) {
		for _, name := range names {
			list = append(list, corev1.Container{Name: name})
		}
		return list
	}
	for what, tc := range map[string]struct {
		who               string
		shared            bool
		beside, before    []corev1.Container
		refused, unlisted bool
	}{
		"nothing is put in":     {who: managerUser, shared: true, before: containers("init")},
		"a sidecar":             {who: managerUser, shared: true, beside: containers("sidecar"), refused: true},
		"a sidecar that starts": {who: managerUser, shared: true, before: containers("init", "sidecar"), refused: true},
		"processes are apart":   {who: managerUser, beside: containers("sidecar")},
		"no consumer's pod":     {who: "kubernetes-admin", shared: true, beside: containers("sidecar")},
		"nothing is listed":     {who: managerUser, shared: true, refused: true, unlisted: true},
	} {
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"liqo.io/managed-by": "shadowpod"},
			Annotations: map[string]string{"offloading.liqo.io/containers": "init,a"}},
			Spec: corev1.PodSpec{ShareProcessNamespace: ptr.To(tc.shared), Containers: append(containers("a"), tc.beside...), InitContainers: tc.before}}
		if tc.unlisted {
			pod.Annotations = nil
		}
		why := policy.try(t, attempt{user: tc.who, operation: admission.Create, resource: "pods", namespace: twinNamed("shop-rome"), name: "web", object: pod}, nil)
		if (why != "") != tc.refused || tc.refused && !strings.Contains(why, "PodNotAllowed") {
			t.Errorf("%s: %q", what, why)
		}
	}
}

// T9: a pod that names no Secrets to pull images with has none of its account.
func TestPodsOfConsumersHaveNoPullSecretsOfTheirAccount(t *testing.T) {
	m := compiledAt(t, "", "managerobjects.yaml", 2)
	pod := func(annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: annotations},
			Spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "providers-registry"}}}}
	}
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	for what, tc := range map[string]struct {
		pod  *corev1.Pod
		who  string
		left int
	}{
		"it named none":        {pod(map[string]string{"offloading.liqo.io/no-pull-secrets": "true"}), managerUser, 0},
		"it named its own":     {pod(nil), managerUser, 1},
		"it is no consumer's":  {pod(map[string]string{"offloading.liqo.io/no-pull-secrets": "true"}), "kubernetes-admin", 1},
		"there is nothing yet": {&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"offloading.liqo.io/no-pull-secrets": "true"}}}, managerUser, 0},
	} {
		attributes := admission.NewAttributesRecord(tc.pod, nil, kind, "default", "a", resource, "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: tc.who})
		if got := m.mutate(t, attributes, nil).(*corev1.Pod); len(got.Spec.ImagePullSecrets) != tc.left {
			t.Errorf("%s: %v", what, got.Spec.ImagePullSecrets)
		}
	}
}
