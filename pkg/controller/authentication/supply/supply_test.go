package supply

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

var (
	sliceOfRome = types.NamespacedName{Namespace: "liqo-tenant-rome", Name: "a"}
	rome        = Of("rome", "liqo.io:slice:a-rome")
)

func node(name, cpu string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("1100")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

func pod(name, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: "n",
		Containers: []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "SECRET", Value: "s"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
}

// ofRome makes a pod that of the slice of rome.
func ofRome(pod *corev1.Pod) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ShadowPod", Controller: ptr.To(true)}}
	pod.Labels = map[string]string{offloadingv1beta1.OriginLabel: "rome", "app": "a"}
	pod.Annotations = map[string]string{offloadingv1beta1.CreatorUserAnnotation: rome.Slice}
	return pod
}

// asks has the slice of rome ask, and returns the cores that it is offered.
func (s *Supply) asks(t *testing.T, wish capacity.Wish) string {
	t.Helper()
	offer, err := s.Offer(sliceOfRome, rome, wish, nil)
	if err != nil {
		t.Fatal(err)
	}
	return offer.Resources.Cpu().String()
}

// The three numbers of what a virtual node is: 90 of 100 that are free, 45 once the provider takes 50, 180 once 200 are free. Each change is
// told within ten seconds, by one message, and nothing is told while nothing changes.
func TestOffersAreToldOnceAndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		s.Node(node("n", "100"))
		if s.Known() || s.Settle() != nil {
			t.Error("what was not counted is offered")
		}
		s.Counted()
		if got := s.asks(t, capacity.Wish{}); got != "90" {
			t.Fatalf("%s cores are offered of 100", got)
		}
		go s.follow(t.Context())
		// told is after how long a message comes within that time; 0 if none does.
		told := func(within time.Duration) time.Duration {
			since := time.Now()
			select {
			case <-s.changed:
				return time.Since(since)
			case <-time.After(within):
				return 0
			}
		}
		if told(time.Minute) != 0 {
			t.Error("told although nothing changed")
		}
		for _, step := range []struct {
			sentence string
			change   func()
			want     string
			told     bool
		}{
			{"pods of the provider's own take 50", func() { s.Pod(pod("own", "50")) }, "45", true},
			{"pods of the consumer's own take nothing away, but leave less for one", func() { s.Pod(ofRome(pod("theirs", "20"))) }, "45", true},
			{"a crumb is not told", func() { s.Pod(pod("crumb", "250m")) }, "45", false},
			{"nodes come", func() { s.ForgetPod(types.NamespacedName{Namespace: "shop", Name: "crumb"}); s.Node(node("m", "150")) }, "180", true},
			{"a node goes at once", func() { s.ForgetNode("m") }, "45", true},
			{"the consumer's pods end", func() { s.ForgetPod(types.NamespacedName{Namespace: "shop", Name: "theirs"}) }, "45", true},
		} {
			step.change()
			if after := told(Period + time.Millisecond); (after != 0) != step.told {
				t.Errorf("%s: told after %s, want told %v", step.sentence, after, step.told)
			}
			if got := s.asks(t, capacity.Wish{}); got != step.want {
				t.Errorf("%s: %s cores are offered, want %s", step.sentence, got, step.want)
			}
			if step.sentence != "nodes come" && told(time.Minute) != 0 {
				t.Errorf("%s: it is told again", step.sentence)
			}
		}
	})
}

// Nobody counts before somebody asks, who waits for a moment.
func TestNothingIsCountedBeforeSomebodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, since := New(Options{}), time.Now()
		begun := func() bool {
			select {
			case <-s.asked:
				return true
			default:
				return false
			}
		}
		if s.Known(); begun() {
			t.Error("who only looks whether it is counted has it counted")
		}
		if s.Count(t.Context()) || !begun() || time.Since(since) != patience {
			t.Errorf("after %s it is counted, or nobody begins to", time.Since(since))
		}
		if since = time.Now(); s.Count(t.Context()) || time.Since(since) != 0 {
			t.Error("who asks after that waits, too")
		}
		quick := New(Options{})
		time.AfterFunc(patience/2, quick.Counted)
		if since = time.Now(); !quick.Count(t.Context()) || time.Since(since) != patience/2 {
			t.Errorf("what is counted after %s is told after %s", patience/2, time.Since(since))
		}
		s.Counted()
		if since = time.Now(); !s.Count(t.Context()) || time.Since(since) != 0 {
			t.Error("what was counted is waited for, or not known any more")
		}
	})
}

