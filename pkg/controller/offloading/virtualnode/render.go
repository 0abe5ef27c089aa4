package virtualnode

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
)

const (
	kubeletPort = 10250
	nonRoot     = 65532
	stateVolume = "state"
	stateDir    = "/var/lib/liqo"
	// heartbeat is the file that the virtual kubelet touches while it works; its probe reads the file, so that no listener
	// without authentication is needed.
	heartbeat = stateDir + "/healthy"
)

// Rendering is what a virtual kubelet's Deployment is rendered from.
type Rendering struct {
	// VirtualNode that the virtual kubelet serves.
	VirtualNode *offloadingv1beta1.VirtualNode
	// Template says how virtual kubelets are run.
	Template *offloadingv1beta1.VkOptionsTemplateSpec
	// ClusterID of the local cluster.
	ClusterID string
	// Namespace is Liqo's own.
	Namespace string
	// PodCIDRs of the local cluster.
	PodCIDRs []string
	// NodeIdentity is who the virtual kubelet is for the local cluster; empty means a node.
	NodeIdentity v1alpha1.NodeIdentity
	// PlainMetrics says whether metrics, if any, are served over HTTP to whoever reaches the port.
	PlainMetrics bool
}

// Render returns the Deployment of a virtual kubelet, with the digest of itself in an annotation.
func Render(in Rendering) (*appsv1.Deployment, error) {
	vn := in.VirtualNode
	labels := selectorOf(vn)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: vn.Namespace, Name: vn.Name}}
	if vn.Spec.Template != nil {
		d.Labels, d.Annotations = maps.Clone(vn.Spec.Template.Labels), maps.Clone(vn.Spec.Template.Annotations)
		d.Spec = *vn.Spec.Template.Spec.DeepCopy()
	} else {
		d.Labels, d.Annotations = maps.Clone(in.Template.ExtraLabels), maps.Clone(in.Template.ExtraAnnotations)
		d.Spec = in.spec()
	}
	d.Labels = over(d.Labels, labels, map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: string(vn.Spec.ClusterID)})
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	pod := &d.Spec.Template
	pod.Labels = over(pod.Labels, labels, map[string]string{corev1beta1.RemoteClusterIDLabel: string(vn.Spec.ClusterID)})
	pod.Spec.ServiceAccountName = vn.Name
	whole, err := digest(d)
	if err != nil {
		return nil, fmt.Errorf("digesting the Deployment of VirtualNode %s/%s: %w", vn.Namespace, vn.Name, err)
	}
	d.Annotations = over(d.Annotations, map[string]string{offloadingv1beta1.RenderedHashAnnotation: whole})
	return d, nil
}

// selectorOf are the labels by which a virtual kubelet's pods are found. They cannot change later.
func selectorOf(vn *offloadingv1beta1.VirtualNode) map[string]string {
	return map[string]string{
		offloadingv1beta1.ComponentLabel:   offloadingv1beta1.VirtualKubeletComponent,
		offloadingv1beta1.VirtualNodeLabel: vn.Name,
	}
}

func (in Rendering) spec() appsv1.DeploymentSpec {
	t := in.Template
	return appsv1.DeploymentSpec{
		Replicas: ptr.To(ptr.Deref(t.Replicas, 1)),
		// The earlier pod works until the new one has all that it needs to take over, which a Lease sees to: one is active at a time.
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
		}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(t.ExtraLabels), Annotations: maps.Clone(t.ExtraAnnotations)},
			Spec: corev1.PodSpec{
				AutomountServiceAccountToken: ptr.To(true),
				ImagePullSecrets:             slices.Clone(t.ImagePullSecrets),
				Tolerations:                  slices.Clone(t.Tolerations),
				PriorityClassName:            t.PriorityClassName,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](nonRoot), RunAsGroup: ptr.To[int64](nonRoot), FSGroup: ptr.To[int64](nonRoot),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Volumes: []corev1.Volume{{Name: stateVolume, VolumeSource: corev1.VolumeSource{
					EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("16Mi"))}}}},
				Containers: []corev1.Container{in.container()},
			},
		},
	}
}

