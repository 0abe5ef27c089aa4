package endings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// impatient is a provider that says of its consumers soon that they are silent.
var impatient = map[string]any{"authentication": map[string]any{"consumerSilentAfter": "5s"}}

// C9: a consumer dies for good. Its provider says so, with what is left of it; says it no more if the consumer is back; and removes all of it
// when its administrator asks for that, also where the Tenant is gone already, and nothing that somebody else made.
func TestC9AConsumerThatNeverComesBack(t *testing.T) {
	forgetNamespaces(t)
	t.Run("it is named, is back, and is removed", func(t *testing.T) {
		w := begin(t)
		namespace := w.hosted(t)
		awaitSeen(t, metav1.ConditionTrue, authv1beta1.ReasonConsumerSeen)
		managers["milan"].Reconfigure(t, nil, impatient)
		defer managers["milan"].Reconfigure(t, impatient, nil)
		w.die(t)
		t.Run("named", func(t *testing.T) { w.isNamed(t, namespace) })
		t.Run("back", func(t *testing.T) { w.isBack(t) })
		w.die(t)
		awaitSeen(t, metav1.ConditionFalse, authv1beta1.ReasonConsumerSilent)
		t.Run("removed", func(t *testing.T) { w.isRemoved(t, namespace) })
		w.bury(t, namespace)
	})
	t.Run("its Tenant was torn out by hand", func(t *testing.T) {
		w := begin(t)
		namespace := w.hosted(t)
		w.die(t)
		w.tearOut(t, namespace)
		w.isRemoved(t, namespace)
		w.bury(t, namespace)
	})
}

// forgetNamespaces takes back what earlier tests offloaded, and removes what they left at milan when rome gave it up.
func forgetNamespaces(t *testing.T) {
	t.Helper()
	offloaded := &offloadingv1beta1.NamespaceOffloadingList{}
	fixture.Must(t, "listing NamespaceOffloadings", env.Rome.Client.List(t.Context(), offloaded))
	for i := range offloaded.Items {
		err := offload.Undo(t.Context(), offload.UndoOptions{Cluster: env.Rome.Target(t), Namespaces: []string{offloaded.Items[i].Namespace}, DeleteVolumes: true, Timeout: fixture.Patience})
		fixture.Must(t, "taking a namespace of an earlier test back", err)
	}
	twins := &corev1.NamespaceList{}
	of := client.MatchingLabels{corev1beta1.RemoteClusterIDLabel: "rome", corev1beta1.ManagedLabel: "true"}
	fixture.Must(t, "listing twins", env.Milan.Client.List(t.Context(), twins, of))
	for i := range twins.Items {
		fixture.Must(t, "deleting a twin", client.IgnoreNotFound(env.Milan.Client.Delete(t.Context(), &twins.Items[i])))
	}
	fixture.Await(t, 2*fixture.Patience, "the twins of earlier tests to go", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.List(ctx, twins, of)
		return err == nil && len(twins.Items) == 0, fmt.Sprint(len(twins.Items), err)
	})
}

// hosted offloads a namespace with a pod that runs and a claim with data.
func (w *world) hosted(t *testing.T) string {
	t.Helper()
	namespace := w.offload(t, "shop")
	data, user := volume(namespace)
	for _, object := range []client.Object{data, user} {
		fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	}
	awaitPod(t, env.Rome, user, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	return namespace
}

// die ends all processes of rome, and plays that its last certificate has expired since: the shortest that a signer issues live for minutes.
func (w *world) die(t *testing.T) {
	t.Helper()
	fixture.Must(t, "stopping the virtual kubelet", w.kubelet.Stop())
	fixture.Must(t, "stopping the controller manager of rome", managers["rome"].Stop())
	record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ProviderNamespace, Name: certificate.TenantRecord()}}
	expired := []byte(time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{authv1beta1.ExpiresAtKey: expired}})
	fixture.Must(t, "encoding a patch", err)
	fixture.Must(t, "playing that time passed", env.Milan.Client.Patch(t.Context(), record, client.RawPatch(types.MergePatchType, patch)))
}

func tenantOfRome(ctx context.Context) (*authv1beta1.Tenant, error) {
	tenant := &authv1beta1.Tenant{}
	err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ProviderNamespace, Name: "rome"}, tenant)
	return tenant, err
}

// awaitSeen waits until milan says so of rome, in both places.
func awaitSeen(t *testing.T, status metav1.ConditionStatus, reason string) {
	t.Helper()
	foreign := map[metav1.ConditionStatus]string{metav1.ConditionTrue: corev1beta1.ReasonTenantReady, metav1.ConditionFalse: reason}[status]
	fixture.Await(t, 2*fixture.Patience, "milan to say of rome "+reason, func(ctx context.Context) (bool, string) {
		tenant, err := tenantOfRome(ctx)
		seen := meta.FindStatusCondition(tenant.Status.Conditions, authv1beta1.ConsumerSeenCondition)
		fc := &corev1beta1.ForeignCluster{}
		err = errors.Join(err, env.Milan.Client.Get(ctx, client.ObjectKey{Name: "rome"}, fc))
		said := ""
		for _, c := range fc.Status.Modules.Authentication.Conditions {
			if c.Type == corev1beta1.AuthTenantStatus {
				said = c.Reason
			}
		}
		return err == nil && seen != nil && seen.Status == status && seen.Reason == reason && said == foreign, fmt.Sprint(seen, said, err)
	})
}

