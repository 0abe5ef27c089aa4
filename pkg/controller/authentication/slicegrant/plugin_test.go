package slicegrant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	resourcesv1 "liqo.io/liqo/pkg/apis/resources/v1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/controller/authentication/resourceplugin"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// decider is a plugin that grants what is written, or fails.
type decider struct {
	grant map[string]string
	words string
	err   error
	asked int
}

// Decide implements resourcesv1.GrantsClient.
func (d *decider) Decide(_ context.Context, in *resourcesv1.DecideRequest, _ ...grpc.CallOption) (*resourcesv1.DecideResponse, error) {
	d.asked++
	return &resourcesv1.DecideResponse{ClusterId: in.GetClusterId(), Namespace: in.GetNamespace(), Name: in.GetName(), Grant: d.grant, Reason: d.words}, d.err
}

// plugged is a provider whose grants a plugin decides, as a process that has just started.
func (p *provider) plugged(d *decider) {
	p.r.options.Policy.Plugin = resourceplugin.New(d, p.r.options.Supply)
}

// decides answers slice a of a tenant before and after the plugin has decided.
func (p *provider) decides(tenant *authv1beta1.Tenant, change func(*authv1beta1.ResourceSlice)) (before, after *scope, errs [2]error) {
	p.Helper()
	key := types.NamespacedName{Namespace: tenantNamespace, Name: "a"}
	p.Cleanup(func() { p.r.options.Policy.Plugin.Forget(key) })
	var scopes [2]*scope
	for i := range scopes {
		s := &scope{tenant: tenant, quota: p.quota("a"), slice: slice(func(s *authv1beta1.ResourceSlice) { s.Name = "a"; change(s) })}
		errs[i] = p.r.grant(p.Context(), s)
		scopes[i] = s
		if i > 0 {
			break
		}
		select {
		case <-p.r.options.Policy.Plugin.Changed():
		case <-time.After(10 * time.Second):
			p.Fatal("waited 10s for the plugin to decide")
		}
	}
	return scopes[0], scopes[1], errs
}

func unchanged(*authv1beta1.ResourceSlice) {}

