package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/pkg/addressing"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/authentication"
	"liqo.io/liqo/pkg/controller/authentication/resourceplugin"
	"liqo.io/liqo/pkg/controller/authentication/slicegrant"
	"liqo.io/liqo/pkg/controller/authentication/slicenode"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/pkg/controller/core/foreigncluster"
	"liqo.io/liqo/pkg/controller/networking"
	"liqo.io/liqo/pkg/controller/networking/gatewaytemplate"
	"liqo.io/liqo/pkg/controller/offloading/ingressstatus"
	"liqo.io/liqo/pkg/controller/offloading/namespacemap"
	"liqo.io/liqo/pkg/controller/offloading/namespaceoffloading"
	"liqo.io/liqo/pkg/controller/offloading/nodefailure"
	"liqo.io/liqo/pkg/controller/offloading/podlog"
	"liqo.io/liqo/pkg/controller/offloading/secretledger"
	"liqo.io/liqo/pkg/controller/offloading/shadowendpointslice"
	"liqo.io/liqo/pkg/controller/offloading/shadowpod"
	"liqo.io/liqo/pkg/controller/offloading/stored"
	"liqo.io/liqo/pkg/controller/offloading/virtualnode"
	"liqo.io/liqo/pkg/controller/offloading/vkoptions"
	"liqo.io/liqo/pkg/controller/replication"
	"liqo.io/liqo/pkg/controller/storage/provisioner"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/reflection"
	bindingwebhook "liqo.io/liqo/pkg/webhook/binding"
	claimwebhook "liqo.io/liqo/pkg/webhook/claim"
	daemonsetwebhook "liqo.io/liqo/pkg/webhook/daemonset"
	foreignclusterwebhook "liqo.io/liqo/pkg/webhook/foreigncluster"
	namespaceoffloadingwebhook "liqo.io/liqo/pkg/webhook/namespaceoffloading"
	podwebhook "liqo.io/liqo/pkg/webhook/pod"
	resourceslicewebhook "liqo.io/liqo/pkg/webhook/resourceslice"
	shadowpodwebhook "liqo.io/liqo/pkg/webhook/shadowpod"
	tenantwebhook "liqo.io/liqo/pkg/webhook/tenant"
	virtualnodewebhook "liqo.io/liqo/pkg/webhook/virtualnode"
	"liqo.io/liqo/pkg/webhook/weight"
)

// shadowPodCount is what a ResourceQuota calls the number of ShadowPods.
const shadowPodCount corev1.ResourceName = "count/shadowpods.offloading.liqo.io"

// twinPods bounds how many pods one consumer's namespace holds where no grant does.
var twinPods = resource.MustParse("5000")

// podCheck tells what this cluster does not let a consumer's pod do.
type podCheck = func(*corev1.PodSpec) field.ErrorList

// register adds all controllers and webhooks of the enabled modules.
func register(ctx context.Context, mgr ctrl.Manager, config *v1alpha1.ControllerManager, env surroundings, f flags, m *measured) error {
	links := newConnections(m.peers)
	if err := foreigncluster.Register(mgr, foreigncluster.Options{
		ClusterID: env.clusterID, Prober: links, Changed: links.changed, Networking: config.Networking.Enabled,
	}); err != nil {
		return err
	}
	weight.Register(mgr)
	if err := foreignclusterwebhook.Register(mgr, foreignclusterwebhook.Options{}); err != nil {
		return fmt.Errorf("registering the ForeignCluster webhook: %w", err)
	}
	if config.Authentication.Enabled {
		if err := registerAuthentication(mgr, config, env, f, links, m.supply); err != nil {
			return err
		}
	}
	if config.Networking.Enabled {
		if err := networking.Register(ctx, mgr, networkOptions(config, env)); err != nil {
			return err
		}
		err := gatewaytemplate.Register(mgr, gatewaytemplate.Options{Templates: config.Networking.GatewayTemplates, Labels: config.Common.GlobalLabels,
			Namespace: env.namespace, Deployment: env.deployment})
		if err != nil {
			return fmt.Errorf("registering the templates of gateways: %w", err)
		}
	}
	if config.Offloading.Enabled && config.Storage.Enabled {
		err := provisioner.Register(mgr, provisioner.Options{
			Namespace: config.Storage.StorageNamespace, RealStorageClass: config.Storage.RealStorageClassName,
		})
		if err != nil {
			return err
		}
	}
	if config.Offloading.Enabled {
		return registerOffloading(mgr, config, env)
	}
	return nil
}

