package reflection

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// policySpec reads the rules of a policy for ingress; NEXT stands for a name.
func (w *world) policySpec(text, next string) networkingv1.NetworkPolicySpec {
	w.Helper()
	var spec networkingv1.NetworkPolicySpec
	text = "{podSelector: {}, policyTypes: [Ingress], " + strings.ReplaceAll(text, "NEXT", next) + "}"
	fixture.Must(w, "reading "+text, yaml.UnmarshalStrict([]byte(text), &spec))
	return spec
}

// has waits until the policy of that name has these rules at the provider.
func (w *world) has(name string, want networkingv1.NetworkPolicySpec) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "the policy "+name+" at the provider", func(ctx context.Context) (bool, string) {
		remote, is := w.remote(ctx, name).(*networkingv1.NetworkPolicy)
		if !is {
			return false, "there is none; events:\n" + w.events.all()
		}
		diff := cmp.Diff(want, remote.Spec, cmpopts.EquateEmpty())
		return diff == "", diff
	})
}

// offloadToo makes a second namespace that can be offloaded.
func (w *world) offloadToo() (namespace, twin string) {
	w.Helper()
	namespace = w.namespace + "-next"
	twin = namespace + "-" + home
	w.createAnew(env.Rome, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"team": namespace}}})
	w.createAnew(env.Rome, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: localBinding, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "liqo-virtual-kubelet-local"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.account}},
	})
	for _, object := range fixture.TwinNamespace(twin, home) {
		w.createAnew(env.Milan, object)
	}
	return namespace, twin
}

// TestNetworkPoliciesFollowTheirNamespaces: what a policy allows at the provider are twins of the namespaces that it selects at home, as these are
// offloaded and change; a rule that is left without anybody never becomes one about everybody.
func TestNetworkPoliciesFollowTheirNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "networkpolicy")
	namespace, twin := w.offloadToo()
	type rules struct{ local, before, after string }
	const named = "{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [%s]}]}}"
	next := fmt.Sprintf(named, twin)
	cases := map[string]rules{
		"nobody":     {"", "", ""},
		"everybody":  {"ingress: [{}]", "ingress: [{}]", "ingress: [{}]"},
		"own":        {"ingress: [{from: [{podSelector: {}}]}]", "ingress: [{from: [{podSelector: {}}]}]", "ingress: [{from: [{podSelector: {}}]}]"},
		"by-name":    {"ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NEXT}}}]}]", "", "ingress: [{from: [" + next + "]}]"},
		"by-label":   {"ingress: [{from: [{namespaceSelector: {matchLabels: {team: NEXT}}}]}]", "", "ingress: [{from: [" + next + "]}]"},
		"one-of-two": {"ingress: [{from: [{podSelector: {}}, {namespaceSelector: {matchLabels: {team: NEXT}}}]}]", "ingress: [{from: [{podSelector: {}}]}]", "ingress: [{from: [{podSelector: {}}, " + next + "]}]"},
		"all": {"ingress: [{from: [{namespaceSelector: {}}]}]", "ingress: [{from: [" + fmt.Sprintf(named, w.twin) + "]}]",
			"ingress: [{from: [" + fmt.Sprintf(named, twin+", "+w.twin) + "]}]"},
		"everywhere": {"ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0, except: [192.0.2.0/24]}}]}]", "ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0, except: [192.0.2.0/24]}}]}]",
			"ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0, except: [192.0.2.0/24]}}]}]"},
	}
	for name, c := range cases {
		w.put(&networkingv1.NetworkPolicy{ObjectMeta: meta(name), Spec: w.policySpec(c.local, namespace)})
	}
	for name, c := range cases {
		w.has(name, w.policySpec(c.before, ""))
	}
	w.told(offloadingv1beta1.ReasonPartiallyReflected, "what has no counterpart there is not allowed: ingress[0].from[0]")

	w.wanted.Change(func(now *mirror.Wanted) { now.Mapping = map[string]string{w.namespace: w.twin, namespace: twin} })
	for name, c := range cases {
		w.has(name, w.policySpec(c.after, ""))
	}
	fixture.Await(t, fixture.Patience, "an edit of namespace "+namespace, func(ctx context.Context) (bool, string) {
		live := &corev1.Namespace{}
		if err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: namespace}, live); err != nil {
			return false, err.Error()
		}
		live.Labels["team"] = "other"
		err := env.Rome.Client.Update(ctx, live)
		return err == nil, fmt.Sprint(err)
	})
	w.wanted.Change(func(now *mirror.Wanted) { now.Skipped = "another" })
	w.editLocal("own", func(o reflection.Object) {
		o.(*networkingv1.NetworkPolicy).Spec = w.policySpec("ingress: [{ports: [{port: 8080, protocol: TCP}]}]", "")
	})
	w.has("own", w.policySpec("ingress: [{ports: [{port: 8080, protocol: TCP}]}]", ""))
	w.has("by-label", w.policySpec(cases["by-label"].before, ""))
	w.deleteFrom(env.Rome, w.namespace, "own")
	w.gone("own")
	if strings.Contains(w.events.all(), offloadingv1beta1.ReasonRemoteChangeReverted) {
		t.Errorf("somebody at the provider is said to have changed what the user did:\n%s", w.events.all())
	}
}

