package endings

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/test/integration/fixture"
)

// Deleting the tenant namespace at home would take the virtual kubelet and its credentials first, and the twins with their data past the
// guard of volumes: the API server refuses it, and the NamespaceMap's deletion likewise, with the way out. Nothing goes, and unpeering,
// which gives the data up by the user's word, deletes the namespace in the end.
func TestTheTenantNamespaceOfAPeeringIsNotDeletedAtHome(t *testing.T) {
	w := newWorld(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.ConsumerNamespace}}
	nm := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ConsumerNamespace, Name: "milan"}}
	for object, wayOut := range map[client.Object]string{namespace: "liqoctl unpeer --force milan", nm: "liqoctl unoffload namespace"} {
		fixture.Await(t, fixture.Patience, "the API server to refuse it", func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Delete(ctx, object, client.DryRunAll)
			return err != nil, fmt.Sprint(object.GetName(), err)
		})
		err := env.Rome.Client.Delete(t.Context(), object)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), corev1beta1.ReasonPeeringNotEnded) || !strings.Contains(err.Error(), wayOut) {
			t.Errorf("deleting %T %s: got %v, want a refusal that names %q", object, object.GetName(), err, wayOut)
		}
	}
	w.each(t, func(t *testing.T, namespace string) {
		w.present(t, namespace)
		twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if err := env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(twin), twin); err != nil || twin.DeletionTimestamp != nil {
			t.Errorf("the twin at milan: deleted %v, error %v", twin.DeletionTimestamp, err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	_, err := unpeer.Run(t.Context(), unpeer.Options{Consumer: env.Rome.Target(t), Provider: env.Milan.Target(t), DeleteVolumes: true, DeleteNamespaces: true,
		NoWait: true, Timeout: 4 * forceTimeout})
	fixture.Must(t, "unpeering", err)
	awaitGone(t, namespace)
	fixture.Must(t, "stopping the virtual kubelet", w.kubelet.Stop())
	for _, content := range contents {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespaces[content]}}
		fixture.Must(t, fmt.Sprintf("deleting the namespace with %s", content), env.Rome.Client.Delete(t.Context(), object))
	}
}

// Whoever takes the policies away first, or deleted the namespace before an upgrade brought them, is not left with one that stays
// Terminating for ever: the administrator's word leads out, and what was offloaded shows at home that it ended.
func TestATenantNamespaceThatIsBeingDeletedAtHomeIsLeftByForce(t *testing.T) {
	w := newWorld(t)
	objects, err := env.Rome.Manifests()
	fixture.Must(t, "rendering the chart", err)
	for _, object := range objects {
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" && (object.GetName() == "liqo-home-peerings" || object.GetName() == "liqo-home-maps") {
			fixture.Must(t, "removing "+object.GetName(), env.Rome.Client.Delete(t.Context(), object.DeepCopy()))
			t.Cleanup(func() {
				fixture.Must(t, "making "+object.GetName()+" again", env.Rome.Client.Create(context.Background(), object.DeepCopy()))
			})
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.ConsumerNamespace}}
	fixture.Await(t, fixture.Patience, "the API server not to refuse it any more", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Delete(ctx, namespace)
		return err == nil, fmt.Sprint(err)
	})
	// The simulated pod of the virtual kubelet goes with the namespace, and so does the process in its place.
	fixture.Must(t, "stopping the virtual kubelet", w.kubelet.Stop())
	_, err = unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: env.Rome.Target(t), PeerID: "milan", DeleteVolumes: true, Timeout: 2 * forceTimeout})
	fixture.Must(t, "leaving milan at rome", unlessForgotten(err, "rome", "milan"))
	nothingLeft(t)
	forget(t)
}