// networkOptions are the ranges that the network module gives addresses from, and those that it keeps free of peers. Of the pods' ranges, peers are
// told those of IPv4.
func networkOptions(config *v1alpha1.ControllerManager, env surroundings) networking.Options {
	ipam := config.IPAM
	return networking.Options{
		ClusterID: env.clusterID, Namespace: env.namespace,
		Pods: addressing.IPv4(ipam.Prefixes()), Services: prefixes(ipam.ServiceCIDR), External: prefixes(ipam.ExternalCIDR), Internal: prefixes(ipam.InternalCIDR),
		Reserved: prefixes(ipam.ReservedSubnets...), Pools: prefixes(ipam.Pools...), OverlayPort: config.Networking.GenevePort,
		Isolation:          config.Networking.Isolation,
		APIServerEndpoints: config.Networking.APIServerAccessThroughEndpointSlices,
	}
}

func registerAuthentication(mgr ctrl.Manager, config *v1alpha1.ControllerManager, env surroundings, f flags, links *connections, offers *supply.Supply) error {
	ca, err := base64.StdEncoding.DecodeString(config.APIServer.CA)
	if err != nil {
		return fmt.Errorf("decoding apiServer.ca: %w", err)
	}
	algorithm := identity.AlgorithmEd25519
	if config.Authentication.TLSCompatibilityMode {
		algorithm = identity.AlgorithmRSA
	}
	policy, err := grants(config, offers)
	if err != nil {
		return err
	}
	if err := followShares(mgr, f.config, policy.Shares); err != nil {
		return err
	}
	endpoints := identity.EndpointPolicy{Deny: ownRanges(config), AllowLoopback: f.allowLoopback}
	err = authentication.Register(mgr, authentication.Options{
		ClusterID:           env.clusterID,
		LiqoNamespace:       env.namespace,
		ServiceAccount:      serviceAccount,
		Algorithm:           algorithm,
		APIServerAddress:    config.APIServer.Address,
		APIServerCA:         ca,
		TrustedCA:           config.APIServer.TrustedCA,
		CertificateLifetime: config.Authentication.CertificateLifetime.Duration,
		Consumers: authentication.ConsumerOptions{
			SilentAfter: config.Authentication.ConsumerSilentAfter.Duration, RequestShares: config.Offloading.Consumers.RequestShares,
		},
		Endpoints:           endpoints,
		Grants:              policy,
		IngressClasses:      config.Offloading.Reflection.Ingress.Offered(),
		LoadBalancerClasses: config.Offloading.Reflection.Service.Offered(),
		ClusterLabels:       config.Discovery.ClusterLabels,
		PodCIDRs:            texts(config.IPAM.Prefixes()),
		HideAddresses:       !*config.Networking.ReflectIPs,
		VirtualNodes:        virtualNodes(config),
		StorageClass:        config.Storage.RealStorageClassName,
		Supply:              offers,
	})
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("preparing the client of the replication: %w", err)
	}
	err = replication.Register(mgr, replication.Options{
		ClusterID: env.clusterID, Kube: kube, Endpoints: endpoints, OnState: links.set, OnPeer: links.connect, Meter: links.meter,
	})
	if err != nil {
		return err
	}
	return registerAll(map[string]func() error{
		"tenant webhook": func() error {
			return tenantwebhook.Register(mgr, tenantwebhook.Options{RequireSuffix: *config.Offloading.TwinNamespaces.RequireSuffix})
		},
		"resourceslice webhook": func() error { return resourceslicewebhook.Register(mgr, resourceslicewebhook.Options{}) },
	})
}

func registerOffloading(mgr ctrl.Manager, config *v1alpha1.ControllerManager, env surroundings) error {
	rules := nodeRules(config)
	if err := registerOffloadingControllers(mgr, config, env, rules); err != nil {
		return err
	}
	return registerOffloadingWebhooks(mgr, config, env, func(spec *corev1.PodSpec) field.ErrorList {
		reduced, _ := rules.Reduced(spec) // as the controller will have it
		return reflection.CheckShadowPod(reduced, rules)
	})
}

