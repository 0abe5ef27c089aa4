package pod

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A provider that keeps changing its mind has home write once a second for each pod at most, and for all pods of a node together what the bucket holds.
// The first change of a quiet pod goes at once.
func TestAProviderThatKeepsChangingItsMindDoesNotMakeHomeWrite(t *testing.T) {
	begin := time.Unix(1e9, 0)
	for name, tc := range map[string]struct {
		pods  int
		every time.Duration
		lasts time.Duration
		most  int
	}{
		"one pod, all the time":                   {1, time.Millisecond, 20 * time.Second, 20},
		"ten pods, all the time":                  {10, 10 * time.Millisecond, 20 * time.Second, 200},
		"many pods, all the time":                 {2000, 50 * time.Millisecond, 20 * time.Second, 2000 + restlessBurst + 20*restlessWrites},
		"one pod, just as often as it may":        {1, time.Second, 20 * time.Second, 20},
		"many pods, each as often as is not much": {2000, restless, 10 * restless, 10 * 2000},
	} {
		t.Run(name, func(t *testing.T) {
			p, writes, last := newMemory(nil, nil), 0, map[types.UID]time.Time{}
			for at := time.Duration(0); at < tc.lasts; at += tc.every {
				for i := range tc.pods {
					uid, now := types.UID(fmt.Sprint(i)), begin.Add(at)
					left := p.pace(uid, now, false)
					if left > statusPace || left < 0 {
						t.Fatalf("after %s pod %d waits %s", at, i, left)
					}
					if left > 0 {
						continue
					}
					if before, ok := last[uid]; ok && now.Sub(before) < statusPace {
						t.Fatalf("pod %d is written %s after the last time", i, now.Sub(before))
					}
					writes++
					last[uid] = now
				}
			}
			if writes > tc.most || len(last) != tc.pods {
				t.Errorf("%d pods are written %d times, at most %d were expected", len(last), writes, tc.most)
			}
		})
	}
	p := newMemory(nil, nil)
	for i := range 5000 {
		if left := p.pace(types.UID(fmt.Sprint(i)), begin, false); left > 0 {
			t.Fatalf("the first change of pod %d waits %s", i, left)
		}
	}
	// What is urgent takes of the bucket all the same.
	for i := range 5000 {
		if left := p.pace(types.UID(fmt.Sprint(i)), begin, true); (left > 0) != (i >= restlessBurst) {
			t.Fatalf("the urgent change of pod %d waits %s", i, left)
		}
	}
}

// What waits is not forgotten: the last state arrives, with few writes.
func TestTheLastStateArrives(t *testing.T) {
	w := up(t)
	w.calm()
	before, begin := w.count(), time.Now()
	for n := range 40 {
		w.updateRemote(func(p *corev1.Pod) {
			p.ResourceVersion = fmt.Sprint(1000 + n)
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[n%2], Reason: fmt.Sprint("N", n)}}
		})
	}
	w.eventually("the last state to arrive", func() bool {
		return slices.ContainsFunc(w.pod("p").Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Reason == "N39" })
	})
	if writes, most := w.count()-before, 2+int(time.Since(begin)/statusPace); writes > most {
		t.Errorf("home wrote %d times of 40 changes, at most %d were expected", writes, most)
	}
}

// How a pod ends, and that it is ready for the first time, is told at once, however little ago something else was.
func TestWhatDoesNotWait(t *testing.T) {
	now := time.Unix(1e9, 0)
	ready := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	for name, tc := range map[string]struct {
		wanted  corev1.PodStatus
		awaited bool
		waits   bool
	}{
		"another state":         {corev1.PodStatus{Phase: corev1.PodRunning, Message: "b"}, true, true},
		"success":               {corev1.PodStatus{Phase: corev1.PodSucceeded}, false, false},
		"failure":               {corev1.PodStatus{Phase: corev1.PodFailed}, false, false},
		"ready, the first time": {ready, true, false},
		"ready once more":       {ready, false, true},
		"nothing new":           {corev1.PodStatus{Phase: corev1.PodRunning, Message: "a"}, false, false},
	} {
		m, local := newMemory(nil, nil), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "2"}}
		local.Status = corev1.PodStatus{Phase: corev1.PodRunning, Message: "a"}
		m.pods["u"] = &state{written: now.Add(-time.Millisecond), awaited: tc.awaited}
		if left := m.tooSoon(local, &tc.wanted, now); (left > 0) != tc.waits {
			t.Errorf("%s: waits %s", name, left)
		}
	}
}
