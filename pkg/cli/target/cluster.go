package target

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
)

const reachTimeout = 10 * time.Second

// Stamp is put on every object that a command creates.
type Stamp struct{ Labels, Annotations map[string]string }

// Cluster is one cluster that a command works on.
type Cluster struct {
	// Name that the user knows the cluster by: its ID once known, before that the context or address.
	Name string
	// Flags that name the cluster on a command line, for suggestions.
	Flags string
	// Config to reach it.
	Config *rest.Config
	// Client for our types and Kubernetes'. It does not cache.
	Client client.Client
	// Kube is for what Client does not offer, such as logs and discovery.
	Kube kubernetes.Interface
	// Getter serves Helm.
	Getter genericclioptions.RESTClientGetter
	// LiqoNamespace is where Liqo is, or is to be, installed.
	LiqoNamespace string
	// Stamp for created objects.
	Stamp Stamp
}

// Scheme returns the types that commands read and write.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, authv1beta1.AddToScheme,
		offloadingv1beta1.AddToScheme, networkingv1beta1.AddToScheme, ipamv1alpha1.AddToScheme, apiextensionsv1.AddToScheme)
	// Registration fails on contradicting types only, which a test would have met.
	_ = builder.AddToScheme(scheme)
	return scheme
})

// Command returns a command line that works on this cluster, for suggestions.
func (c *Cluster) Command(command string) string {
	if c.Flags == "" {
		return command
	}
	return command + " " + c.Flags
}

// Reach returns the version of the API server; the error says in plain words why there is none.
func (c *Cluster) Reach(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	body, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", failure.Unmet("check that the address and credentials in the kubeconfig are right: kubectl version "+c.Flags,
			"cluster %s cannot be reached at %s: %w", c.Name, c.Config.Host, err)
	}
	return gitVersion(body), nil
}

// Change is what Ensure did.
type Change string

// The changes.
const (
	// Created: the object was not there.
	Created Change = "created"
	// Updated: the object was there, and other than wanted.
	Updated Change = "updated"
	// Unchanged: the object was as wanted, and nothing was written.
	Unchanged Change = "unchanged"
)

// Ensure makes the object as mutate wants it, starting from the live one if there is any. A created object gets the stamp.
func (c *Cluster) Ensure(ctx context.Context, object client.Object, mutate func() error) (Change, error) {
	var result controllerutil.OperationResult
	var err error
	for range 5 {
		result, err = controllerutil.CreateOrUpdate(ctx, c.Client, object, func() error {
			if object.GetResourceVersion() == "" {
				Put(object, c.Stamp)
			}
			return mutate()
		})
		// Somebody else wrote in between: start again from what is there now.
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("applying %s: %w", c.Describe(object), err)
	}
	switch result {
	case controllerutil.OperationResultCreated:
		return Created, nil
	case controllerutil.OperationResultNone:
		return Unchanged, nil
	default:
		return Updated, nil
	}
}

// Put puts a stamp on an object, where the object does not say otherwise.
func Put(object client.Object, s Stamp) {
	if len(s.Labels) > 0 {
		labels := maps.Clone(s.Labels)
		maps.Copy(labels, object.GetLabels())
		object.SetLabels(labels)
	}
	if len(s.Annotations) > 0 {
		annotations := maps.Clone(s.Annotations)
		maps.Copy(annotations, object.GetAnnotations())
		object.SetAnnotations(annotations)
	}
}

// Get reads an object; false if it, or its kind, is not there.
func (c *Cluster) Get(ctx context.Context, object client.Object) (bool, error) {
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if Absent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", c.Describe(object), err)
	}
	return true, nil
}

// List lists objects; none if their kind is not there.
func (c *Cluster) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, list, options...)
	if err != nil && !Absent(err) {
		return fmt.Errorf("listing %s (cluster %s): %w", kindOf(list), c.Name, err)
	}
	return nil
}

// Remove deletes the very object that was read; it is no error if it is gone.
func (c *Cluster) Remove(ctx context.Context, object client.Object) error {
	var preconditions []client.DeleteOption
	if uid := object.GetUID(); uid != "" {
		preconditions = append(preconditions, client.Preconditions{UID: ptr.To(uid)})
	}
	err := c.Client.Delete(ctx, object, preconditions...)
	// A conflict means that another object has taken the name: the one that was read is gone.
	if err != nil && !Absent(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s: %w", c.Describe(object), err)
	}
	return nil
}

// Describe names an object and its cluster for messages.
func (c *Cluster) Describe(object client.Object) string {
	return fmt.Sprintf("%s (cluster %s)", Name(object), c.Name)
}

// Name names an object by kind, namespace and name.
func Name(object client.Object) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return kindOf(object) + " " + name
}

func kindOf(object runtime.Object) string {
	gvk, err := apiutil.GVKForObject(object, Scheme())
	if err != nil {
		return "object"
	}
	return gvk.Kind
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