func registerOffloadingControllers(mgr ctrl.Manager, config *v1alpha1.ControllerManager, env surroundings, rules reflection.Rules) error {
	twins, tokens := config.Offloading.TwinNamespaces, secretledger.NewTokens()
	return registerAll(map[string]func() error{
		"vkoptions": func() error {
			return vkoptions.Register(mgr, vkoptions.Options{Config: config, Namespace: env.namespace, Deployment: env.deployment})
		},
		"namespaceoffloading": func() error {
			return namespaceoffloading.Register(mgr, namespaceoffloading.Options{ClusterID: env.clusterID, NodeIdentity: config.VirtualKubelet.NodeIdentity,
				Home: placement.HomeNamespaces{Liqo: env.namespace, Storage: config.Storage.StorageNamespace}})
		},
		"namespacemap": func() error {
			return namespacemap.Register(mgr, namespacemap.Options{
				Rules: placement.TwinRules{
					SystemNamespaces: []string{env.namespace, config.Storage.StorageNamespace}, MaxNamespaces: twins.MaxPerTenant, RequireTenantSuffix: *twins.RequireSuffix,
				},
				Labels:  podSecurityLabels(twins.PodSecurity),
				Hard:    twinHard(config),
				Network: namespacemap.Network{Isolate: *twins.Network.Isolate, BlockMetadata: twins.Network.BlockMetadata, Peers: twins.Network.Peers},
				Manager: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: serviceAccount, Namespace: env.namespace},
			})
		},
		"virtualnode": func() error {
			return virtualnode.Register(mgr, virtualnode.Options{
				ClusterID: env.clusterID, Namespace: env.namespace, PodCIDRs: texts(ownRanges(config)),
				HideAddresses: !*config.Networking.ReflectIPs, Networking: config.Networking.Enabled,
				NodeIdentity: config.VirtualKubelet.NodeIdentity, PlainMetrics: config.Metrics.PlainHTTP,
			})
		},
		"shadowpod": func() error {
			return shadowpod.Register(mgr, shadowpod.Options{
				Check:  func(spec *corev1.PodSpec) field.ErrorList { return reflection.CheckShadowPod(spec, rules) },
				Reduce: rules.Reduced, Keys: podKeys(config.Offloading.Consumers),
				MaxGracePeriod: config.Offloading.Consumers.MaxTerminationGracePeriod.Duration,
				Enforce:        config.ControllerManager.EnableResourceEnforcement, Tokens: tokens, Secrets: tokens.Consumer, Networking: config.Networking.Enabled})
		},
		"nodefailure": func() error {
			if !config.ControllerManager.EnableNodeFailureController {
				return nil
			}
			return nodefailure.Register(mgr, nodefailure.Options{})
		},
		"ingressstatus": func() error { return ingressstatus.Register(mgr, ingressstatus.Options{Namespace: env.namespace}) },
		"podlog":        func() error { return podlog.Register(mgr, podlog.Options{}) },
		"shadowendpointslice": func() error {
			return shadowendpointslice.Register(mgr, shadowendpointslice.Options{Own: ownRanges(config), Networking: config.Networking.Enabled,
				DenyDirect: *config.Networking.DenyDirectConnections})
		},
		"stored": func() error {
			return stored.Register(mgr, stored.Options{Limit: config.Offloading.Consumers.MaxStoredBytes.Value()})
		},
		"secretledger": func() error { return secretledger.Register(mgr, secretledger.Options{Tokens: tokens}) },
	})
}

func registerOffloadingWebhooks(mgr ctrl.Manager, config *v1alpha1.ControllerManager, env surroundings, check podCheck) error {
	return registerAll(map[string]func() error{
		"pod webhook": func() error { return podwebhook.Register(mgr, podwebhook.Options{RuntimeClass: config.RuntimeClass}) },
		"daemonset webhook": func() error {
			daemonsetwebhook.Register(mgr)
			return nil
		},
		"binding webhook": func() error {
			bindingwebhook.Register(mgr)
			return nil
		},
		"claim webhook": func() error {
			claimwebhook.Register(mgr)
			return nil
		},
		"shadowpod webhook": func() error {
			return shadowpodwebhook.Register(mgr, shadowpodwebhook.Options{Check: check,
				Enforce: config.ControllerManager.EnableResourceEnforcement, Token: env.webhookToken})
		},
		"namespaceoffloading webhook": func() error {
			return namespaceoffloadingwebhook.Register(mgr, namespaceoffloadingwebhook.Options{ClusterID: env.clusterID})
		},
		"virtualnode webhook": func() error {
			return virtualnodewebhook.Register(mgr, virtualnodewebhook.Options{Namespace: env.namespace})
		},
	})
}

