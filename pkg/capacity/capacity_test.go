package capacity

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func text(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func TestPodRequests(t *testing.T) {
	sidecar := container("side", resources("cpu", "2"), nil)
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want map[string]string
	}{
		"a pod without requests is one pod": {corev1.PodSpec{Containers: []corev1.Container{{}}}, map[string]string{"pods": "1"}},
		"containers add up":                 {corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "1", "memory", "1Gi"), nil), container("b", resources("cpu", "500m"), nil)}}, map[string]string{"pods": "1", "cpu": "1500m", "memory": "1Gi"}},
		"the largest init container counts": {corev1.PodSpec{InitContainers: []corev1.Container{container("i", resources("cpu", "4"), nil)}, Containers: []corev1.Container{container("a", resources("cpu", "1"), nil)}}, map[string]string{"pods": "1", "cpu": "4"}},
		"V9: sidecars add up":               {corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container("a", resources("cpu", "1"), nil)}}, map[string]string{"pods": "1", "cpu": "3"}},
		"V9: overhead counts":               {corev1.PodSpec{Overhead: resources("cpu", "250m"), Containers: []corev1.Container{container("a", resources("cpu", "1"), nil)}}, map[string]string{"pods": "1", "cpu": "1250m"}},
		"V9: resources of the pod count":    {corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: resources("cpu", "3")}, Containers: []corev1.Container{container("a", resources("cpu", "1"), nil)}}, map[string]string{"pods": "1", "cpu": "3"}},
		"V9: a limit without a request is one": {corev1.PodSpec{InitContainers: []corev1.Container{container("i", nil, resources("memory", "1Ti"))},
			Containers: []corev1.Container{container("a", nil, resources("cpu", "500", "nvidia.com/gpu", "8")), container("b", resources("memory", "1Gi"), resources("cpu", "1", "memory", "2Gi"))}},
			map[string]string{"pods": "1", "cpu": "501", "memory": "1Ti", "nvidia.com/gpu": "8"}},
		"V9: a limit of the pod is one": {corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: resources("cpu", "500", "memory", "1Ti", "hugepages-2Mi", "4Mi", "example.com/x", "1")},
			Containers: []corev1.Container{container("a", resources("cpu", "1", "hugepages-2Mi", "2Mi"), nil)}},
			map[string]string{"pods": "1", "cpu": "1", "memory": "1Ti", "hugepages-2Mi": "4Mi"}},
		"V9: a small request of the pod hides nothing": {corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: resources("cpu", "1")},
			Containers: []corev1.Container{container("a", nil, resources("cpu", "3"))}}, map[string]string{"pods": "1", "cpu": "3"}},
		"V9: crumbs are rounded up":                               {corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "1n"), nil), container("b", resources("cpu", "1n"), nil)}}, map[string]string{"pods": "1", "cpu": "2m"}},
		"a request of zero is one of its own, whatever the limit": {corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "0"), resources("cpu", "5"))}}, map[string]string{"pods": "1"}},
		"nothing is ever given back":                              {corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "-5"), nil)}}, map[string]string{"pods": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, text(PodRequests(&tc.spec))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	one := corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "1", "memory", "1Gi"), nil)}}
	full := corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "1", "memory", "1Gi"), resources("cpu", "1", "memory", "1Gi"))}}
	bare := corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}
	init := corev1.PodSpec{InitContainers: []corev1.Container{{Name: "i"}}, Containers: full.Containers}
	together := corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: resources("cpu", "1", "memory", "1Gi")}, Containers: []corev1.Container{{Name: "a"}}}
	bounded := corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: resources("cpu", "1", "memory", "1Gi"), Limits: resources("cpu", "1", "memory", "1Gi")}, Containers: []corev1.Container{{Name: "a"}}}
	loose := *bounded.DeepCopy()
	loose.Resources.Limits = resources("cpu", "1", "memory", "2Gi")
	gpu := corev1.PodSpec{Containers: []corev1.Container{container("a", resources("nvidia.com/gpu", "1"), nil)}}
	negative := corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "2"), nil), container("b", resources("cpu", "-1"), nil)}}
	grant := resources("cpu", "4", "memory", "8Gi", "pods", "10")
	disk := resources("cpu", "4", "memory", "8Gi", "pods", "10", "ephemeral-storage", "10Gi")
	stored := func(limit string) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi"), resources("cpu", "1", "memory", "1Gi", "ephemeral-storage", limit))}}
	}
	for name, tc := range map[string]struct {
		quota offloadingv1beta1.QuotaSpec
		spec  corev1.PodSpec
		used  corev1.ResourceList
		want  string
	}{
		"it fits":                                          {offloadingv1beta1.QuotaSpec{Resources: grant}, one, nil, ""},
		"it fits exactly":                                  {offloadingv1beta1.QuotaSpec{Resources: grant}, one, resources("cpu", "3", "pods", "9"), ""},
		"the last bit is missing":                          {offloadingv1beta1.QuotaSpec{Resources: grant}, one, resources("cpu", "3001m"), "QuotaExceeded: the provider's grant of cpu is used up: requested 1, used 3001m of 4"},
		"pods are counted":                                 {offloadingv1beta1.QuotaSpec{Resources: grant}, one, resources("pods", "10"), "QuotaExceeded: the provider's grant of pods is used up"},
		"pods are unlimited unless named":                  {offloadingv1beta1.QuotaSpec{Resources: resources("cpu", "4", "memory", "8Gi")}, one, resources("pods", "1000"), ""},
		"a resource that is not granted":                   {offloadingv1beta1.QuotaSpec{Resources: grant}, gpu, nil, "QuotaExceeded: the provider granted no nvidia.com/gpu"},
		"cordoned":                                         {offloadingv1beta1.QuotaSpec{Resources: grant, Cordoned: ptr.To(true)}, one, nil, "Cordoned: "},
		"None: missing requests count as zero":             {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "None"}, bare, nil, ""},
		"Soft: missing requests are refused":               {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "Soft"}, bare, nil, `QuotaExceeded: container "a" has no cpu request`},
		"Soft: limits are not needed":                      {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "Soft"}, one, nil, ""},
		"Soft: init containers are not exempt":             {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "Soft"}, init, nil, `QuotaExceeded: container "i" has no cpu request`},
		"Soft: requests of the pod are enough":             {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "Soft"}, together, nil, ""},
		"Hard: limits equal requests":                      {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "Hard"}, full, nil, ""},
		"Hard: missing limits are refused":                 {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "Hard"}, one, nil, `QuotaExceeded: container "a" must have a cpu limit equal to its request 1`},
		"V9: Hard: requests of the pod need limits":        {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "Hard"}, together, nil, "QuotaExceeded: the pod must have a cpu limit equal to its request 1"},
		"Hard: requests of the pod with limits are enough": {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "Hard"}, bounded, nil, ""},
		"V9: Hard: a larger limit of the pod is refused":   {offloadingv1beta1.QuotaSpec{Resources: grant, LimitsEnforcement: "Hard"}, loose, nil, "QuotaExceeded: the pod must have a memory limit equal to its request 1Gi"},
		"Hard: no ephemeral storage is asked for":          {offloadingv1beta1.QuotaSpec{Resources: disk, LimitsEnforcement: "Hard"}, full, nil, `QuotaExceeded: container "a" has no ephemeral-storage request`},
		"Hard: ephemeral storage is asked for":             {offloadingv1beta1.QuotaSpec{Resources: disk, LimitsEnforcement: "Hard"}, stored("1Gi"), nil, ""},
		"Hard: its limit is larger":                        {offloadingv1beta1.QuotaSpec{Resources: disk, LimitsEnforcement: "Hard"}, stored("2Gi"), nil, `QuotaExceeded: container "a" must have a ephemeral-storage limit equal to its request 1Gi`},
		"Hard: what the pod requests has no disk":          {offloadingv1beta1.QuotaSpec{Resources: disk, LimitsEnforcement: "Hard"}, bounded, nil, `QuotaExceeded: container "a" has no ephemeral-storage request`},
		"Hard: nor has an init container":                  {offloadingv1beta1.QuotaSpec{Resources: disk, LimitsEnforcement: "Hard"}, corev1.PodSpec{InitContainers: full.Containers, Containers: stored("1Gi").Containers}, nil, `QuotaExceeded: container "a" has no ephemeral-storage request`},
		"Soft: ephemeral storage need not be":              {offloadingv1beta1.QuotaSpec{Resources: disk, LimitsEnforcement: "Soft"}, one, nil, ""},
		"negative quantities pay for nothing":              {offloadingv1beta1.QuotaSpec{Resources: grant}, negative, nil, "PodRefused: the quantity -1 of cpu is negative"},
		"an empty grant grants nothing but air":            {offloadingv1beta1.QuotaSpec{}, one, nil, "QuotaExceeded: the provider granted no cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if refusal := Check(&tc.quota, &tc.spec, tc.used); refusal != nil {
				got = refusal.Reason + ": " + refusal.Error()
			}
			if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestUserLabel(t *testing.T) {
	label := UserLabel("liqo.io:slice:Milan ☺-0123456789ab")
	if problems := validation.IsValidLabelValue(label); len(problems) > 0 || label == UserLabel("liqo.io:slice:milan-0123456789ab") {
		t.Errorf("%q: %v", label, problems)
	}
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop-rome", Name: name}
}