func (in Rendering) container() corev1.Container {
	t := in.Template
	resources := *t.Resources.DeepCopy()
	if len(resources.Requests) == 0 {
		resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	}
	ports := []corev1.ContainerPort{{Name: "kubelet", ContainerPort: kubeletPort, Protocol: corev1.ProtocolTCP}}
	if port := metricsPort(t); port != 0 {
		ports = append(ports, corev1.ContainerPort{Name: "metrics", ContainerPort: port, Protocol: corev1.ProtocolTCP})
	}
	env := []corev1.EnvVar{fromField("POD_IP", "status.podIP"), fromField("POD_NAME", "metadata.name"), fromField("POD_NAMESPACE", "metadata.namespace")}
	if _, limited := resources.Limits[corev1.ResourceMemory]; limited {
		// Go collects garbage more often before the container is killed.
		env = append(env, corev1.EnvVar{Name: "GOMEMLIMIT", ValueFrom: &corev1.EnvVarSource{
			ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1")}}})
	}
	ready := []string{"/usr/bin/virtual-kubelet", "check", "--ready", "--file", heartbeat}
	return corev1.Container{
		Name: "virtual-kubelet", Image: t.ContainerImage, ImagePullPolicy: t.PullPolicy, Args: in.args(), Ports: ports, Resources: resources,
		Env: env,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true), Privileged: ptr.To(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: stateVolume, MountPath: stateDir}},
		// Whoever peers waits for it: to ask once a second all the time would cost more than the answer is worth. What does not start within ten
		// minutes starts again.
		StartupProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: ready}}, PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 600,
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: ready}}, PeriodSeconds: 2, TimeoutSeconds: 5, FailureThreshold: 3,
		},
		LivenessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/usr/bin/virtual-kubelet", "check", "--file", heartbeat}}},
			InitialDelaySeconds: 60, PeriodSeconds: 20, TimeoutSeconds: 5, FailureThreshold: 6,
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

func (in Rendering) args() []string {
	vn, t := in.VirtualNode, in.Template
	args := []string{
		"--home-cluster-id=" + in.ClusterID,
		"--foreign-cluster-id=" + string(vn.Spec.ClusterID),
		"--nodename=" + vn.Name,
		"--tenant-namespace=" + vn.Namespace,
		"--liqo-namespace=" + in.Namespace,
		"--foreign-kubeconfig-secret-name=" + secretOf(vn),
		"--listen-port=" + strconv.Itoa(kubeletPort),
		"--create-node=" + strconv.FormatBool(createsNode(vn, t)),
	}
	if in.NodeIdentity != "" && in.NodeIdentity != v1alpha1.NodeIdentityNode {
		args = append(args, "--node-identity="+string(in.NodeIdentity))
	}
	args = append(args, "--vk-lease-enabled=true")
	if t.Replicas != nil && *t.Replicas > 1 {
		// Another replica is there to take over when the active one is lost: for that the Lease is worth more writes.
		args = append(args, "--vk-lease-duration=30s", "--vk-lease-renew-interval=20s", "--vk-lease-retry-period=10s")
	}
	for _, cidr := range in.PodCIDRs {
		args = append(args, "--local-podcidr="+cidr)
	}
	if t.MetricsEnabled {
		args = append(args, "--metrics-enabled=true")
		if t.MetricsAddress != "" {
			args = append(args, "--metrics-address="+t.MetricsAddress)
		}
		if in.PlainMetrics {
			args = append(args, "--metrics-plain-http=true")
		}
	}
	return append(args, t.ExtraArgs...)
}

func secretOf(vn *offloadingv1beta1.VirtualNode) string {
	if vn.Spec.KubeconfigSecretRef == nil {
		return ""
	}
	return vn.Spec.KubeconfigSecretRef.Name
}

// createsNode tells whether a VirtualNode has a Node; what it leaves open, its template says.
func createsNode(vn *offloadingv1beta1.VirtualNode, t *offloadingv1beta1.VkOptionsTemplateSpec) bool {
	return ptr.Deref(vn.Spec.CreateNode, t == nil || t.CreateNode)
}

func metricsPort(t *offloadingv1beta1.VkOptionsTemplateSpec) int32 {
	if !t.MetricsEnabled {
		return 0
	}
	_, text, err := net.SplitHostPort(t.MetricsAddress)
	if err != nil {
		return 0
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(port)
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// over returns the entries of all maps; later ones win.
func over(base map[string]string, others ...map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, base)
	for _, other := range others {
		maps.Copy(out, other)
	}
	return out
}

func digest(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}