// TestNetworkPoliciesOfConsumersLiftNothing: as long as the provider says what pods of consumers may send, policies cross without egress, and
// the name of its own policy is not to be had.
func TestNetworkPoliciesOfConsumersLiftNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "networkpolicy")
	policy := func(name string, types ...networkingv1.PolicyType) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: meta(name), Spec: networkingv1.NetworkPolicySpec{PolicyTypes: types}}
	}
	fixture.Await(t, fixture.Patience, "the policy of the provider to be effective", func(ctx context.Context) (bool, string) {
		probe := policy("probe", networkingv1.PolicyTypeEgress)
		probe.Namespace, probe.Labels = w.twin, map[string]string{offloadingv1beta1.OriginLabel: home}
		err := w.link.client.Create(ctx, probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "EgressPolicyNotAllowed"), fmt.Sprint(err)
	})
	both := policy("both", networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	both.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	w.put(both)
	w.has("both", policy("both", networkingv1.PolicyTypeIngress).Spec)
	w.told(offloadingv1beta1.ReasonPartiallyReflected, "it says nothing there of what pods may send", "EgressPolicyNotAllowed")
	w.put(policy("egress", networkingv1.PolicyTypeEgress))
	w.told(offloadingv1beta1.ReasonFailedReflection, "EgressPolicyNotAllowed")
	w.put(policy("liqo", networkingv1.PolicyTypeIngress))
	w.told(offloadingv1beta1.ReasonFailedReflection, "NetworkPolicy liqo is the provider's")
	for _, name := range []string{"egress", "liqo"} {
		if w.remote(t.Context(), name) != nil {
			t.Errorf("policy %s crossed", name)
		}
	}
}

// bindRole gives the consumer another role in its twin, in place of the one that it has, and waits until it may list policies or may not.
func (w *world) bindRole(role string, may bool) {
	w.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: offloadingv1beta1.RemoteClusterRole, Namespace: w.twin}}
	fixture.Must(w, "reading the binding", env.Milan.Client.Get(w.Context(), client.ObjectKeyFromObject(binding), binding))
	fixture.Must(w, "deleting the binding", env.Milan.Client.Delete(w.Context(), binding))
	binding.ResourceVersion, binding.UID, binding.RoleRef.Name = "", "", role
	fixture.Must(w, "creating the binding", env.Milan.Client.Create(w.Context(), binding))
	fixture.Await(w, fixture.Patience, "the rights of role "+role, func(ctx context.Context) (bool, string) {
		err := w.link.client.List(ctx, &networkingv1.NetworkPolicyList{}, client.InNamespace(w.twin))
		return (err == nil) == may, fmt.Sprint(err)
	})
}

// TestNetworkPoliciesNeedTheProvidersSay: with the rights that a provider gives by default none crosses.
// They cross by themselves once the provider lets its consumers have some.
func TestNetworkPoliciesNeedTheProvidersSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "networkpolicy")
	objects, err := env.Milan.Manifests(map[string]any{"offloading": map[string]any{}})
	fixture.Must(t, "rendering the chart", err)
	for _, role := range objects {
		if role.GetKind() == "ClusterRole" && role.GetName() == offloadingv1beta1.RemoteClusterRole {
			role.SetName(w.twin)
			fixture.Must(t, "creating the role of a provider by default", env.Milan.Client.Create(t.Context(), role))
			t.Cleanup(func() {
				fixture.Must(t, "deleting the role", env.Milan.Client.Delete(context.WithoutCancel(t.Context()), role))
			})
		}
	}
	w.bindRole(w.twin, false)
	w.put(specimens["networkpolicy"].make("unwanted"))
	fixture.Await(t, fixture.Patience, "the refusal to be a problem of the namespace", func(context.Context) (bool, string) {
		problems := fmt.Sprint(w.engine.Problems())
		return strings.Contains(problems, "networkpolicies.networking.k8s.io is forbidden"), problems
	})
	if w.remote(t.Context(), "unwanted") != nil {
		t.Error("a policy crossed that the provider did not want")
	}
	w.bindRole(offloadingv1beta1.RemoteClusterRole, true)
	w.converged("unwanted")
}