// registerAll adds controllers or webhooks by their names.
func registerAll(parts map[string]func() error) error {
	for name, register := range parts {
		if err := register(); err != nil {
			return fmt.Errorf("registering %s: %w", name, err)
		}
	}
	return nil
}

// podRules are what this cluster lets pods of consumers do.
func podRules(consumers v1alpha1.Consumers) reflection.Rules {
	return reflection.Rules{RuntimeClasses: consumers.RuntimeClasses, ServiceAccounts: consumers.ServiceAccounts, Capabilities: consumers.Capabilities,
		Tolerations: consumers.Tolerations, NodeLabels: consumers.NodeLabels,
		CSIDrivers: consumers.CSIDrivers, MaxGracePeriod: consumers.MaxTerminationGracePeriod.Duration}
}

// nodeRules are podRules with the labels that this cluster suggests for consumers' virtual nodes: its own nodes may be chosen by them.
func nodeRules(config *v1alpha1.ControllerManager) reflection.Rules {
	rules := podRules(config.Offloading.Consumers)
	rules.NodeLabels = slices.AppendSeq(slices.Clone(rules.NodeLabels), maps.Keys(config.Discovery.ClusterLabels))
	return rules
}

// podKeys are the labels and annotations that this cluster lets pods of consumers have.
func podKeys(consumers v1alpha1.Consumers) reflection.Keys {
	return reflection.Keys{Labels: consumers.PodLabelPrefixes, Annotations: consumers.PodAnnotationPrefixes}
}

// twinHard bounds what a twin holds. Pods are bounded by the grant: a second count of them, for the namespace, would cost one more
// write for each pod that comes or goes. So they are counted here only where the grant is not enforced.
func twinHard(config *v1alpha1.ControllerManager) corev1.ResourceList {
	hard := maps.Clone(config.Offloading.TwinNamespaces.Quota)
	if _, set := hard[shadowPodCount]; set || config.ControllerManager.EnableResourceEnforcement {
		return hard
	}
	if hard == nil {
		hard = corev1.ResourceList{}
	}
	hard[shadowPodCount] = twinPods
	return hard
}

// podSecurityLabels are those by which Kubernetes enforces a Pod Security level in a namespace.
func podSecurityLabels(level string) map[string]string {
	if level == "" {
		return nil
	}
	const prefix = "pod-security.kubernetes.io/"
	return map[string]string{prefix + "enforce": level, prefix + "warn": level, prefix + "audit": level}
}

// ownRanges are this cluster's pod and service addresses: no peer's API server is there.
func ownRanges(config *v1alpha1.ControllerManager) []netip.Prefix {
	return append(config.IPAM.Prefixes(), prefixes(config.IPAM.ServiceCIDR)...)
}

// prefixes reads what the configuration was checked to hold; what is empty is left out.
func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			out = append(out, prefix)
		}
	}
	return out
}

func texts(prefixes []netip.Prefix) []string {
	out := make([]string, 0, len(prefixes))
	for _, prefix := range prefixes {
		out = append(out, prefix.String())
	}
	return out
}

// virtualNodes is what is believed of providers; nil if there are to be no VirtualNodes.
func virtualNodes(config *v1alpha1.ControllerManager) *slicenode.Options {
	if !config.Offloading.Enabled {
		return nil
	}
	believed := &config.Offloading.Providers
	return &slicenode.Options{Own: ownRanges(config), Labels: *believed.AcceptLabels, PrivateAddresses: *believed.AssumePrivateAddresses}
}

// grants is what consumers get.
func grants(config *v1alpha1.ControllerManager, offers *supply.Supply) (slicegrant.Policy, error) {
	offloading := &config.Offloading
	policy := slicegrant.Policy{
		DefaultClassEnabled: config.Authentication.DefaultResourceSliceClassEnabled,
		Shares:              slicegrant.NewShares(shared(config)),
		DefaultResources:    offloading.DefaultNodeResources,
		Exclusive:           offloading.Sharing == v1alpha1.ExclusiveOffers,
		LimitsEnforcement:   config.ControllerManager.DefaultLimitsEnforcement,
		NodeLabels:          nodeRules(config).NodeLabels,
		TenantLimits:        offloading.Consumers.Limits,
	}
	if offloading.ResourcePlugin.Address == "" {
		return policy, nil
	}
	plugin, err := resourceplugin.Connect(offloading.ResourcePlugin.Address, v1alpha1.ResourcePluginFolder)
	if err != nil {
		return policy, err
	}
	policy.Plugin = resourceplugin.New(plugin, offers)
	return policy, nil
}