func TestLedger(t *testing.T) {
	quota := &offloadingv1beta1.QuotaSpec{Resources: resources("cpu", "2", "pods", "2")}
	pod := &corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "1"), nil)}}
	entry := Entry{User: "u", Amount: PodRequests(pod)}
	t0 := time.Unix(1000, 0)
	used := func(cpu, pods string) map[string]string {
		if cpu == "" {
			return map[string]string{}
		}
		return map[string]string{"cpu": cpu, "pods": pods}
	}
	l := NewLedger(30 * time.Second)
	expect := func(what string, at time.Time, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, text(l.Used("u", at))); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	admit := func(name string, at time.Time, dryRun, want bool) {
		t.Helper()
		if refusal := l.Admit(named(name), "u", quota, pod, at, dryRun); (refusal == nil) != want {
			t.Errorf("admitting %s: %v, want %v", name, refusal, want)
		}
	}
	admit("one", t0, true, true)
	expect("a dry run reserves nothing", t0, used("", ""))
	admit("one", t0, false, true)
	admit("one", t0, false, true)
	expect("a name is reserved once", t0, used("1", "1"))
	l.Observe(named("one"), entry)
	expect("the pod settles its reservation", t0, used("1", "1"))
	admit("two", t0.Add(time.Second), false, true)
	admit("three", t0.Add(2*time.Second), false, false)
	admit("three", t0.Add(2*time.Second), true, false)
	if refusal := l.Admit(named("four"), "other", quota, pod, t0, false); refusal != nil {
		t.Errorf("another user is refused: %v", refusal)
	}
	l.Forget(named("one"))
	admit("three", t0.Add(3*time.Second), false, true)
	expect("two reservations", t0.Add(3*time.Second), used("2", "2"))
	expect("the first reservation ends", t0.Add(32*time.Second), used("1", "1"))
	expect("the second reservation ends", t0.Add(34*time.Second), used("", ""))
	l.Observe(named("five"), entry)
	l.Observe(named("five"), Entry{User: "u", Amount: resources("cpu", "2")})
	expect("a pod counts as it is now", t0, map[string]string{"cpu": "2"})
	l.Forget(named("five"))
	l.Forget(named("five"))
	expect("forgetting twice frees once", t0, used("", ""))
}