func TestAnOfferStaysUntilItIsTold(t *testing.T) {
	s := New(Options{})
	s.Node(node("n", "100"))
	s.Counted()
	held := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("89500m"), corev1.ResourcePods: resource.MustParse("990")}
	offer, err := s.Offer(sliceOfRome, rome, capacity.Wish{}, held)
	if err != nil || offer.Resources.Cpu().String() != "89500m" {
		t.Errorf("after a restart %s cores are offered, error %v: what was granted before differs too little", offer.Resources.Cpu(), err)
	}
	s.Pod(pod("own", "50"))
	if got := s.asks(t, capacity.Wish{}); got != "89500m" {
		t.Errorf("%s cores are offered to who was not told", got)
	}
	if changed := s.Settle(); len(changed) != 1 || changed[0] != sliceOfRome || s.asks(t, capacity.Wish{}) != "45" {
		t.Errorf("told are %v, offered %s", changed, s.asks(t, capacity.Wish{}))
	}
	if changed := s.Settle(); changed != nil {
		t.Errorf("told again are %v", changed)
	}
	if got := s.asks(t, capacity.Wish{Percentages: capacity.Percentages{Tenant: ptr.To[int32](10)}}); got != "5" {
		t.Errorf("who asks anew is offered %s", got)
	}
	s.Withdraw(sliceOfRome)
	s.Withdraw(sliceOfRome)
	if changed := s.Settle(); changed != nil {
		t.Errorf("who asks for nothing is told %v", changed)
	}
}

// What cannot be is said once, and does not count.
func TestWhatCannotBeIsSaid(t *testing.T) {
	s := New(Options{})
	s.Node(node("n", "100"))
	s.Counted()
	s.asks(t, capacity.Wish{})
	s.Node(node("n", "-1"))
	s.Pod(pod("x", "-5"))
	refused := maps.Clone(s.refused)
	if len(refused) != 2 || !strings.Contains(refused["node/n"], "negative") || !strings.Contains(refused["pod/shop/x"], "negative") || s.Settle() != nil {
		t.Errorf("not believed are %v", refused)
	}
	if _, err := s.Offer(sliceOfRome, rome, capacity.Wish{Percentages: capacity.Percentages{Tenant: ptr.To[int32](101)}}, nil); err == nil {
		t.Error("101 % are offered")
	}
	if got := s.asks(t, capacity.Wish{}); got != "90" {
		t.Errorf("afterwards %s cores are offered", got)
	}
	s.Node(node("n", "10"))
	s.ForgetPod(types.NamespacedName{Namespace: "shop", Name: "x"})
	if refused := maps.Clone(s.refused); len(refused) != 0 || len(s.Settle()) != 1 {
		t.Errorf("not believed are still %v", refused)
	}
}

func TestWhoseAPodIs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   capacity.Owner
	}{
		"one that stands for a ShadowPod":  {func(*corev1.Pod) {}, rome},
		"one of the provider's":            {func(p *corev1.Pod) { *p = *pod("x", "1") }, capacity.Owner{}},
		"one that only says so":            {func(p *corev1.Pod) { p.OwnerReferences = nil }, capacity.Owner{}},
		"one that another controller made": {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" }, capacity.Owner{}},
		"one without a cluster":            {func(p *corev1.Pod) { delete(p.Labels, offloadingv1beta1.OriginLabel) }, capacity.Owner{}},
		"one without a user":               {func(p *corev1.Pod) { p.Annotations = nil }, capacity.Owner{}},
	} {
		p := ofRome(pod("x", "1"))
		tc.change(p)
		if got := ownerOf(p); got != tc.want {
			t.Errorf("%s is of %+v, want %+v", name, got, tc.want)
		}
		if got := ownerOf(slim(p)); got != tc.want {
			t.Errorf("%s, made slim, is of %+v, want %+v", name, got, tc.want)
		}
	}
}

// What is told of a pod that was made slim is what is told of the whole one, and little of it is kept.
func TestASlimPodTakesAsMuch(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	amount := func(cpu string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	whole := ofRome(pod("x", "1"))
	whole.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = strings.Repeat("x", 1000)
	whole.Spec.InitContainers = []corev1.Container{{Name: "side", Resources: *amount("3"), RestartPolicy: &always}, {Name: "init", Resources: *amount("9")}}
	whole.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	whole.Spec.Resources = amount("2")
	whole.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Resources: amount("4"), AllocatedResources: amount("4").Requests}}
	whole.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}, {Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
	for _, change := range []func(*corev1.Pod){
		func(*corev1.Pod) {},
		func(p *corev1.Pod) { p.Spec.Resources = nil },
		func(p *corev1.Pod) { p.Spec.InitContainers, p.Status.Conditions = nil, nil },
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		func(p *corev1.Pod) { p.Spec.NodeName = "" },
	} {
		full := whole.DeepCopy()
		change(full)
		took := func(p *corev1.Pod) string {
			pool := capacity.NewPool(nil)
			if err := pool.Node(node("n", "100")); err != nil {
				t.Fatal(err)
			}
			if err := pool.Pod(p, capacity.Owner{}); err != nil {
				t.Fatal(err)
			}
			return capacity.Text(pool.Free("rome"))
		}
		if a, b := took(full), took(slim(full)); a != b {
			t.Errorf("with the whole pod %s are left, with the slim one %s", a, b)
		}
	}
	text, err := json.Marshal(slim(whole))
	if err != nil || strings.Contains(string(text), "SECRET") || strings.Contains(string(text), "xxx") {
		t.Errorf("kept are %s, error %v", text, err)
	}
}

