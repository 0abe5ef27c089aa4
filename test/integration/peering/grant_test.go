package peering

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// V9: however many ask at the same time, the sum of what is admitted does not exceed the grant.
func TestQuotaHoldsUnderConcurrency(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "3", "memory", "1Gi", "pods", "100"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	spec := world.Container(func(one *corev1.Container) { one.Resources.Requests = world.Quantities("cpu", "1") })
	const attempts = 24
	answers := make([]error, attempts)
	var all sync.WaitGroup
	for i := range attempts {
		all.Go(func() { answers[i] = user.Create(t.Context(), c.Shadow(namespace, fmt.Sprintf("pod-%d", i), spec)) })
	}
	all.Wait()
	admitted := 0
	for _, err := range answers {
		switch {
		case err == nil:
			admitted++
		case !strings.Contains(err.Error(), offloadingv1beta1.ReasonQuotaExceeded):
			t.Errorf("refused with %v, want reason %s", err, offloadingv1beta1.ReasonQuotaExceeded)
		}
	}
	if admitted != 3 {
		t.Errorf("%d ShadowPods of 1 cpu were admitted to a grant of 3", admitted)
	}
	// A user without a grant gets nothing.
	if err := env.Milan.Slice(t, c.ID, "other").Create(t.Context(), c.Shadow(namespace, "ungranted", spec)); err == nil {
		t.Error("a ShadowPod of a slice that does not exist was admitted")
	}
}