// T11: what ended takes nothing of a grant, but is kept: twice as many pods as may run, in all.
func TestPodsThatEndedAreKeptUpToTwiceTheGrant(t *testing.T) {
	quota := &offloadingv1beta1.QuotaSpec{Resources: resources("pods", "2")}
	l, now := NewLedger(time.Minute), time.Unix(0, 0)
	for i, want := range []string{"", "", "", "", offloadingv1beta1.ReasonTooManyEndedPods} {
		name, got := named(fmt.Sprint(i)), ""
		if refusal := l.Admit(name, "u", quota, &corev1.PodSpec{}, now, false); refusal != nil {
			got = refusal.Reason
		}
		if got != want {
			t.Fatalf("pod %d: %q, want %q", i, got, want)
		}
		if got == "" {
			l.Observe(name, Entry{User: "u", Amount: PodRequests(&corev1.PodSpec{})})
			l.Observe(name, Entry{User: "u"})
		}
	}
	if refusal := l.Admit(named("x"), "other", quota, &corev1.PodSpec{}, now, false); refusal != nil {
		t.Errorf("another user: %v", refusal)
	}
	if diff := cmp.Diff(map[string]string{}, text(l.Used("u", now))); diff != "" {
		t.Errorf("what ended takes of the grant: %s", diff)
	}
	l.Forget(named("1"))
	l.Observe(named("2"), Entry{User: "u"})
	if refusal := l.Admit(named("x"), "u", quota, &corev1.PodSpec{}, now, false); refusal != nil {
		t.Errorf("one that ended is gone, and yet: %v", refusal)
	}
	huge := &offloadingv1beta1.QuotaSpec{Resources: resources("pods", "9223372036854775807")}
	if refusal := l.Admit(named("y"), "u", huge, &corev1.PodSpec{}, now, false); refusal != nil {
		t.Errorf("a grant without bounds: %v", refusal)
	}
	if refusal := l.Admit(named("z"), "u", &offloadingv1beta1.QuotaSpec{Resources: resources("cpu", "1")}, &corev1.PodSpec{}, now, false); refusal != nil {
		t.Errorf("a grant that counts no pods: %v", refusal)
	}
}

