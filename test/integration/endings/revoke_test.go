package endings

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/authenticate"
	"liqo.io/liqo/pkg/cli/action/revoke"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// controlPlane is the Identity with which rome's control plane works at milan.
func controlPlane(ctx context.Context) (*authv1beta1.Identity, error) {
	object := &authv1beta1.Identity{}
	err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: authv1beta1.ControlPlaneIdentityPrefix + "milan"}, object)
	return object, err
}

// runningAtMilan offloads a namespace with one pod that runs; it returns both of them.
func (w *world) runningAtMilan(t *testing.T) (home, remote *corev1.Pod) {
	t.Helper()
	home = pod(w.offload(t, "shop"))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), home))
	awaitPod(t, env.Rome, home, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	remote = &corev1.Pod{}
	fixture.Must(t, "reading the pod at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(home), remote))
	w.awaitShows(t, "all to be well", "")
	return home, remote
}

// G5, S16: the administrator of milan revokes what was issued to rome, while rome works with it: rome is refused, what it has there goes on,
// and after peering again it has it, by other certificates with other keys.
func TestRevokedAtTheProvider(t *testing.T) {
	w := begin(t)
	home, remote := w.runningAtMilan(t)
	before, err := controlPlane(t.Context())
	fixture.Must(t, "reading the Identity", err)
	report, err := revoke.Run(t.Context(), revoke.Options{Cluster: env.Milan.Target(t), PeerID: "rome", Timeout: forceTimeout})
	fixture.Must(t, "revoking", err)
	if !report.Consumer || report.Provider {
		t.Errorf("revoked %+v", report)
	}
	w.awaitShows(t, "the loss of the rights to show", corev1beta1.ReasonRightsRevoked)
	live := &corev1.Pod{}
	fixture.Must(t, "reading the pod at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(remote), live))
	if live.UID != remote.UID || live.DeletionTimestamp != nil {
		t.Error("the pod at milan was taken, too")
	}
	fixture.Must(t, "peering again", again(t.Context(), t))
	w.awaitShows(t, "all to be well again", "")
	after, err := controlPlane(t.Context())
	fixture.Must(t, "reading the Identity", err)
	was, is := identity.CertificatePeering(before.Spec.AuthParams.SignedCRT), identity.CertificatePeering(after.Spec.AuthParams.SignedCRT)
	if was == "" || is == "" || was == is {
		t.Errorf("peering %q, after %q", is, was)
	}
	fixture.Must(t, "reading the pod at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(remote), live))
	if live.UID != remote.UID {
		t.Error("the pod at milan is another one")
	}
	awaitPod(t, env.Rome, home, "to run on", func(p *corev1.Pod) bool { return p.UID == home.UID && p.Status.Phase == corev1.PodRunning })
	late := pod(home.Namespace)
	late.Name = "late"
	fixture.Must(t, "creating another pod", env.Rome.Client.Create(t.Context(), late))
	awaitPod(t, env.Rome, late, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	w.handOn(t, home.Namespace)
}

// The administrator of rome does not trust milan any more, which answers as ever: rome stops talking to it, and what milan holds of rome is
// worth nothing there. Data that is there stays: trusted again, milan is peered with as ever, and the claim has its volume again.
func TestRevokedAtTheConsumer(t *testing.T) {
	w := begin(t)
	data, home := w.dataAtMilan(t)
	w.awaitShows(t, "all to be well", "")
	same := stored(t, data)
	ours := func(user string) bool {
		return user == identity.TenantUser("rome") || strings.HasPrefix(user, identity.UserPrefix+"slice:")
	}
	report, err := revoke.Run(t.Context(), revoke.Options{Cluster: env.Rome.Target(t), PeerID: "milan", Timeout: 2 * forceTimeout})
	fixture.Must(t, "revoking", err)
	if report.Consumer || !report.Provider {
		t.Errorf("revoked %+v", report)
	}
	start := env.Milan.Recorder.Now(t)
	for _, object := range []client.Object{
		home, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.kubelet.Node}},
		&offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ConsumerNamespace, Name: w.kubelet.Node}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.ConsumerNamespace, Name: authv1beta1.KubeconfigSecretPrefix + authv1beta1.ControlPlaneIdentityPrefix + "milan"}},
	} {
		fixture.Await(t, 2*fixture.Patience, fmt.Sprintf("%T %s to be gone", object, object.GetName()), func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
	fixture.Must(t, "stopping the virtual kubelet, whose Deployment is gone", w.kubelet.Stop())
	for _, write := range env.Milan.Recorder.Since(t, start, ours) {
		t.Errorf("rome still writes at milan: %+v", write)
	}
	fixture.Must(t, "reading the Tenant at milan", env.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ProviderNamespace, Name: "rome"}, &authv1beta1.Tenant{}))
	same("once revoked")

	w.kubelet = env.Peer(t)
	w.awaitShows(t, "all to be well after peering again", "")
	another(t, "late", home)
	same("after peering again")
	w.handOn(t, data.Namespace)
}

