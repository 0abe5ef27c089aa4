package template

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rule says what may stand in a place; items of a list stand in the place of the list.
type rule interface {
	// check tells what is wrong with a value that was rendered.
	check(value any, data Data, path *field.Path) field.ErrorList
}

// fields are those that an object may have.
type fields map[string]rule

func (f fields) check(value any, data Data, path *field.Path) (problems field.ErrorList) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if below, known := f[name]; known {
				problems = append(problems, below.check(value[name], data, path.Child(name))...)
			} else {
				problems = append(problems, field.Forbidden(path.Child(name), "a gateway does not have this field"))
			}
		}
	case []any:
		for i, item := range value {
			problems = append(problems, f.check(item, data, path.Index(i))...)
		}
	case nil:
	default:
		problems = append(problems, field.TypeInvalid(path, value, "must be an object"))
	}
	return problems
}

// anything may stand there: it gives a gateway no reach, or the API server judges it.
type anything struct{}

func (anything) check(any, Data, *field.Path) field.ErrorList { return nil }

// oneOf are the only values.
type oneOf func(data Data) []any

func (o oneOf) check(value any, data Data, path *field.Path) (problems field.ErrorList) {
	if list, isList := value.([]any); isList {
		for i, item := range list {
			problems = append(problems, o.check(item, data, path.Index(i))...)
		}
		return problems
	}
	known := o(data)
	// What is no plain value is equal to none, and cannot be compared.
	switch value.(type) {
	case string, bool, int64:
		if slices.Contains(known, value) {
			return nil
		}
	case nil:
		return nil
	}
	return field.ErrorList{field.Invalid(path, fmt.Sprintf("%.80v", value), fmt.Sprintf("must be one of %v", known))}
}

func only(values ...any) oneOf { return func(Data) []any { return values } }

var (
	free = anything{}

	// Objects are named after their gateway, or as those that Liqo makes for it.
	own       = oneOf(func(data Data) []any { return []any{data.Name, "gw-" + data.Name} })
	namespace = oneOf(func(data Data) []any { return []any{data.Namespace} })
	keys      = oneOf(func(data Data) []any { return []any{data.SecretName} })

	metadata = fields{"name": own, "namespace": namespace, "labels": free, "annotations": free}

	// Pods take no metadata but keys: their names are made.
	podMetadata = fields{"labels": free, "annotations": free}

	serviceTemplate = fields{"metadata": metadata, "spec": fields{
		"type": only("ClusterIP", "NodePort", "LoadBalancer"), "selector": free, "clusterIP": only("None", ""),
		"ports": fields{
			"name": free, "port": free, "targetPort": free, "nodePort": free, "appProtocol": free, "protocol": only("TCP", "UDP"),
		},
		"loadBalancerIP": free, "loadBalancerClass": free, "loadBalancerSourceRanges": free, "allocateLoadBalancerNodePorts": free,
		"externalTrafficPolicy": free, "internalTrafficPolicy": free, "trafficDistribution": free, "sessionAffinity": free,
		"sessionAffinityConfig": free, "ipFamilies": free, "ipFamilyPolicy": free, "publishNotReadyAddresses": free,
	}}

	// A gateway writes what is in its own network namespace, for which NET_ADMIN is enough.
	seccomp           = fields{"type": only("RuntimeDefault", "Localhost"), "localhostProfile": free}
	containerSecurity = fields{
		"privileged": only(false), "allowPrivilegeEscalation": free, "readOnlyRootFilesystem": free, "runAsUser": free, "runAsGroup": free, "runAsNonRoot": free,
		"capabilities":    fields{"add": only("NET_ADMIN"), "drop": free},
		"seccompProfile":  seccomp,
		"appArmorProfile": seccomp,
	}
	podSecurity = fields{
		"runAsUser": free, "runAsGroup": free, "runAsNonRoot": free, "fsGroup": free, "fsGroupChangePolicy": free, "supplementalGroups": free,
		"seccompProfile":  seccomp,
		"appArmorProfile": seccomp,
	}

	probe = fields{
		"exec": free, "grpc": fields{"port": free, "service": free}, "tcpSocket": fields{"port": free}, "httpGet": fields{"path": free, "port": free, "scheme": free},
		"initialDelaySeconds": free, "timeoutSeconds": free, "periodSeconds": free, "successThreshold": free, "failureThreshold": free,
	}
	container = fields{
		"name": free, "image": free, "imagePullPolicy": free, "command": free, "args": free, "workingDir": free, "resources": free, "restartPolicy": free,
		"ports":           fields{"name": free, "containerPort": free, "protocol": free},
		"env":             fields{"name": free, "value": free, "valueFrom": fields{"fieldRef": free, "resourceFieldRef": free}},
		"volumeMounts":    fields{"name": free, "mountPath": free, "readOnly": free, "subPath": free},
		"livenessProbe":   probe,
		"readinessProbe":  probe,
		"startupProbe":    probe,
		"securityContext": containerSecurity,

		"terminationMessagePath": free, "terminationMessagePolicy": free,
	}

	// The only thing of its host that a gateway may have is the device that WireGuard in user space needs.
	volume = fields{
		"name": free, "emptyDir": free, "secret": fields{"secretName": keys, "defaultMode": free, "items": free, "optional": free},
		"hostPath":    fields{"path": only("/dev/net/tun"), "type": only("CharDevice")},
		"downwardAPI": free,
	}

	podSpec = fields{
		"containers": container, "initContainers": container, "volumes": volume, "securityContext": podSecurity,
		"serviceAccountName": own, "serviceAccount": own, "automountServiceAccountToken": free,
		"affinity": free, "nodeSelector": free, "tolerations": free, "topologySpreadConstraints": free, "priorityClassName": free, "runtimeClassName": free,
		"imagePullSecrets": free, "dnsPolicy": only("ClusterFirst", "Default", "None"), "dnsConfig": free, "restartPolicy": only("Always"),
		"enableServiceLinks": free, "terminationGracePeriodSeconds": free, "hostNetwork": only(false), "hostPID": only(false), "hostIPC": only(false),
	}

	deploymentTemplate = fields{"metadata": metadata, "spec": fields{
		"replicas": free, "selector": free, "strategy": free, "minReadySeconds": free, "revisionHistoryLimit": free, "progressDeadlineSeconds": free,
		"template": fields{"metadata": podMetadata, "spec": podSpec},
	}}

	// Prometheus reads what is in the gateway's namespace, at its own address, and sends nothing of its own files there.
	monitorTemplate = fields{"metadata": metadata, "spec": fields{
		"jobLabel": free, "targetLabels": free, "podTargetLabels": free, "selector": free, "sampleLimit": free, "targetLimit": free,
		"labelLimit": free, "labelNameLengthLimit": free, "labelValueLengthLimit": free, "namespaceSelector": fields{"matchNames": namespace},
		"endpoints": fields{
			"port": free, "targetPort": free, "path": free, "scheme": free, "interval": free, "scrapeTimeout": free, "honorLabels": free, "honorTimestamps": free,
			"metricRelabelings": free,
		},
	}}

	metrics = fields{"enabled": free, "service": serviceTemplate, "serviceMonitor": monitorTemplate}

	// clientFields and serverFields are what a gateway may look like.
	clientFields = fields{"metadata": metadata, "spec": fields{
		"deployment": deploymentTemplate, "metrics": metrics, "secretRef": fields{"name": keys},
	}}
	serverFields = fields{"metadata": metadata, "spec": fields{
		"deployment": deploymentTemplate, "metrics": metrics, "secretRef": fields{"name": keys}, "service": serviceTemplate,
	}}
)