// A name that another user reserved is not counted twice.
func TestLedgerNameOfAnotherUser(t *testing.T) {
	quota := &offloadingv1beta1.QuotaSpec{Resources: resources("pods", "5")}
	l := NewLedger(time.Minute)
	for _, user := range []string{"a", "b"} {
		if refusal := l.Admit(named("x"), user, quota, &corev1.PodSpec{}, time.Unix(0, 0), false); refusal != nil {
			t.Fatal(refusal)
		}
	}
	if diff := cmp.Diff([]map[string]string{{}, {"pods": "1"}}, []map[string]string{text(l.Used("a", time.Unix(0, 0))), text(l.Used("b", time.Unix(0, 0)))}); diff != "" {
		t.Error(diff)
	}
}

// V9: whatever happens in whatever order, what lives and what was admitted never exceeds the grant, and the sum is the sum.
func TestLedgerNeverExceedsTheGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quota := &offloadingv1beta1.QuotaSpec{Resources: resources("cpu", "10", "pods", "6")}
		l, now := NewLedger(10*time.Second), time.Unix(0, 0)
		live := map[types.NamespacedName]corev1.ResourceList{}
		type pending struct {
			amount corev1.ResourceList
			until  time.Time
		}
		admitted := map[types.NamespacedName]pending{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			pod := named(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "pod"))
			spec := &corev1.PodSpec{Containers: []corev1.Container{container("c", resources("cpu", fmt.Sprintf("%d", rapid.IntRange(0, 5).Draw(t, "cpu"))), nil)}}
			switch rapid.SampledFrom([]string{"admit", "admit", "appear", "vanish", "wait"}).Draw(t, "step") {
			case "admit":
				if _, exists := live[pod]; exists {
					continue // the API server refuses a name that exists
				}
				if l.Admit(pod, "u", quota, spec, now, false) == nil {
					admitted[pod] = pending{PodRequests(spec), now.Add(10 * time.Second)}
				}
			case "appear":
				if p, ok := admitted[pod]; ok && !now.After(p.until) {
					live[pod] = p.amount
					l.Observe(pod, Entry{User: "u", Amount: p.amount})
					delete(admitted, pod)
				}
			case "vanish":
				delete(live, pod)
				l.Forget(pod)
			case "wait":
				now = now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds")) * time.Second)
			}
			sum := corev1.ResourceList{}
			for _, amount := range live {
				add(sum, amount)
			}
			for _, p := range admitted {
				if !now.After(p.until) {
					add(sum, p.amount)
				}
			}
			got := l.Used("u", now)
			for _, name := range []corev1.ResourceName{"cpu", "pods"} {
				have, want, limit := got[name], sum[name], quota.Resources[name]
				if have.Cmp(want) != 0 || have.Cmp(limit) > 0 {
					t.Fatalf("%s: ledger %s, sum %s, grant %s", name, have.String(), want.String(), limit.String())
				}
			}
		}
	})
}

// V9: concurrent creators.
func TestLedgerConcurrently(t *testing.T) {
	quota := &offloadingv1beta1.QuotaSpec{Resources: resources("pods", "50")}
	l := NewLedger(time.Hour)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 50 {
				_ = l.Admit(named(fmt.Sprintf("%d-%d", worker, i)), "u", quota, &corev1.PodSpec{}, time.Unix(0, 0), false)
			}
		})
	}
	group.Wait()
	if diff := cmp.Diff(map[string]string{"pods": "50"}, text(l.Used("u", time.Unix(0, 0)))); diff != "" {
		t.Error(diff)
	}
}