// The cluster has 12 cores, 48 GiB and 330 pods, whatever the plugin says.
func TestAPluginDecidesWhatIsGranted(t *testing.T) {
	limited := func(s *authv1beta1.TenantSpec) { s.Limits = &authv1beta1.TenantLimits{Resources: list("cpu", "2")} }
	for name, tc := range map[string]struct {
		plugin decider
		policy func(*Policy)
		tenant func(*authv1beta1.TenantSpec)
		class  authv1beta1.ResourceSliceClass
		asks   corev1.ResourceList
		runs   corev1.ResourceList
		want   string
	}{
		"in place of the share":  {plugin: decider{grant: map[string]string{"cpu": "3", "memory": "5Gi", "pods": "10"}}, want: "cpu 3, memory 5Gi, pods 10: the resources were granted as the resource plugin of the provider decided"},
		"with its reason":        {plugin: decider{grant: map[string]string{"cpu": "3", "pods": "10"}, words: "a quarter"}, want: "cpu 3, pods 10: the resources were granted as the resource plugin of the provider decided: a quarter"},
		"without a word of pods": {plugin: decider{grant: map[string]string{"cpu": "3"}}, want: "cpu 3, pods 330: the resources were granted as the resource plugin of the provider decided"},
		"in place of what is asked for": {plugin: decider{grant: map[string]string{"cpu": "3", "pods": "10"}}, asks: list("cpu", "9", "memory", "9Gi"),
			want: "cpu 3, pods 10: the resources were granted as the resource plugin of the provider decided"},
		"in place of fixed quantities": {plugin: decider{grant: map[string]string{"cpu": "3", "pods": "10"}}, policy: func(p *Policy) { p.DefaultResources = list("memory", "4Gi") },
			want: "cpu 3, pods 10: the resources were granted as the resource plugin of the provider decided"},
		"of classes that are answered here": {plugin: decider{grant: map[string]string{"cpu": "3", "pods": "10"}}, policy: func(p *Policy) { p.Shares = NewShares(Percentages{Classes: map[string]int32{"gold": 100}}) }, class: "gold",
			want: "cpu 3, pods 10: the resources were granted as the resource plugin of the provider decided"},
		"nothing":                       {plugin: decider{grant: map[string]string{"cpu": "0", "pods": "0"}}, want: "cpu 0, pods 0: the resources were granted as the resource plugin of the provider decided"},
		"more than the nodes have":      {plugin: decider{grant: map[string]string{"cpu": "100", "pods": "10"}}, want: "cpu 12, pods 10: the resources were granted, but less cpu than the resource plugin of the provider decided: all slices of this consumer together get what the provider's nodes have, or what its administrator set"},
		"more than the Tenant may have": {plugin: decider{grant: map[string]string{"cpu": "3", "pods": "10"}}, tenant: limited, want: "cpu 2, pods 10: the resources were granted, but less cpu than the resource plugin of the provider decided: all slices of this consumer together get what the provider's nodes have, or what its administrator set"},
		"what no node has":              {plugin: decider{grant: map[string]string{"example.org/fpga": "1", "pods": "10"}}, want: "example.org/fpga 0, pods 10: the resources were granted, but less example.org/fpga than the resource plugin of the provider decided: all slices of this consumer together get what the provider's nodes have, or what its administrator set"},
		"less than what runs":           {plugin: decider{grant: map[string]string{"cpu": "1", "pods": "10"}}, runs: list("cpu", "2", "memory", "1Gi"), want: "cpu 2, memory 1Gi, pods 10: the resources were granted as the resource plugin of the provider decided"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.policy == nil {
				tc.policy = func(*Policy) {}
			}
			if tc.tenant == nil {
				tc.tenant = plain
			}
			p, tenant := newSharer(t, tc.policy), tenantOf(tc.tenant)
			p.plugged(&tc.plugin)
			if tc.runs != nil {
				p.runs("theirs", tc.runs, tenant, "a")
			}
			before, after, errs := p.decides(tenant, func(s *authv1beta1.ResourceSlice) { s.Spec.Class, s.Spec.Resources = tc.class, tc.asks })
			if reconcile.ReasonOf(errs[0]) != authv1beta1.ReasonWaitingForPlugin || before.slice.Status.Resources != nil {
				t.Errorf("before the plugin has decided, %s is granted, error %v", capacity.Text(before.slice.Status.Resources), errs[0])
			}
			if errs[1] != nil {
				t.Fatal(errs[1])
			}
			if got := capacity.Text(after.slice.Status.Resources) + ": " + after.resources.message; got != tc.want {
				t.Errorf("granted are %s\nwant %s", got, tc.want)
			}
			if text := capacity.Text(after.slice.Status.Resources); text != capacity.Text(p.quota("a").Spec.Resources) {
				t.Errorf("the Quota has %s", capacity.Text(p.quota("a").Spec.Resources))
			}
			if over := after.over.status == "True"; over != (tc.runs != nil) {
				t.Errorf("over-commitment is told as %+v", after.over)
			}
		})
	}
}

// What was granted stays while the plugin fails, also over a restart, and the slice says why; nothing else is written.
func TestWhatWasGrantedStaysWhileThePluginFails(t *testing.T) {
	p, rome := newSharer(t, func(*Policy) {}), tenantOf(plain)
	p.plugged(&decider{grant: map[string]string{"cpu": "3", "pods": "10"}, words: "a quarter"})
	_, granted, errs := p.decides(rome, unchanged)
	if errs[1] != nil {
		t.Fatal(errs[1])
	}
	status, quota, writes := granted.slice.Status, p.quota("a"), p.Writes
	told := func(s *scope) string {
		t.Helper()
		p.r.summarize(s, nil)
		message := "nothing"
		if c := conditions.Find(s.slice.Status.Summary, authv1beta1.PluginFailedCondition); c != nil {
			message = c.Status + " " + c.Reason
		}
		return fmt.Sprintf("%s: %s", capacity.Text(s.slice.Status.Resources), message)
	}
	for _, step := range []struct {
		sentence      string
		plugin        decider
		before, after string
	}{
		{"it is back", decider{grant: map[string]string{"cpu": "3", "pods": "10"}, words: "a quarter"}, "cpu 3, pods 10: nothing", "cpu 3, pods 10: nothing"},
		{"it is wrong", decider{grant: map[string]string{"cpu": "-3"}}, "cpu 3, pods 10: nothing", "cpu 3, pods 10: True PluginAnswerRefused"},
		{"it fails", decider{err: errors.New("down")}, "cpu 3, pods 10: True PluginAnswerRefused", "cpu 3, pods 10: True PluginAnswerRefused"},
		{"it is asked again", decider{err: errors.New("down")}, "cpu 3, pods 10: True PluginAnswerRefused", "cpu 3, pods 10: True PluginAnswerRefused"},
		{"it is well", decider{grant: map[string]string{"cpu": "3", "pods": "10"}}, "cpu 3, pods 10: True PluginAnswerRefused", "cpu 3, pods 10: nothing"},
	} {
		p.plugged(&step.plugin)
		before, after, errs := p.decides(rome, func(s *authv1beta1.ResourceSlice) { s.Status = *status.DeepCopy() })
		for i, s := range []*scope{before, after} {
			if errs[i] != nil {
				t.Fatalf("%s: %v", step.sentence, errs[i])
			}
			s.resources = outcome{} // of which the recorder would be told
			if got, want := told(s), []string{step.before, step.after}[i]; got != want {
				t.Errorf("%s: %s, want %s", step.sentence, got, want)
			}
		}
		status = after.slice.Status
	}
	if after := p.quota("a"); after.ResourceVersion != quota.ResourceVersion || p.Writes != writes {
		t.Errorf("%d writes were made; the Quota is now %+v", p.Writes-writes, after.Spec)
	}
}

