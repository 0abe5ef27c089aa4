package greed

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/counting"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// hoarder is a consumer that may have 10Ti in a twin at a provider whose class retains volumes.
type hoarder struct {
	*world.Tenant
	user  *fixture.User
	twin  string
	count int
}

func newHoarder(t *testing.T) *hoarder {
	t.Helper()
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "1", "pods", "5"))
	h := &hoarder{Tenant: c, twin: c.Twin(t), user: env.Milan.Slice(t, c.ID, world.GrantedSlice)}
	t.Cleanup(func() {
		for _, volume := range h.retained(t) {
			_ = env.Milan.Client.Delete(context.WithoutCancel(t.Context()), volume)
		}
	})
	return h
}

// claims makes a claim of 9Ti.
func (h *hoarder) claims(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
	h.count++
	data := world.Claim(h.twin, fmt.Sprintf("data-%d", h.count), fixture.SimulatedClass)
	data.Labels = map[string]string{offloadingv1beta1.OriginLabel: h.ID, offloadingv1beta1.DestinationLabel: "milan"}
	data.Spec.Resources.Requests = world.Quantities("storage", "9Ti")
	return data, h.user.Create(ctx, data)
}

// leaves has a claim get its volume, and deletes it.
func (h *hoarder) leaves(t *testing.T, data *corev1.PersistentVolumeClaim) {
	t.Helper()
	fixture.Must(t, "selecting a node", env.Milan.Client.Patch(t.Context(), data.DeepCopy(),
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"x"}}}`, reflection.SelectedNodeAnnotation))))
	world.AwaitClaim(t, env.Milan, data, "is bound", world.Bound)
	fixture.Must(t, "deleting the claim", h.user.Delete(t.Context(), data.DeepCopy()))
}

// retained are the volumes that were the consumer's.
func (h *hoarder) retained(t *testing.T) (volumes []*corev1.PersistentVolume) {
	t.Helper()
	list := &corev1.PersistentVolumeList{}
	fixture.Must(t, "listing PersistentVolumes", env.Milan.Client.List(context.WithoutCancel(t.Context()), list))
	for i := range list.Items {
		if ref := list.Items[i].Spec.ClaimRef; ref != nil && ref.Namespace == h.twin {
			volumes = append(volumes, &list.Items[i])
		}
	}
	return volumes
}

// awaitRoom waits until the twin's quota leaves this much to claims.
func (h *hoarder) awaitRoom(t *testing.T, want string) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "the twin to have room for "+want, func(ctx context.Context) (bool, string) {
		quota := &corev1.ResourceQuota{}
		err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: h.twin, Name: counting.QuotaName}, quota)
		hard, used := quota.Status.Hard[corev1.ResourceRequestsStorage], quota.Status.Used[corev1.ResourceRequestsStorage]
		return err == nil && used.IsZero() && hard.Cmp(resource.MustParse(want)) == 0, fmt.Sprint(quota.Spec, quota.Status, err)
	})
}

// T33: bytes of storage are counted for a consumer as long as they are taken. Of a class that retains volumes they are taken when the claim is
// gone, too.
func TestRetainedVolumesAreCounted(t *testing.T) {
	h := newHoarder(t)
	data, err := h.claims(t.Context())
	fixture.Must(t, "making a claim", err)
	h.leaves(t, data)
	h.awaitRoom(t, "1Ti")
	if _, err = h.claims(t.Context()); err == nil || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("a consumer that may have 10Ti and has 9Ti in a volume that is retained is answered, for 9Ti more: %v", err)
	}

	// The administrator takes the volume back, and later gives it away; or deletes it.
	volume := h.retained(t)[0]
	fixture.Must(t, "taking the volume back", env.Milan.Client.Patch(t.Context(), volume.DeepCopy(),
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"claimRef":null}}`))))
	h.awaitRoom(t, "10Ti")
	fixture.Must(t, "deleting the volume", env.Milan.Client.Delete(t.Context(), volume))
	data, err = h.claims(t.Context())
	fixture.Must(t, "making a claim when there is room again", err)
	h.leaves(t, data)
	h.awaitRoom(t, "1Ti")
	fixture.Must(t, "deleting the volume", env.Milan.Client.Delete(t.Context(), h.retained(t)[0]))
	h.awaitRoom(t, "10Ti")
}

// T33: a namespace that is made anew begins with what its predecessor left.
func TestVolumesThatOutliveTheirNamespaceAreCounted(t *testing.T) {
	h := newHoarder(t)
	data, err := h.claims(t.Context())
	fixture.Must(t, "making a claim", err)
	h.leaves(t, data)
	h.awaitRoom(t, "1Ti")
	desire := func(mapping string) {
		m := &offloadingv1beta1.NamespaceMap{ObjectMeta: h.Marks("milan")}
		fixture.Must(t, "changing the NamespaceMap", h.User.Patch(t.Context(), m,
			client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"desiredMapping":{"shop":%s}}}`, mapping))))
	}
	desire("null")
	world.AwaitGone(t, env.Milan, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.twin}})
	desire(fmt.Sprintf("%q", h.twin))
	h.awaitRoom(t, "1Ti")
	fixture.Await(t, fixture.Patience, "an answer in the new twin that is not about rights", func(ctx context.Context) (bool, string) {
		_, err = h.claims(ctx)
		return err == nil || strings.Contains(err.Error(), "exceeded quota"), fmt.Sprint(err)
	})
	if err == nil {
		t.Error("a consumer that may have 10Ti and has 9Ti in a volume that outlived its namespace gets 9Ti more")
	}
}

// T33: Kubernetes gives the room of a claim back a moment before anybody knows that its volume stays. A consumer that is faster gets one more claim
// by that, and none after it.
func TestWhoeverIsFasterThanTheCountGetsOneClaimMore(t *testing.T) {
	h := newHoarder(t)
	for range 3 {
		for begin := time.Now(); time.Since(begin) < 2*time.Second; {
			if data, err := h.claims(t.Context()); err == nil {
				h.leaves(t, data)
				break
			}
		}
	}
	volumes := h.retained(t)
	t.Logf("it has %d volumes of 9Ti", len(volumes))
	if len(volumes) > 2 {
		t.Errorf("a consumer that may have 10Ti has %d volumes of 9Ti", len(volumes))
	}
}