// V10: a cordon outlives the slice that it was put on.
func TestCordonOutlivesTheSlice(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	slice := c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "3", "pods", "100"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	plain := world.Container(func(*corev1.Container) {})
	fixture.Must(t, "creating a ShadowPod before the cordon", user.Create(t.Context(), c.Shadow(namespace, "before", plain)))
	fixture.Must(t, "cordoning the slice", env.Milan.Client.Patch(t.Context(), slice.DeepCopy(),
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"liqo.io/cordon":"true"}}}`))))
	n := 0
	refused := func(what string) {
		fixture.Await(t, fixture.Patience, what, func(ctx context.Context) (bool, string) {
			n++
			err := user.Create(ctx, c.Shadow(namespace, fmt.Sprintf("after-%d", n), plain), client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), offloadingv1beta1.ReasonCordoned), fmt.Sprint(err)
		})
	}
	refused("the cordon to be effective")
	fixture.Must(t, "deleting the slice", c.User.Delete(t.Context(), slice))
	fixture.Await(t, fixture.Patience, "the slice to be gone", func(ctx context.Context) (bool, string) {
		err := c.User.Get(ctx, client.ObjectKeyFromObject(slice), slice.DeepCopy())
		return err != nil, "it is there"
	})
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "3", "pods", "100"))
	refused("the recreated slice to be cordoned")
}

// V3, V4: what a ShadowPod may be is an allow-list; each refusal names the field.
func TestShadowPodsAreChecked(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "10", "pods", "100"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	podWith := func(change func(*corev1.PodSpec)) corev1.PodSpec {
		spec := world.Container(func(*corev1.Container) {})
		change(&spec)
		return spec
	}
	secured := func(change func(*corev1.SecurityContext)) corev1.PodSpec {
		return world.Container(func(one *corev1.Container) {
			one.SecurityContext = &corev1.SecurityContext{}
			change(one.SecurityContext)
		})
	}
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		return podWith(func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} })
	}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"the host's network":     {podWith(func(s *corev1.PodSpec) { s.HostNetwork = true }), "hostNetwork"},
		"the host's processes":   {podWith(func(s *corev1.PodSpec) { s.HostPID = true }), "hostPID"},
		"the host's memory":      {podWith(func(s *corev1.PodSpec) { s.HostIPC = true }), "hostIPC"},
		"a node of its choice":   {podWith(func(s *corev1.PodSpec) { s.NodeName = "milan-sim-1" }), "nodeName"},
		"a ServiceAccount":       {podWith(func(s *corev1.PodSpec) { s.ServiceAccountName = "admin" }), "serviceAccount"},
		"a token":                {podWith(func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = nil }), "automountServiceAccountToken"},
		"a priority class":       {podWith(func(s *corev1.PodSpec) { s.PriorityClassName = "system-node-critical" }), "priorityClassName"},
		"a priority":             {podWith(func(s *corev1.PodSpec) { s.Priority = ptr.To[int32](1 << 30) }), "priority"},
		"a scheduler":            {podWith(func(s *corev1.PodSpec) { s.SchedulerName = "mine" }), "schedulerName"},
		"a host path":            {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}), "hostPath"},
		"a privileged container": {secured(func(s *corev1.SecurityContext) { s.Privileged = ptr.To(true) }), "privileged"},
		"a capability": {secured(func(s *corev1.SecurityContext) {
			s.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}
		}), "capabilities"},
		"an unmasked /proc": {secured(func(s *corev1.SecurityContext) { s.ProcMount = ptr.To(corev1.UnmaskedProcMount) }), "procMount"},
		"a host port": {world.Container(func(one *corev1.Container) {
			one.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		}), "hostPort"},
		"an unsafe sysctl": {podWith(func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		}), "sysctls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := user.Create(t.Context(), c.Shadow(namespace, fixture.Unique("bad"), tc.spec))
			if err == nil {
				t.Fatal("the ShadowPod was admitted")
			}
			if !strings.Contains(err.Error(), offloadingv1beta1.ReasonPodRefused) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("refused with %v, want reason %s and the field %s", err, offloadingv1beta1.ReasonPodRefused, tc.want)
			}
		})
	}
	fixture.Must(t, "creating an honest ShadowPod", user.Create(t.Context(), c.Shadow(namespace, "honest", world.Container(func(*corev1.Container) {}))))
}

// V11: names that belong to the cluster, to Liqo, to other tenants or to somebody else are refused for each by itself, and those
// namespaces are not touched.
func TestNamespaceNames(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	victim := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("victim")}}
	fixture.Must(t, "creating a namespace", env.Milan.Client.Create(t.Context(), victim))
	wishes := map[string]string{
		"kube-system": offloadingv1beta1.ReasonNamespaceNotAllowed, "kube-made-up": offloadingv1beta1.ReasonNamespaceNotAllowed,
		"default": offloadingv1beta1.ReasonNamespaceNotAllowed, fixture.Namespace: offloadingv1beta1.ReasonNamespaceNotAllowed,
		fixture.ProviderNamespace: offloadingv1beta1.ReasonNamespaceNotAllowed, c.Namespace: offloadingv1beta1.ReasonNamespaceNotAllowed,
		"probe": offloadingv1beta1.ReasonNamespaceConflict, victim.Name: offloadingv1beta1.ReasonNamespaceConflict,
		"Not/A/Name": offloadingv1beta1.ReasonNamespaceNotAllowed, "": offloadingv1beta1.ReasonNamespaceNotAllowed,
	}
	// Those that were asked for, and what there is of the consumer: other tests make namespaces meanwhile.
	watched := func(n *corev1.Namespace) bool {
		_, wished := wishes[n.Name]
		return wished || n.Labels[corev1beta1.RemoteClusterIDLabel] == c.ID ||
			strings.HasPrefix(n.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation], c.Namespace+"/")
	}
	before := namespaces(t, watched)
	honest := fixture.Unique("honest")
	m := &offloadingv1beta1.NamespaceMap{ObjectMeta: c.Marks("milan"),
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"good": honest}}}
	local := map[string]string{}
	for name := range wishes {
		local[name] = fmt.Sprintf("bad-%d", len(local))
		m.Spec.DesiredMapping[local[name]] = name
	}
	fixture.Must(t, "creating a NamespaceMap", c.User.Create(t.Context(), m))
	fixture.Await(t, fixture.Patience, "an answer for each namespace", func(ctx context.Context) (bool, string) {
		err := c.User.Get(ctx, client.ObjectKeyFromObject(m), m)
		return err == nil && len(m.Status.CurrentMapping) == len(m.Spec.DesiredMapping) &&
			m.Status.CurrentMapping["good"].Phase == offloadingv1beta1.MappingAccepted, fmt.Sprint(m.Status, err)
	})
	for name, reason := range wishes {
		answer := m.Status.CurrentMapping[local[name]]
		if answer.Phase != offloadingv1beta1.MappingCreationLoopBackOff || answer.Reason != reason || answer.Message == "" {
			t.Errorf("the answer for %q is %+v, want reason %s", name, answer, reason)
		}
	}
	after := namespaces(t, watched)
	delete(after, honest)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("namespaces were touched (-before +after):\n%s", diff)
	}
}

// namespaces are the names, UIDs, labels and annotations of some namespaces of milan.
func namespaces(t *testing.T, which func(*corev1.Namespace) bool) map[string]string {
	t.Helper()
	list := &corev1.NamespaceList{}
	fixture.Must(t, "listing namespaces", env.Milan.Client.List(t.Context(), list))
	found := map[string]string{}
	for i := range list.Items {
		if n := &list.Items[i]; which(n) {
			found[n.Name] = fmt.Sprint(n.UID, n.Labels, n.Annotations)
		}
	}
	return found
}