// A list tells of what is there, and of what went unseen.
func TestAListReplacesWhatWasKnown(t *testing.T) {
	s := New(Options{})
	s.Node(node("n", "100"))
	var objects []any
	for i := range 5 {
		objects = append(objects, pod(fmt.Sprint(i), "10"))
	}
	store := (*pods)(s)
	var offered []string
	for _, list := range [][]any{objects, objects[3:], nil} {
		if err := store.Replace(list, ""); err != nil {
			t.Fatal(err)
		}
		s.Settle()
		offered = append(offered, s.asks(t, capacity.Wish{}))
	}
	if err := store.Add(objects[0]); err != nil {
		t.Fatal(err)
	}
	s.Settle()
	offered = append(offered, s.asks(t, capacity.Wish{}))
	if err := store.Delete(objects[0]); err != nil {
		t.Fatal(err)
	}
	s.Settle()
	offered = append(offered, s.asks(t, capacity.Wish{}))
	if diff := cmp.Diff([]string{"45", "72", "90", "81", "90"}, offered); diff != "" || !s.Known() {
		t.Error(diff)
	}
}

// A pod is told of by the watch that its label is for, and by both while the label changes, in any order: it counts once, until it is gone from both.
func TestAPodThatChangesItsLabelCountsOnce(t *testing.T) {
	remote := func(s *Supply) { s.cachedPod(pod("own", "50")) }
	other := func(s *Supply) { s.Pod(pod("own", "50")) }
	noRemote := func(s *Supply) { s.forgetCachedPod(pod("own", "50")) }
	noOther := func(s *Supply) { s.ForgetPod(nameOf(pod("own", "50"))) }
	listed := func(s *Supply) {
		if err := (*pods)(s).Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		told []func(*Supply)
		want string
	}{
		"of a consumer":                   {[]func(*Supply){remote}, "45"},
		"that is gone":                    {[]func(*Supply){remote, noRemote}, "90"},
		"that others do not have":         {[]func(*Supply){remote, listed}, "45"},
		"of others":                       {[]func(*Supply){other}, "45"},
		"of others that is gone":          {[]func(*Supply){other, noOther}, "90"},
		"of others that is not listed":    {[]func(*Supply){other, listed}, "90"},
		"that loses the label":            {[]func(*Supply){remote, noRemote, other}, "45"},
		"that loses it, told late":        {[]func(*Supply){remote, other, noRemote}, "45"},
		"that lost it and is gone":        {[]func(*Supply){remote, other, noRemote, noOther}, "90"},
		"that gets the label":             {[]func(*Supply){other, noOther, remote}, "45"},
		"that gets it, told late":         {[]func(*Supply){other, remote, noOther}, "45"},
		"that got it, others listed anew": {[]func(*Supply){other, remote, listed}, "45"},
		"that got it and is gone":         {[]func(*Supply){other, remote, noOther, noRemote}, "90"},
		"that loses it while one lags":    {[]func(*Supply){remote, other, remote, noRemote}, "45"},
		"that gets it while one lags":     {[]func(*Supply){other, remote, other, noOther}, "45"},
		"that loses it and gets it again": {[]func(*Supply){remote, other, noRemote, remote, noOther}, "45"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{})
			s.Node(node("n", "100"))
			s.Counted()
			for _, tell := range tc.told {
				tell(s)
			}
			s.Settle()
			if got := s.asks(t, capacity.Wish{}); got != tc.want {
				t.Errorf("offered are %s, want %s", got, tc.want)
			}
		})
	}
}

// What is returned is the caller's: what it makes of it is not what other slices, or the next answer, are measured by.
func TestAnOfferIsTheCallers(t *testing.T) {
	s := New(Options{})
	s.Node(node("n", "100"))
	s.Counted()
	s.Pod(ofRome(pod("theirs", "1")))
	for range 3 {
		offer, err := s.Offer(sliceOfRome, rome, capacity.Wish{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := offer.Resources.Cpu().String(); got != "90" || len(offer.Over) > 0 || offer.Nodes.LargestPod.Cpu().String() != "99" {
			t.Errorf("offered are %s, over by %v, on %+v", got, offer.Over, offer.Nodes)
		}
		for _, list := range []corev1.ResourceList{offer.Resources, offer.Over, offer.Running, offer.Nodes.LargestPod} {
			list[corev1.ResourceCPU] = resource.MustParse("1")
		}
	}
}