// says is what a command of liqoctl prints at milan, and its exit code.
func says(t *testing.T, words ...string) (code int, output string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), env.Binary(t, "liqoctl"), words...)
	command.Env = []string{"KUBECONFIG=" + env.Milan.Kubeconfig, "HOME=" + t.TempDir()}
	out, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		t.Fatalf("running liqoctl: %v", err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

// isNamed checks that the loss is shown with what is left, told once, and not anew by a controller manager that starts.
func (w *world) isNamed(t *testing.T, namespace string) {
	awaitSeen(t, metav1.ConditionFalse, authv1beta1.ReasonConsumerSilent)
	left := fmt.Sprintf("1 namespace (%s) with 1 pod (%s/app) and the data of 1 volume (%s/data)", namespace, namespace, namespace)
	for _, words := range [][]string{{"info"}, {"info", "peer", "rome"}} {
		code, out := says(t, words...)
		// Long lines are wrapped.
		flat := strings.Join(strings.Fields(out), " ")
		if code != 4 || !strings.Contains(flat, authv1beta1.ReasonConsumerSilent) || !strings.Contains(flat, "It has here: "+left) {
			t.Errorf("liqoctl %v exits with %d:\n%s", words, code, out)
		}
	}
	before, err := tenantOfRome(t.Context())
	fixture.Must(t, "reading the Tenant", err)
	fixture.Must(t, "stopping the controller manager of milan", managers["milan"].Stop())
	managers["milan"].Start(t)
	// Each pass over a Tenant writes all that there is to say of it at once.
	for _, condition := range []authv1beta1.TenantCondition{authv1beta1.TenantCordoned, authv1beta1.TenantActive} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tenantCondition":"`+condition+`"}}`))
		fixture.Must(t, "changing the Tenant", env.Milan.Client.Patch(t.Context(), before.DeepCopy(), patch))
		fixture.Await(t, 2*fixture.Patience, "milan to look at the Tenant, which is "+string(condition), func(ctx context.Context) (bool, string) {
			tenant, err := tenantOfRome(ctx)
			ready := meta.FindStatusCondition(tenant.Status.Conditions, corev1beta1.ConditionReady)
			return err == nil && ready != nil && ready.ObservedGeneration == tenant.Generation, fmt.Sprint(ready, err)
		})
	}
	after, err := tenantOfRome(t.Context())
	fixture.Must(t, "reading the Tenant", err)
	was, is := meta.FindStatusCondition(before.Status.Conditions, authv1beta1.ConsumerSeenCondition), meta.FindStatusCondition(after.Status.Conditions, authv1beta1.ConsumerSeenCondition)
	if is == nil || is.Status != was.Status || is.Message != was.Message || !is.LastTransitionTime.Equal(&was.LastTransitionTime) {
		t.Errorf("after a restart it says %+v, before %+v", is, was)
	}
	told := &eventsv1.EventList{}
	fixture.Must(t, "listing Events", env.Milan.Client.List(t.Context(), told, client.InNamespace(fixture.ProviderNamespace)))
	count := 0
	for i := range told.Items {
		if told.Items[i].Reason == authv1beta1.ReasonConsumerSilent && told.Items[i].Regarding.UID == before.UID {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d Events tell of it, want 1", count)
	}
}

// isBack starts rome again, whose certificate is due by now: it asks for another one.
func (w *world) isBack(t *testing.T) {
	object, err := controlPlane(t.Context())
	fixture.Must(t, "reading the Identity", err)
	key := &corev1.Secret{}
	fixture.Must(t, "reading its key", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: object.Namespace, Name: authv1beta1.KeySecretPrefix + object.Name}, key))
	pair, err := identity.KeyPairFromData(key.Data)
	fixture.Must(t, "reading its key", err)
	subject := identity.TenantSubject("rome").InPeering(identity.CertificatePeering(object.Spec.AuthParams.SignedCRT))
	due := object.DeepCopy()
	due.Spec.AuthParams.SignedCRT = env.Issue(t, env.Milan, subject, pair.Public(), time.Now().Add(-time.Hour), time.Now().Add(15*time.Minute))
	fixture.Must(t, "playing that it is due", env.Rome.Client.Patch(t.Context(), due, client.MergeFrom(object)))
	start := time.Now().Truncate(time.Second)
	managers["rome"].Start(t)
	w.kubelet.Launch(t)
	awaitSeen(t, metav1.ConditionTrue, authv1beta1.ReasonConsumerSeen)
	record := &corev1.Secret{}
	fixture.Must(t, "reading the record", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ProviderNamespace, Name: certificate.TenantRecord()}, record))
	if asked, err := time.Parse(time.RFC3339, string(record.Data[authv1beta1.RequestedAtKey])); err != nil || asked.Before(start) {
		t.Errorf("it asked at %s, error %v; it was started at %s", asked, err, start)
	}
	if code, out := says(t, "info", "peer", "rome"); code != 0 || strings.Contains(out, authv1beta1.ReasonConsumerSilent) {
		t.Errorf("liqoctl info peer rome exits with %d:\n%s", code, out)
	}
}