// A slice that was never granted waits, and says for what.
func TestASliceWaitsForThePlugin(t *testing.T) {
	p := newSharer(t, func(*Policy) {})
	p.plugged(&decider{err: errors.New("down")})
	_, after, errs := p.decides(tenantOf(plain), unchanged)
	if reconcile.ReasonOf(errs[0]) != authv1beta1.ReasonWaitingForPlugin || reconcile.ReasonOf(errs[1]) != authv1beta1.ReasonPluginAnswerRefused {
		t.Errorf("refused with %v, then %v", errs[0], errs[1])
	}
	p.r.summarize(after, errs[1])
	ready, failed := conditions.Find(after.slice.Status.Summary, "Ready"), conditions.Find(after.slice.Status.Summary, authv1beta1.PluginFailedCondition)
	if ready == nil || ready.Status != "False" || ready.Reason != authv1beta1.ReasonPluginAnswerRefused || failed == nil || !strings.Contains(failed.Message, "error Unknown") {
		t.Errorf("the slice says %+v", after.slice.Status.Summary)
	}
	if p.quota("a") != nil || conditions.Find(after.slice.Status.Conditions, authv1beta1.ResourcesCondition) != nil {
		t.Errorf("it was answered with %+v", after.slice.Status)
	}
}

// A plugin does not decide on slices of classes that other controllers answer, and is not asked about them.
func TestAPluginIsNotAskedAboutClassesOfOthers(t *testing.T) {
	p, rome, plugin := newSharer(t, func(*Policy) {}), tenantOf(plain), &decider{grant: map[string]string{"cpu": "3", "pods": "10"}}
	p.plugged(plugin)
	theirs := &scope{tenant: rome, slice: slice(func(s *authv1beta1.ResourceSlice) { s.Spec.Class = "theirs" })}
	if err := p.r.grant(t.Context(), theirs); err != nil || theirs.slice.Status.Resources != nil || theirs.resources.status != "" || theirs.plugin != nil {
		t.Errorf("a slice of another class got %v, %+v, error %v", theirs.slice.Status.Resources, theirs.resources, err)
	}
	if plugin.asked != 0 {
		t.Errorf("the plugin was asked about it")
	}
	// What they granted gets its Quota.
	theirs.slice.Status.Resources = list("cpu", "5")
	conditions.Set(&theirs.slice.Status.Conditions, corev1beta1.Condition{Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Accepted}, time.Now())
	if err := p.r.grant(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if quota := p.quota(theirs.slice.Name); quota == nil || capacity.Text(quota.Spec.Resources) != "cpu 5" || plugin.asked != 0 {
		t.Errorf("the Quota of what others granted is %+v, and the plugin was asked %d times", quota, plugin.asked)
	}
}

// A slice that becomes one of theirs, or goes, is given back.
func TestWhatIsNotAnsweredAnyMoreIsGivenBack(t *testing.T) {
	p, rome := newSharer(t, func(p *Policy) { p.Exclusive = true }), tenantOf(plain)
	p.asks(rome, "a", list("cpu", "12"))
	theirs := &scope{tenant: rome, quota: p.quota("a"), slice: slice(func(s *authv1beta1.ResourceSlice) { s.Name, s.Spec.Class = "a", "theirs" })}
	if err := p.r.grant(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	turin := supply.Of("turin", identity.SliceUser("turin", "b"))
	offer, err := p.r.options.Supply.Offer(client.ObjectKey{Namespace: "liqo-tenant-turin", Name: "b"}, turin, capacity.Wish{Requested: list("cpu", "12")}, nil)
	if err != nil || offer.Resources.Cpu().String() != "12" {
		t.Errorf("another consumer is offered %s cores of 12, error %v", offer.Resources.Cpu(), err)
	}
}
