package reflection

import (
	"fmt"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const (
	// apiName is the name of the API server in every cluster, which its certificate is for.
	apiName = "kubernetes.default"
	// apiPort is the port of the Service of that name.
	apiPort = "443"
	// apiHost is the variable that clients look for to find the API server.
	apiHost = "KUBERNETES_SERVICE_HOST"
)

// applyHome lets the pod talk to this cluster's API server as its own ServiceAccount.
func applyHome(spec *corev1.PodSpec, local *corev1.Pod, in PodInput) {
	spec.AutomountServiceAccountToken = ptr.To(false)
	if !in.API.Known() {
		dropInjectedTokens(spec)
	}
	takeTokensFromSecret(spec, local, in.API)
	renameRootCA(spec, RenamedConfigMap(in.Home, RootCAConfigMap))
	tellOfItself(spec, local, in)
	env := in.API.environment()
	eachContainer(spec, func(c *corev1.Container) { c.Env = beneath(c.Env, env) })
	if in.API.Host == "" && in.API.Address.IsValid() {
		spec.HostAliases = append(spec.HostAliases, corev1.HostAlias{
			// The last one is the issuer of tokens, as clusters are set up: who checks a token asks it.
			IP: in.API.Address.String(), Hostnames: []string{apiName, apiName + ".svc", apiName + ".svc.cluster.local"},
		})
	}
}

// APIAliases are the aliases in a specification under which a pod finds its own cluster's API server.
func APIAliases(spec *corev1.PodSpec) []*corev1.HostAlias {
	var aliases []*corev1.HostAlias
	for i := range spec.HostAliases {
		if slices.Contains(spec.HostAliases[i].Hostnames, apiName) {
			aliases = append(aliases, &spec.HostAliases[i])
		}
	}
	return aliases
}

// takeTokensFromSecret makes the files of tokens files of the pod's token Secret.
func takeTokensFromSecret(spec *corev1.PodSpec, local *corev1.Pod, api HomeAPI) {
	type place struct{ volume, path string }
	keys := map[place]string{}
	for _, token := range PodTokens(local, api) {
		keys[place{token.Volume, token.Path}] = token.Key
	}
	name := TokenSecretName(local.Name)
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		if volume.Projected == nil || !slices.ContainsFunc(volume.Projected.Sources, holdsToken) {
			continue
		}
		var sources []corev1.VolumeProjection
		for _, source := range volume.Projected.Sources {
			switch {
			case source.ServiceAccountToken != nil:
				asked := source.ServiceAccountToken
				sources = append(sources, fromSecret(name, corev1.KeyToPath{
					Key: keys[place{volume.Name, asked.Path}], Path: asked.Path, User: asked.User}))
			case source.DownwardAPI != nil:
				sources = append(sources, namespaceFromSecret(name, source)...)
			default:
				sources = append(sources, source)
			}
		}
		volume.Projected.Sources = sources
	}
}

func holdsToken(source corev1.VolumeProjection) bool { return source.ServiceAccountToken != nil }

func fromSecret(name string, items ...corev1.KeyToPath) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
}

// namespaceFromSecret keeps the file that names the pod's namespace what it is at home. Clients read it beside the token:
// the name of the twin would lead them to a namespace that this cluster does not have.
func namespaceFromSecret(secret string, source corev1.VolumeProjection) []corev1.VolumeProjection {
	var kept []corev1.DownwardAPIVolumeFile
	var moved []corev1.KeyToPath
	for _, file := range source.DownwardAPI.Items {
		if file.FieldRef != nil && file.FieldRef.FieldPath == namespaceField {
			moved = append(moved, corev1.KeyToPath{Key: namespaceKey, Path: file.Path, Mode: file.Mode, User: file.User})
		} else {
			kept = append(kept, file)
		}
	}
	var sources []corev1.VolumeProjection
	if len(kept) > 0 {
		sources = append(sources, corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: kept}})
	}
	if len(moved) > 0 {
		sources = append(sources, fromSecret(secret, moved...))
	}
	return sources
}

// environment is how the pod's programs find the API server. The provider's kubelets tell every container of the provider's
// own API server unless the container has variables of these names. Without a way to ours they are empty: a client then
// finds that it is in no cluster, and does not show a token of ours to the provider's API server.
func (a HomeAPI) environment() []corev1.EnvVar {
	if !a.Known() {
		return []corev1.EnvVar{{Name: apiHost}, {Name: "KUBERNETES_SERVICE_PORT"}}
	}
	host, port := a.Host, a.Port
	if host == "" {
		host = apiName
	}
	if port == "" {
		port = apiPort
	}
	url := "tcp://" + net.JoinHostPort(host, port)
	return []corev1.EnvVar{
		{Name: apiHost, Value: host},
		{Name: "KUBERNETES_SERVICE_PORT", Value: port},
		{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: port},
		{Name: "KUBERNETES_PORT", Value: url},
		{Name: "KUBERNETES_PORT_443_TCP", Value: url},
		{Name: "KUBERNETES_PORT_443_TCP_PROTO", Value: "tcp"},
		{Name: "KUBERNETES_PORT_443_TCP_ADDR", Value: host},
		{Name: "KUBERNETES_PORT_443_TCP_PORT", Value: port},
	}
}

// beneath puts variables before those of a container, which may refer to them. What the container says itself stays; one
// that names its API server itself gets none.
func beneath(own, added []corev1.EnvVar) []corev1.EnvVar {
	has := func(name string) bool {
		return slices.ContainsFunc(own, func(v corev1.EnvVar) bool { return v.Name == name })
	}
	if has(apiHost) {
		return own
	}
	env := make([]corev1.EnvVar, 0, len(own)+len(added))
	for _, v := range added {
		if !has(v.Name) {
			env = append(env, v)
		}
	}
	return append(env, own...)
}

// WhyNoAPIServer says that a pod which has a token for this cluster's API server cannot use it at the provider, and what to
// do about it; empty if it can, or does not want to.
func WhyNoAPIServer(local *corev1.Pod, api HomeAPI, remote string) string {
	if mode, refusal := accessOf(local, api); refusal != nil || mode != accessHome || api.Known() {
		return ""
	}
	if !wantsAPIServer(local) {
		return ""
	}
	return fmt.Sprintf("the pod cannot use this cluster's API server: no address is known by which pods in cluster %q reach it; "+
		"start the virtual kubelets with --home-api-server-host and --home-api-server-port (chart value "+
		"virtualKubelet.extra.args), or set automountServiceAccountToken to false on pods that do not need it", remote)
}

// LacksAPIServer tells whether a pod that has a token for this cluster's API server was sent to the provider without an address
// of it. What is configured by now does not change a pod that runs.
func LacksAPIServer(local *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) bool {
	if !wantsAPIServer(local) {
		return false
	}
	return slices.ContainsFunc(shadow.Spec.Pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == apiHost && v.Value == "" && v.ValueFrom == nil })
	})
}

// wantsAPIServer tells whether a pod has a token for this cluster's API server.
func wantsAPIServer(local *corev1.Pod) bool {
	for i := range local.Spec.Volumes {
		projected := local.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for _, source := range projected.Sources {
			if source.ServiceAccountToken != nil && source.ServiceAccountToken.Audience == "" {
				return true
			}
		}
	}
	return false
}
