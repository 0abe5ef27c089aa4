package reflection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// RootCAConfigMap is the ConfigMap with the cluster's CA that Kubernetes puts into every namespace. The provider has its own
// of that name, so ours crosses under another one.
const RootCAConfigMap = "kube-root-ca.crt"

// rootCASuffix is how many characters of the origin's cluster ID tell the root CAs of several consumers apart.
const rootCASuffix = 5

// RenamedConfigMap returns the name at the provider of the ConfigMap with the given name; origin is the ID of the cluster
// that it comes from.
func RenamedConfigMap(origin, name string) string {
	if name != RootCAConfigMap {
		return name
	}
	suffix := origin[:min(len(origin), rootCASuffix)]
	if suffix == "" || !alphanumeric(suffix[len(suffix)-1]) {
		suffix += "a"
	}
	return RootCAConfigMap + "." + suffix
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func localConfigMap(home, name string) string {
	if name == RenamedConfigMap(home, RootCAConfigMap) {
		return RootCAConfigMap
	}
	return name
}

func configMapKind() Kind {
	return Kind{
		Name:           "configmap",
		GVR:            corev1.SchemeGroupVersion.WithResource("configmaps"),
		GVK:            corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		DefaultPolicy:  offloadingv1beta1.DenyList,
		ByReference:    true,
		DefaultWorkers: 10,
		NewObject:      func() Object { return &corev1.ConfigMap{} },
		NewList:        func() ObjectList { return &corev1.ConfigMapList{} },
		Translate:      translateConfigMap,
		Changes:        configMapChanges,
		MustRecreate:   configMapMustRecreate,
		Relax:          relaxKeys,
		RemoteName:     RenamedConfigMap,
		LocalName:      localConfigMap,
	}
}

func translateConfigMap(in Input) Result {
	local := in.Local.(*corev1.ConfigMap)
	if skip := whyConfigMapStays(in, local); skip != nil {
		return Result{Skip: skip}
	}
	wanted := &corev1.ConfigMap{
		ObjectMeta: remoteMeta(in, RenamedConfigMap(in.Home, local.Name)),
		Data:       local.Data,
		BinaryData: local.BinaryData,
		Immutable:  local.Immutable,
	}
	size := 0
	for _, value := range local.Data {
		size += len(value)
	}
	for _, value := range local.BinaryData {
		size += len(value)
	}
	if skip := tooLarge(wanted, size); skip != nil {
		return Result{Skip: skip}
	}
	return Result{Apply: wanted}
}

func whyConfigMapStays(in Input, local *corev1.ConfigMap) *Skip {
	if local.Name == RootCAConfigMap {
		return nil
	}
	if local.Name == offloadingv1beta1.SecretLedger || local.Name == RenamedConfigMap(in.Home, RootCAConfigMap) {
		return &Skip{
			Reason:  offloadingv1beta1.ReasonNotReflectable,
			Message: fmt.Sprintf("stays at home: the name %q is reserved in the remote namespace; rename it to have it reflected", local.Name),
			Keep:    true,
		}
	}
	if skip := whyNeverReflected(in); skip != nil {
		return skip
	}
	return WhyNotReflected(in, offloadingv1beta1.DenyList)
}

func configMapChanges(liveObject, wantedObject Object) []Change {
	wanted := wantedObject.(*corev1.ConfigMap)
	live, readable := liveObject.(*corev1.ConfigMap)
	var changes []Change
	if !readable || !apiequality.Semantic.DeepEqual(live.Data, wanted.Data) {
		changes = append(changes, Change{Path: []string{"data"}, Value: orRemoved(wanted.Data)})
	}
	if !readable || !apiequality.Semantic.DeepEqual(live.BinaryData, wanted.BinaryData) {
		changes = append(changes, Change{Path: []string{"binaryData"}, Value: orRemoved(wanted.BinaryData)})
	}
	if !readable || isTrue(live.Immutable) != isTrue(wanted.Immutable) {
		changes = append(changes, Change{Path: []string{"immutable"}, Value: isTrue(wanted.Immutable)})
	}
	return changes
}

func configMapMustRecreate(liveObject, wantedObject Object) string {
	live, wanted := liveObject.(*corev1.ConfigMap), wantedObject.(*corev1.ConfigMap)
	if isTrue(live.Immutable) && len(configMapChanges(live, wanted)) > 0 {
		return "immutable"
	}
	return ""
}

// orRemoved makes an empty map a removed field, as an API server stores it.
func orRemoved[V any](m map[string]V) any {
	if len(m) == 0 {
		return nil
	}
	return m
}

func isTrue(b *bool) bool { return b != nil && *b }
