package peering

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// burglar is a consumer with a twin namespace in which the provider keeps things of its own.
type burglar struct {
	*world.Tenant
	twin string
	user *fixture.User
	// class is that of a PersistentVolume which an administrator made for somebody; no StorageClass is behind it.
	class string
}

func newBurglar(t *testing.T) *burglar {
	t.Helper()
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "10", "pods", "100"))
	b := &burglar{Tenant: c, twin: c.Twin(t), user: env.Milan.Slice(t, c.ID, world.GrantedSlice), class: fixture.Unique("payroll")}
	one := corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.twin, Name: "providers"}, StringData: map[string]string{"password": "of the provider"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.twin, Name: "providers"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: b.twin, Name: "providers"},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: ptr.To("none"), Resources: corev1.VolumeResourceRequirements{Requests: one}}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: b.class, Labels: map[string]string{"owner": b.class}},
			Spec: corev1.PersistentVolumeSpec{Capacity: one, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: b.class,
				PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.5", Path: "/exports/payroll"}}}},
	} {
		fixture.Must(t, "preparing the provider", env.Milan.Client.Create(t.Context(), o))
	}
	return b
}

// becomes waits until it is decided what becomes of a ShadowPod: a Pod (nil: none), or why not.
func (b *burglar) becomes(t *testing.T, name string, spec corev1.PodSpec) (*corev1.Pod, string) {
	t.Helper()
	shadow := b.Shadow(b.twin, name, spec)
	if err := b.user.Create(t.Context(), shadow); err != nil {
		if !apierrors.IsForbidden(err) {
			t.Fatalf("%s: %v", name, err)
		}
		return nil, err.Error()
	}
	pod, why := &corev1.Pod{}, ""
	fixture.Await(t, fixture.Patience, "what becomes of ShadowPod "+name, func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(shadow), pod)
		if err == nil {
			return true, ""
		}
		pod.Name = ""
		live := &offloadingv1beta1.ShadowPod{}
		_ = b.user.Get(ctx, client.ObjectKeyFromObject(shadow), live)
		if ready := meta.FindStatusCondition(live.Status.Conditions, "Ready"); ready != nil && ready.Status == metav1.ConditionFalse {
			why = ready.Reason + ": " + ready.Message
		}
		return why != "", fmt.Sprint(err, live.Status)
	})
	if pod.Name == "" {
		return nil, why
	}
	return pod, ""
}

func withVolume(source corev1.VolumeSource) corev1.PodSpec {
	s := world.Container(func(one *corev1.Container) {
		one.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	})
	s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
	return s
}

func withEnv(from corev1.EnvFromSource) corev1.PodSpec {
	return world.Container(func(one *corev1.Container) { one.EnvFrom = []corev1.EnvFromSource{from} })
}

func withScheduling(change func(*corev1.PodSpec)) corev1.PodSpec {
	s := world.Container(func(*corev1.Container) {})
	change(&s)
	return s
}

// S2, S9, S10: what a consumer cannot have by itself it does not get through a ShadowPod, in whatever way that names it.
func TestThroughAShadowPod(t *testing.T) {
	t.Parallel()
	b := newBurglar(t)
	// The control: directly none of it can be had.
	if err := b.user.Get(t.Context(), client.ObjectKey{Namespace: b.twin, Name: "providers"}, &corev1.Secret{}); err == nil {
		t.Error("control: the Secret can be read")
	}
	theirs := corev1.LocalObjectReference{Name: "providers"}
	ephemeral := func(change func(*corev1.PersistentVolumeClaimSpec)) corev1.PodSpec {
		spec := corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: &b.class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}}
		change(&spec)
		return withVolume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec}}})
	}
	node := []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"milan-sim-1"}}}
	const foreign, refused = offloadingv1beta1.ReasonForeignReference, offloadingv1beta1.ReasonPodRefused
	for name, tc := range map[string]struct {
		reason string
		spec   corev1.PodSpec
	}{
		"secret":           {foreign, withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "providers"}})},
		"secret-optional":  {foreign, withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "providers", Optional: ptr.To(true)}})},
		"secret-projected": {foreign, withVolume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: theirs}}}}})},
		"secret-env":       {foreign, withEnv(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: theirs}})},
		"secret-pull":      {foreign, withScheduling(func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{theirs} })},
		"configmap":        {foreign, withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: theirs}})},
		"configmap-env":    {foreign, withEnv(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: theirs}})},
		"claim":            {foreign, withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "providers"}})},
		"csi": {refused, withVolume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "nfs.csi.k8s.io",
			VolumeAttributes: map[string]string{"server": "10.0.0.5", "share": "/exports/payroll"}}})},
		"ephemeral": {refused, ephemeral(func(c *corev1.PersistentVolumeClaimSpec) {
			c.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"owner": b.class}}
		})},
		"ephemeral-class": {refused, ephemeral(func(*corev1.PersistentVolumeClaimSpec) {})},
		"ephemeral-empty": {refused, ephemeral(func(c *corev1.PersistentVolumeClaimSpec) { c.StorageClassName = ptr.To("") })},
		"ephemeral-clone": {refused, ephemeral(func(c *corev1.PersistentVolumeClaimSpec) {
			c.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "providers"}
		})},
		"node": {refused, withScheduling(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: node}}}}}
		})},
		"node-label": {refused, withScheduling(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelHostname: "milan-sim-1"} })},
	} {
		t.Run(name, func(t *testing.T) {
			pod, why := b.becomes(t, name, tc.spec)
			if pod != nil {
				t.Fatalf("the consumer has Pod %s of %+v", pod.Name, pod.Spec)
			}
			if !strings.Contains(why, tc.reason) {
				t.Errorf("refused with %q, want %s", why, tc.reason)
			}
		})
	}
}