// tearOut has the NamespaceMap of rome go by an administrator's force, while nobody looks, and then its Tenant: nobody asks for the twins any
// more, nor for what is in them.
func (w *world) tearOut(t *testing.T, namespace string) {
	t.Helper()
	fixture.Must(t, "stopping the controller manager of milan", managers["milan"].Stop())
	list := &offloadingv1beta1.NamespaceMapList{}
	fixture.Must(t, "listing NamespaceMaps", env.Milan.Client.List(t.Context(), list, client.InNamespace(fixture.ProviderNamespace)))
	for i := range list.Items {
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		fixture.Must(t, "removing finalizers", env.Milan.Client.Patch(t.Context(), &list.Items[i], none))
		fixture.Must(t, "deleting the NamespaceMap", env.Milan.Client.Delete(t.Context(), &list.Items[i]))
	}
	managers["milan"].Start(t)
	tenant, err := tenantOfRome(t.Context())
	fixture.Must(t, "reading the Tenant", err)
	fixture.Must(t, "deleting the Tenant", env.Milan.Client.Delete(t.Context(), tenant))
	fixture.Await(t, 2*fixture.Patience, "milan to know nothing of rome any more, and to say what it has", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKey{Name: "rome"}, &corev1beta1.ForeignCluster{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	code, out := says(t, "info")
	if flat := strings.Join(strings.Fields(out), " "); code != 4 || !strings.Contains(flat, "nobody asks for what it has here: 1 namespace ("+namespace+")") {
		t.Errorf("liqoctl info exits with %d:\n%s", code, out)
	}
}

// isRemoved ends the peering at milan, which asks with what goes, and checks that nothing is left of rome, and that nothing else was touched.
func (w *world) isRemoved(t *testing.T, namespace string) {
	// The same labels, made by somebody else.
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("foreign"), Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "naples", corev1beta1.ManagedLabel: "true"}}}
	fixture.Must(t, "creating a namespace", env.Milan.Client.Create(t.Context(), foreign))
	asked := ""
	report, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: env.Milan.Target(t), PeerID: "rome", DeleteVolumes: true, Timeout: 2 * forceTimeout,
		Confirm: func(_ context.Context, question string) error { asked = question; return nil }})
	fixture.Must(t, "leaving rome at milan", err)
	if len(report.Residue) > 0 {
		t.Errorf("left: %v", report.Residue)
	}
	goes := fmt.Sprintf("deletes its 1 namespace (%s) here with 1 pod (%s/app) and the data of 1 volume (%s/data)", namespace, namespace, namespace)
	if !strings.Contains(asked, goes) {
		t.Errorf("it asked %q, which does not say %q", asked, goes)
	}
	of := client.MatchingLabels{corev1beta1.RemoteClusterIDLabel: "rome"}
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &corev1.SecretList{}, &authv1beta1.TenantList{}, &authv1beta1.ResourceSliceList{}, &authv1beta1.RenewList{},
		&offloadingv1beta1.NamespaceMapList{}, &offloadingv1beta1.ShadowPodList{}, &corev1beta1.ForeignClusterList{},
	} {
		fixture.Must(t, "listing what is left", env.Milan.Client.List(t.Context(), list, of))
		if count := meta.LenList(list); count > 0 {
			t.Errorf("%d of %T are left", count, list)
		}
	}
	pods := &corev1.PodList{}
	fixture.Must(t, "listing pods", env.Milan.Client.List(t.Context(), pods, client.MatchingLabels{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod}))
	if len(pods.Items) > 0 {
		t.Errorf("%d pods are left", len(pods.Items))
	}
	for _, gone := range []string{fixture.ProviderNamespace, namespace} {
		if err := env.Milan.Client.Get(t.Context(), client.ObjectKey{Name: gone}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Errorf("namespace %s at milan: %v", gone, err)
		}
	}
	fixture.Must(t, "reading the other namespace", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	if foreign.DeletionTimestamp != nil {
		t.Error("a namespace that is not rome's goes")
	}
	fixture.Must(t, "deleting it", env.Milan.Client.Delete(t.Context(), foreign))
}

// bury has rome forget milan, so that they can peer again.
func (w *world) bury(t *testing.T, namespace string) {
	t.Helper()
	managers["rome"].Start(t)
	w.kubelet.Launch(t)
	_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: env.Rome.Target(t), PeerID: "milan", DeleteVolumes: true, Timeout: 2 * forceTimeout})
	fixture.Must(t, "leaving milan at rome", err)
	fixture.Must(t, "stopping the virtual kubelet", w.kubelet.Stop())
	err = offload.Undo(t.Context(), offload.UndoOptions{Cluster: env.Rome.Target(t), Namespaces: []string{namespace}, DeleteVolumes: true, Timeout: fixture.Patience})
	fixture.Must(t, "taking the namespace back", err)
	fixture.Must(t, "deleting it", env.Rome.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
}