// stored returns a check that what holds a claim's data is still there: the claim at rome, its twin in its namespace, and both of their
// volumes, each bound to the other as when this was called.
func stored(t *testing.T, data *corev1.PersistentVolumeClaim) (same func(when string)) {
	t.Helper()
	look := func() map[string]string {
		all := map[string]string{}
		for _, c := range []*fixture.Cluster{env.Rome, env.Milan} {
			twin, claim, volume := &corev1.Namespace{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
			fixture.Must(t, "reading the namespace at "+c.ID, c.Client.Get(t.Context(), client.ObjectKey{Name: data.Namespace}, twin))
			fixture.Must(t, "reading the claim at "+c.ID, c.Client.Get(t.Context(), client.ObjectKeyFromObject(data), claim))
			fixture.Must(t, "reading the volume at "+c.ID, c.Client.Get(t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume))
			for _, object := range []client.Object{twin, claim, volume} {
				all[fmt.Sprintf("%T at %s", object, c.ID)] = fmt.Sprintf("%s, being deleted: %t", object.GetUID(), object.GetDeletionTimestamp() != nil)
			}
			all["states at "+c.ID] = fmt.Sprintf("the claim is %s, the volume %s to claim %s", claim.Status.Phase, volume.Status.Phase, volume.Spec.ClaimRef.UID)
		}
		return all
	}
	before := look()
	return func(when string) {
		t.Helper()
		if diff := cmp.Diff(before, look()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
}

// G2: rome was away for longer than its certificates lived. Milan has one ready for the key that rome has, and no new peering is needed.
func TestCertificatesThatExpiredAreRenewedByThePresentKey(t *testing.T) {
	w := begin(t)
	home, remote := w.runningAtMilan(t)
	env.Milan.Link.Cut()
	t.Cleanup(env.Milan.Link.Mend)
	w.awaitLost(t)
	before, err := controlPlane(t.Context())
	fixture.Must(t, "reading the Identity", err)
	peering := identity.CertificatePeering(before.Spec.AuthParams.SignedCRT)
	identities := &authv1beta1.IdentityList{}
	fixture.Must(t, "listing Identities", env.Rome.Client.List(t.Context(), identities, client.InNamespace(fixture.ConsumerNamespace)))
	for i := range identities.Items {
		object := &identities.Items[i]
		key := &corev1.Secret{}
		fixture.Must(t, "reading a key", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: object.Namespace, Name: authv1beta1.KeySecretPrefix + object.Name}, key))
		pair, err := identity.KeyPairFromData(key.Data)
		fixture.Must(t, "reading a key", err)
		subject := identity.TenantSubject("rome")
		if object.Spec.Type == authv1beta1.ResourceSliceIdentityType {
			subject = identity.SliceSubject("rome", object.Labels[authv1beta1.ResourceSliceNameLabel])
		}
		changed := object.DeepCopy()
		changed.Spec.AuthParams.SignedCRT = env.Issue(t, env.Milan, subject.InPeering(peering), pair.Public(), time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour))
		fixture.Must(t, "playing that time passed", env.Rome.Client.Patch(t.Context(), changed, client.MergeFrom(object)))
	}
	// The link is mended afterwards: the kubeconfigs, which are kept until there are others, hold certificates that are valid in truth.
	_, err = authenticate.Run(t.Context(), authenticate.Options{Consumer: env.Rome.Target(t), Provider: env.Milan.Target(t), SkipValidation: true, Timeout: peerTimeout})
	fixture.Must(t, "carrying the certificate over", err)
	env.Milan.Link.Mend()
	w.awaitShows(t, "all to be well again", "")
	after, err := controlPlane(t.Context())
	fixture.Must(t, "reading the Identity", err)
	if is := identity.CertificatePeering(after.Spec.AuthParams.SignedCRT); is != peering {
		t.Errorf("it is peering %s, after %s", is, peering)
	}
	live := &corev1.Pod{}
	fixture.Must(t, "reading the pod at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(remote), live))
	if live.UID != remote.UID {
		t.Error("the pod at milan is another one")
	}
	w.handOn(t, home.Namespace)
}
