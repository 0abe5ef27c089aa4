package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

func TestProgressForPrograms(t *testing.T) {
	var out bytes.Buffer
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	observer := NewLines(&out, clock)
	first := observer.Begin("rome", "Waiting for the pods")
	second := observer.Begin("milan", "Peering")
	pass(1500 * time.Millisecond)
	first.Waiting("pod a")
	first.Waiting("pod a")
	pass(reminder)
	first.Waiting("pod a")
	first.Waiting("pod \"b\"\nand more")
	second.Warn("No node")
	first.Done("All pods are ready")
	observer.Begin("", "Checking").Fail(errors.New("told elsewhere"))
	observer.Note(progress.Info, "", "all is well")
	observer.Note(progress.Warning, "milan", "not quite")
	observer.Error("kubectl liqo", errors.Join(failure.Unmet("run 'liqoctl install'", "Liqo is not installed"), errors.New("and the rest")))
	want := `{"time":"1970-01-01T00:00:00Z","type":"begin","id":1,"cluster":"rome","step":"Waiting for the pods"}
{"time":"1970-01-01T00:00:00Z","type":"begin","id":2,"cluster":"milan","step":"Peering"}
{"time":"1970-01-01T00:00:01.5Z","type":"waiting","id":1,"cluster":"rome","step":"Waiting for the pods","seconds":1.5,"message":"pod a"}
{"time":"1970-01-01T00:00:16.5Z","type":"waiting","id":1,"cluster":"rome","step":"Waiting for the pods","seconds":16.5,"message":"pod a"}
{"time":"1970-01-01T00:00:16.5Z","type":"waiting","id":1,"cluster":"rome","step":"Waiting for the pods","seconds":16.5,"message":"pod \"b\"\nand more"}
{"time":"1970-01-01T00:00:16.5Z","type":"warned","id":2,"cluster":"milan","step":"Peering","seconds":16.5,"message":"No node"}
{"time":"1970-01-01T00:00:16.5Z","type":"done","id":1,"cluster":"rome","step":"Waiting for the pods","seconds":16.5,"message":"All pods are ready"}
{"time":"1970-01-01T00:00:16.5Z","type":"begin","id":3,"step":"Checking"}
{"time":"1970-01-01T00:00:16.5Z","type":"failed","id":3,"step":"Checking"}
{"time":"1970-01-01T00:00:16.5Z","type":"info","message":"all is well"}
{"time":"1970-01-01T00:00:16.5Z","type":"warning","cluster":"milan","message":"not quite"}
{"time":"1970-01-01T00:00:16.5Z","type":"error","message":"Liqo is not installed","next":"run 'kubectl liqo install'","code":3}
{"time":"1970-01-01T00:00:16.5Z","type":"error","message":"and the rest","code":3}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// Steps run at the same time; each line is still one object.
func TestLinesAreWholeUnderConcurrency(t *testing.T) {
	var out bytes.Buffer
	observer := NewLines(&out, testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { observer.Begin(fmt.Sprint(i), "Step").Done(strings.Repeat("x", 1000)) })
	}
	group.Wait()
	ids := map[int]int{}
	for _, text := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var line Line
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		ids[line.ID]++
	}
	for id := range 20 {
		if ids[id+1] != 2 {
			t.Errorf("step %d told %d lines", id+1, ids[id+1])
		}
	}
}
