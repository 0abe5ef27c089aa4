package reflection

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Treatment is what happens to one field of a pod on its way to the provider.
type Treatment string

const (
	// Unclassified fields were added by a Kubernetes version that nobody looked at yet: they are refused on both sides.
	Unclassified Treatment = ""
	// Copied fields travel as they are and are accepted as they are.
	Copied Treatment = "copied"
	// Mapped fields travel changed, or are accepted only within the provider's rules.
	Mapped Treatment = "mapped"
	// Local fields mean something in the consumer's cluster only: they stay there. The provider refuses them.
	Local Treatment = "local"
	// Denied fields cannot be honoured at the provider, and leaving them out would change what the pod is allowed to do
	// or how it works: a pod that sets one is not offloaded. The provider refuses them, too.
	Denied Treatment = "refused"
)

// fields of one struct type by treatment; names are those of the JSON form, embedded structs those of their type.
type fields struct{ copied, mapped, local, refused string }

// podFields classifies every field of every struct that a PodSpec is made of. Structs that only hang below a local or
// refused field are not listed.
var podFields = index(map[reflect.Type]fields{
	reflect.TypeFor[corev1.PodSpec](): {
		copied: "volumes initContainers containers ephemeralContainers restartPolicy activeDeadlineSeconds " +
			"dnsPolicy dnsConfig shareProcessNamespace securityContext imagePullSecrets hostname subdomain " +
			"hostAliases enableServiceLinks topologySpreadConstraints setHostnameAsFQDN hostUsers resources hostnameOverride",
		mapped: "nodeSelector affinity tolerations serviceAccountName serviceAccount automountServiceAccountToken runtimeClassName readinessGates " +
			"terminationGracePeriodSeconds",
		local: "nodeName schedulerName priorityClassName priority preemptionPolicy overhead os schedulingGates " +
			"schedulingGroup evictionResponders hostNetwork hostPID hostIPC",
		refused: "resourceClaims",
	},
	reflect.TypeFor[corev1.Container](): {
		copied: "name image command args workingDir ports envFrom env resources resizePolicy restartPolicy restartPolicyRules " +
			"volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath " +
			"terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty",
	},
	reflect.TypeFor[corev1.EphemeralContainer](): {copied: "EphemeralContainerCommon targetContainerName"},
	reflect.TypeFor[corev1.EphemeralContainerCommon](): {
		copied: "name image command args workingDir ports envFrom env resources resizePolicy restartPolicy restartPolicyRules " +
			"volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath " +
			"terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty",
	},
	reflect.TypeFor[corev1.ContainerPort]():                   {copied: "name containerPort protocol", mapped: "hostPort hostIP"},
	reflect.TypeFor[corev1.ContainerResizePolicy]():           {copied: "resourceName restartPolicy"},
	reflect.TypeFor[corev1.ContainerRestartRule]():            {copied: "action exitCodes"},
	reflect.TypeFor[corev1.ContainerRestartRuleOnExitCodes](): {copied: "operator values"},
	reflect.TypeFor[corev1.ResourceRequirements]():            {copied: "limits requests", refused: "claims"},
	reflect.TypeFor[corev1.VolumeMount](): {
		copied: "name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr bindMountOptions"},
	reflect.TypeFor[corev1.VolumeDevice](): {copied: "name devicePath"},

	// Environment.
	reflect.TypeFor[corev1.EnvFromSource]():         {copied: "prefix configMapRef secretRef"},
	reflect.TypeFor[corev1.ConfigMapEnvSource]():    {mapped: "LocalObjectReference", copied: "optional"},
	reflect.TypeFor[corev1.SecretEnvSource]():       {copied: "LocalObjectReference optional"},
	reflect.TypeFor[corev1.EnvVar]():                {copied: "name value valueFrom"},
	reflect.TypeFor[corev1.EnvVarSource]():          {mapped: "fieldRef", copied: "resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef"},
	reflect.TypeFor[corev1.ObjectFieldSelector]():   {copied: "apiVersion fieldPath"},
	reflect.TypeFor[corev1.ResourceFieldSelector](): {copied: "containerName resource divisor"},
	reflect.TypeFor[corev1.ConfigMapKeySelector]():  {mapped: "LocalObjectReference", copied: "key optional"},
	reflect.TypeFor[corev1.SecretKeySelector]():     {copied: "LocalObjectReference key optional"},
	reflect.TypeFor[corev1.FileKeySelector]():       {copied: "volumeName path key optional"},
	reflect.TypeFor[corev1.LocalObjectReference]():  {copied: "name"},

	// Probes and hooks.
	reflect.TypeFor[corev1.Probe](): {copied: "ProbeHandler initialDelaySeconds timeoutSeconds periodSeconds " +
		"successThreshold failureThreshold", mapped: "terminationGracePeriodSeconds"},
	reflect.TypeFor[corev1.ProbeHandler]():     {copied: "exec httpGet tcpSocket grpc"},
	reflect.TypeFor[corev1.Lifecycle]():        {copied: "postStart preStop stopSignal"},
	reflect.TypeFor[corev1.LifecycleHandler](): {copied: "exec httpGet tcpSocket sleep"},
	reflect.TypeFor[corev1.ExecAction]():       {copied: "command"},
	reflect.TypeFor[corev1.HTTPGetAction]():    {copied: "path port scheme httpHeaders protocol", mapped: "host"},
	reflect.TypeFor[corev1.HTTPHeader]():       {copied: "name value"},
	reflect.TypeFor[corev1.TCPSocketAction]():  {copied: "port", mapped: "host"},
	reflect.TypeFor[corev1.GRPCAction]():       {copied: "port service mode"},
	reflect.TypeFor[corev1.SleepAction]():      {copied: "seconds"},

	// Security.
	reflect.TypeFor[corev1.SecurityContext](): {
		copied: "runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation windowsOptions capabilities " +
			"seLinuxOptions seccompProfile appArmorProfile",
		mapped: "privileged procMount",
	},
	reflect.TypeFor[corev1.PodSecurityContext](): {
		copied: "seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot supplementalGroups supplementalGroupsPolicy " +
			"fsGroup sysctls fsGroupChangePolicy seccompProfile appArmorProfile seLinuxChangePolicy",
	},
	reflect.TypeFor[corev1.Capabilities]():                  {mapped: "add", copied: "drop"},
	reflect.TypeFor[corev1.SELinuxOptions]():                {mapped: "user role type", copied: "level"},
	reflect.TypeFor[corev1.WindowsSecurityContextOptions](): {copied: "runAsUserName", mapped: "hostProcess gmsaCredentialSpecName gmsaCredentialSpec"},
	reflect.TypeFor[corev1.SeccompProfile]():                {mapped: "type", copied: "localhostProfile"},
	reflect.TypeFor[corev1.AppArmorProfile]():               {mapped: "type", copied: "localhostProfile"},
	reflect.TypeFor[corev1.Sysctl]():                        {mapped: "name", copied: "value"},

	// Volumes. The in-tree sources that name a disk, an export or a share of whoever runs the node are a way to reach
	// storage of the provider, so they are accepted only where the provider lists them.
	reflect.TypeFor[corev1.Volume](): {copied: "name VolumeSource"},
	reflect.TypeFor[corev1.VolumeSource](): {
		copied: "emptyDir secret downwardAPI image configMap persistentVolumeClaim",
		mapped: "hostPath nfs csi projected ephemeral",
		refused: "gcePersistentDisk awsElasticBlockStore gitRepo iscsi glusterfs rbd flexVolume cinder cephfs flocker fc azureFile " +
			"vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos",
	},
	reflect.TypeFor[corev1.HostPathVolumeSource]():              {copied: "path type"},
	reflect.TypeFor[corev1.EmptyDirVolumeSource]():              {copied: "medium sizeLimit mode"},
	reflect.TypeFor[corev1.SecretVolumeSource]():                {copied: "secretName items defaultMode optional defaultUser"},
	reflect.TypeFor[corev1.KeyToPath]():                         {copied: "key path mode user"},
	reflect.TypeFor[corev1.NFSVolumeSource]():                   {copied: "server path readOnly"},
	reflect.TypeFor[corev1.PersistentVolumeClaimVolumeSource](): {copied: "claimName readOnly"},
	reflect.TypeFor[corev1.DownwardAPIVolumeSource]():           {copied: "items defaultMode defaultUser"},
	reflect.TypeFor[corev1.DownwardAPIVolumeFile]():             {copied: "path fieldRef resourceFieldRef mode user"},
	reflect.TypeFor[corev1.ConfigMapVolumeSource]():             {mapped: "LocalObjectReference", copied: "items defaultMode optional defaultUser"},
	reflect.TypeFor[corev1.ProjectedVolumeSource]():             {copied: "sources defaultMode defaultUser"},
	reflect.TypeFor[corev1.VolumeProjection](): {
		copied: "secret downwardAPI configMap", mapped: "serviceAccountToken", refused: "clusterTrustBundle podCertificate"},
	reflect.TypeFor[corev1.SecretProjection]():              {copied: "LocalObjectReference items optional"},
	reflect.TypeFor[corev1.DownwardAPIProjection]():         {copied: "items"},
	reflect.TypeFor[corev1.ConfigMapProjection]():           {mapped: "LocalObjectReference", copied: "items optional"},
	reflect.TypeFor[corev1.ServiceAccountTokenProjection](): {copied: "audience expirationSeconds path user"},
	reflect.TypeFor[corev1.CSIVolumeSource]():               {copied: "driver readOnly fsType volumeAttributes nodePublishSecretRef"},
	reflect.TypeFor[corev1.EphemeralVolumeSource]():         {copied: "volumeClaimTemplate"},
	// Kubernetes makes the claim of an ephemeral volume on the consumer's behalf, so that no admission policy sees it: it may say no
	// more than a claim that the consumer makes itself. Labels and annotations would be a claim's marks of binding and ownership.
	reflect.TypeFor[corev1.PersistentVolumeClaimTemplate](): {copied: "spec", local: "metadata"},
	reflect.TypeFor[corev1.PersistentVolumeClaimSpec](): {
		copied: "accessModes resources volumeMode", mapped: "storageClassName",
		refused: "volumeName selector dataSource dataSourceRef volumeAttributesClassName"},
	reflect.TypeFor[corev1.VolumeResourceRequirements](): {copied: "limits requests"},
	reflect.TypeFor[corev1.ImageVolumeSource]():          {copied: "reference pullPolicy"},

	// Names and scheduling.
	reflect.TypeFor[corev1.HostAlias]():          {copied: "ip hostnames"},
	reflect.TypeFor[corev1.PodDNSConfig]():       {copied: "nameservers searches options"},
	reflect.TypeFor[corev1.PodDNSConfigOption](): {copied: "name value"},
	reflect.TypeFor[corev1.PodReadinessGate]():   {copied: "conditionType"},
	reflect.TypeFor[corev1.Toleration]():         {copied: "key operator value effect tolerationSeconds"},
	reflect.TypeFor[corev1.TopologySpreadConstraint](): {copied: "maxSkew topologyKey whenUnsatisfiable labelSelector minDomains " +
		"nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys"},
	reflect.TypeFor[corev1.Affinity]():     {copied: "nodeAffinity podAntiAffinity", local: "podAffinity"},
	reflect.TypeFor[corev1.NodeAffinity](): {copied: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"},
	reflect.TypeFor[corev1.NodeSelector](): {copied: "nodeSelectorTerms"},
	// The only field of a node that can be matched is its name.
	reflect.TypeFor[corev1.NodeSelectorTerm]():        {copied: "matchExpressions", local: "matchFields"},
	reflect.TypeFor[corev1.NodeSelectorRequirement](): {copied: "key operator values"},
	reflect.TypeFor[corev1.PreferredSchedulingTerm](): {copied: "weight preference"},
	reflect.TypeFor[corev1.PodAntiAffinity]():         {copied: "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"},
	reflect.TypeFor[corev1.WeightedPodAffinityTerm](): {copied: "weight podAffinityTerm"},
	// Terms that look into other namespaces would name namespaces of the provider.
	reflect.TypeFor[corev1.PodAffinityTerm](): {copied: "labelSelector topologyKey matchLabelKeys mismatchLabelKeys", local: "namespaces namespaceSelector"},
})

// fieldNames caches the JSON name of each field of a struct.
type podField struct {
	name      string
	treatment Treatment
}

// index turns the lists of names into one list per type, in the order of the struct's fields.
func index(table map[reflect.Type]fields) map[reflect.Type][]podField {
	indexed := make(map[reflect.Type][]podField, len(table))
	for t, f := range table {
		byName := map[string]Treatment{}
		for treatment, names := range map[Treatment]string{Copied: f.copied, Mapped: f.mapped, Local: f.local, Denied: f.refused} {
			for name := range strings.FieldsSeq(names) {
				byName[name] = treatment
			}
		}
		list := make([]podField, t.NumField())
		for i := range list {
			name := jsonName(t.Field(i))
			list[i] = podField{name: name, treatment: byName[name]}
		}
		indexed[t] = list
	}
	return indexed
}

// jsonName is the name of a field in the JSON form; embedded structs have the name of their type.
func jsonName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	return f.Name
}
