package provenance

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// In twin namespaces, bound there: secrets, configmaps and persistentvolumeclaims get.

// remembered is how long what was seen to be the consumer's is not looked at again: replicas of a workload share what they name.
const remembered = 10 * time.Second

// kinds are those of references, as users know them.
var kinds = map[string]string{
	reflection.ConfigMapReference: "ConfigMap", reflection.SecretReference: "Secret", reflection.ClaimReference: "PersistentVolumeClaim",
}

// Checker looks at what pods name.
type Checker struct {
	live, cached client.Reader
	secrets      func(types.NamespacedName) string
	own          *expiring.Expiring
}

// New makes a Checker. live reads objects of twin namespaces from the API server, cached reads StorageClasses. secrets tells which
// consumer's a Secret is known to be without reading it, empty if that is not known; nil knows of none.
func New(live, cached client.Reader, secrets func(types.NamespacedName) string) *Checker {
	if secrets == nil {
		secrets = func(types.NamespacedName) string { return "" }
	}
	return &Checker{live: live, cached: cached, secrets: secrets, own: expiring.NewExpiring()}
}

// Finding is what is wrong with what a pod names; the zero value says that nothing is.
type Finding struct {
	// Foreign are the objects that are not the consumer's, such as "Secret registry".
	Foreign []string
	// Missing are those that the pod needs and that are not there yet.
	Missing []string
	// Class says why the claim of an ephemeral volume cannot be made; empty if all can.
	Class string
}

// Refusal says that the pod may not have what is foreign; nil if nothing is.
func (f Finding) Refusal() error {
	if len(f.Foreign) == 0 {
		return nil
	}
	return fmt.Errorf("%s did not come from this pod's cluster: a pod may use only what its own cluster brought here; choose another name",
		strings.Join(f.Foreign, ", "))
}

// maxNamed bounds how many objects are found wrong: a hostile pod may name thousands.
const maxNamed = 16

// Check looks at all that the specification names in the namespace of a consumer's ShadowPod.
func (c *Checker) Check(ctx context.Context, shadow *offloadingv1beta1.ShadowPod, spec *corev1.PodSpec) (Finding, error) {
	var found Finding
	for _, named := range reflection.Named(spec) {
		if named.Kind == reflection.ConfigMapReference && named.Name == reflection.RootCAConfigMap {
			continue
		}
		there, own, err := c.look(ctx, shadow, named.Reference)
		words := kinds[named.Kind] + " " + named.Name
		// The Secret with its tokens comes with the pod; how long it is waited for is decided elsewhere.
		tokens := named.Kind == reflection.SecretReference && named.Name == reflection.TokenSecretOf(shadow)
		switch {
		case err != nil:
			return Finding{}, err
		case there && !own && len(found.Foreign) < maxNamed:
			found.Foreign = append(found.Foreign, words)
		case !there && !named.Optional && !tokens && len(found.Missing) < maxNamed:
			found.Missing = append(found.Missing, words)
		}
	}
	if !reflection.HasEphemeralVolumes(spec) {
		return found, nil
	}
	classes := &storagev1.StorageClassList{}
	if err := c.cached.List(ctx, classes); err != nil {
		return Finding{}, fmt.Errorf("listing StorageClasses: %w", err)
	}
	found.Class = reflection.WhyVolumesNotOffered(spec, classes.Items)
	return found, nil
}

// object is one that was seen to be its consumer's.
type object struct {
	reflection.Reference
	namespace, origin string
}

// look tells whether an object is there, and whether it is of the consumer that the ShadowPod is of.
func (c *Checker) look(ctx context.Context, shadow *offloadingv1beta1.ShadowPod, reference reflection.Reference) (there, own bool, err error) {
	key := object{reference, shadow.Namespace, shadow.Labels[offloadingv1beta1.OriginLabel]}
	if _, known := c.own.Get(key); known {
		return true, true, nil
	}
	name := types.NamespacedName{Namespace: key.namespace, Name: key.Name}
	if key.Kind == reflection.SecretReference && key.origin != "" && c.secrets(name) == key.origin {
		return true, true, nil
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kinds[reference.Kind]))
	err = c.live.Get(ctx, name, live)
	switch {
	case apierrors.IsNotFound(err):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("reading whose %s %s is: %w", kinds[key.Kind], name, err)
	}
	own = key.origin != "" && live.Labels[offloadingv1beta1.OriginLabel] == key.origin
	if own && live.DeletionTimestamp.IsZero() {
		c.own.Set(key, nil, remembered)
	}
	return true, own, nil
}