// What a pod does without just as well it does not get, and runs: tolerations of dedicated and cordoned nodes, of control planes and of everything,
// years to end.
func TestAShadowPodIsReduced(t *testing.T) {
	t.Parallel()
	b := newBurglar(t)
	for name, toleration := range map[string]corev1.Toleration{"dedicated": {Key: "dedicated", Operator: corev1.TolerationOpExists},
		"cordoned": {Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}, "everything": {Operator: corev1.TolerationOpExists},
		"control-plane": {Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}} {
		t.Run(name, func(t *testing.T) {
			pod, why := b.becomes(t, name, withScheduling(func(s *corev1.PodSpec) {
				s.Tolerations, s.TerminationGracePeriodSeconds = []corev1.Toleration{toleration}, ptr.To[int64](1<<31)
			}))
			if pod == nil {
				t.Fatalf("there is no pod: %s", why)
			}
			if slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == toleration.Key }) || *pod.Spec.TerminationGracePeriodSeconds != 3600 {
				t.Errorf("it tolerates %v and takes %d s to end", pod.Spec.Tolerations, *pod.Spec.TerminationGracePeriodSeconds)
			}
		})
	}
}

// S9: what is not there yet is awaited: what the provider makes later is not the consumer's, and what the consumer brings later is.
func TestThroughAShadowPodThatIsEarly(t *testing.T) {
	t.Parallel()
	b := newBurglar(t)
	early := withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "later"}})
	if pod, why := b.becomes(t, "early", early); pod != nil || !strings.Contains(why, offloadingv1beta1.ReasonReferencesPending) {
		t.Fatalf("there is Pod %v, or %q", pod, why)
	}
	fixture.Must(t, "making the provider's Secret", env.Milan.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.twin, Name: "later"}}))
	fixture.Await(t, fixture.Patience, "the ShadowPod to be refused", func(ctx context.Context) (bool, string) {
		live := &offloadingv1beta1.ShadowPod{}
		err := b.user.Get(ctx, client.ObjectKey{Namespace: b.twin, Name: "early"}, live)
		ready := meta.FindStatusCondition(live.Status.Conditions, "Ready")
		return err == nil && ready != nil && ready.Reason == offloadingv1beta1.ReasonForeignReference, fmt.Sprint(err, live.Status)
	})
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.twin, Name: "own", Labels: map[string]string{
		offloadingv1beta1.OriginLabel: b.ID, offloadingv1beta1.DestinationLabel: "milan"}}}
	fixture.Must(t, "making the consumer's Secret", b.user.Create(t.Context(), own))
	if pod, why := b.becomes(t, "own", withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}})); pod == nil {
		t.Errorf("a pod that uses what its consumer brought is not made: %s", why)
	}
}

// S7: a class that no StorageClass stands for is that of a volume which somebody made for a claim of theirs.
func TestClaimsOfClassesThatAreNotOffered(t *testing.T) {
	t.Parallel()
	b := newBurglar(t)
	data := world.Claim(b.twin, "loot", b.class)
	data.Labels = map[string]string{offloadingv1beta1.OriginLabel: b.ID, offloadingv1beta1.DestinationLabel: "milan"}
	if err := b.user.Create(t.Context(), data); err == nil || !strings.Contains(err.Error(), "StorageClassNotAllowed") {
		t.Errorf("a claim of class %s is answered with %v", b.class, err)
	}
}
