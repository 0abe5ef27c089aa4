package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/lab/cluster"
	"liqo.io/liqo/test/lab/spec"
)

// side is one cluster, seen with its administrator's eyes.
type side struct {
	client.WithWatch
	name       string
	kubeconfig string
	config     *rest.Config
	kube       kubernetes.Interface
	nodes      []string // the names of its real ones
}

// ownNodes are the names of the real nodes of a cluster.
func (c *side) ownNodes() []string { return c.nodes }

func newSide(lab *cluster.Lab, name string) (*side, error) {
	config, err := lab.Config(name)
	if err != nil {
		return nil, err
	}
	// Listing every kind brings up every deprecated one.
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(corev1beta1.AddToScheme(scheme))
	utilruntime.Must(authv1beta1.AddToScheme(scheme))
	utilruntime.Must(offloadingv1beta1.AddToScheme(scheme))
	utilruntime.Must(networkingv1beta1.AddToScheme(scheme))
	utilruntime.Must(ipamv1alpha1.AddToScheme(scheme))
	c := &side{name: name, kubeconfig: lab.Kubeconfig(name), config: config}
	declared, _ := lab.Spec().Cluster(name)
	for _, node := range declared.NodesOf(spec.Real) {
		c.nodes = append(c.nodes, node.Name)
	}
	if c.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", name, err)
	}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", name, err)
	}
	return c, nil
}

// creates creates objects; one that a kept lab has already is no failure.
func (c *side) creates(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := the.users.why(t, o); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("creating %T %s at %s: %v", o, client.ObjectKeyFromObject(o), c.name, err)
		}
	}
}

// deletes deletes an object; one that is gone already is no failure.
func (c *side) deletes(t *testing.T, object client.Object, options ...client.DeleteOption) {
	t.Helper()
	if err := the.users.why(t, object); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(context.WithoutCancel(t.Context()), object, options...); client.IgnoreNotFound(err) != nil {
		t.Fatalf("deleting %T %s at %s: %v", object, client.ObjectKeyFromObject(object), c.name, err)
	}
}

// reads gets an object that has to be there.
func (c *side) reads(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatalf("reading %T %s at %s: %v", object, client.ObjectKeyFromObject(object), c.name, err)
	}
}

// finds reads an object that may be missing. An error is why nothing could be read.
func (c *side) finds(ctx context.Context, key client.ObjectKey, object client.Object) (there bool, err error) {
	err = c.Get(ctx, key, object)
	return err == nil, client.IgnoreNotFound(err)
}

// changes reads an object, changes it and writes it, again while others write too.
func (c *side) changes(t *testing.T, object client.Object, change func()) {
	t.Helper()
	if err := the.users.why(t, object); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, fmt.Sprintf("%T %s to be written", object, client.ObjectKeyFromObject(object)), func(ctx context.Context) (bool, string) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err.Error()
		}
		change()
		if err := c.Update(ctx, object); err != nil {
			return false, err.Error()
		}
		return true, "written"
	})
}

// pods lists the pods of a namespace that are not being deleted.
func (c *side) pods(ctx context.Context, namespace string, options ...client.ListOption) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.List(ctx, list, append(options, client.InNamespace(namespace))...); err != nil {
		return nil, err
	}
	var alive []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			alive = append(alive, pod)
		}
	}
	return alive, nil
}

// empties waits until a namespace has no pods, not even some that are being deleted.
func (c *side) empties(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("no pods in namespace %s of %s", namespace, c.name), func(ctx context.Context) (bool, string) {
		list := &corev1.PodList{}
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, err.Error()
		}
		return len(list.Items) == 0, describe(list.Items)
	})
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
