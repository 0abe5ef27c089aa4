package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testingclock "k8s.io/utils/clock/testing"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

func TestProgressOffATerminal(t *testing.T) {
	var out bytes.Buffer
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	observer := NewObserver(&out, Style{Unicode: true}, clock)
	task := observer.Begin("rome", "Waiting for the pods")
	pass(5 * time.Second)
	task.Waiting("pod a")
	pass(10 * time.Second)
	task.Waiting("pod b")
	pass(14 * time.Second)
	task.Waiting("pod c")
	pass(time.Second)
	task.Waiting("pod d")
	task.Done("All pods are ready")
	observer.Note(progress.Info, "", "all is well")
	observer.Note(progress.Warning, "milan", "not quite")
	observer.Begin("milan", "Peering").Warn("No node")
	observer.Begin("", "Checking").Fail(errors.New("told elsewhere"))
	observer.Begin("", "Silent").Done("")
	want := `...  rome: Waiting for the pods
...  rome: Waiting for the pods (15s): waiting: pod b
...  rome: Waiting for the pods (30s): waiting: pod d
OK   rome: All pods are ready (30s)
INFO all is well
WARN milan: not quite
...  milan: Peering
WARN milan: No node (0s)
...  Checking
ERRO Checking (0s)
...  Silent
OK   Silent (0s)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestDetect(t *testing.T) {
	streams := genericiooptions.IOStreams{ErrOut: &bytes.Buffer{}}
	cases := map[string]struct {
		mode        ColorMode
		environment map[string]string
		want        Style
	}{
		"off a terminal there are no colours": {ColorAuto, map[string]string{"LANG": "en_GB.UTF-8"}, Style{Unicode: true}},
		"colours can be asked for":            {ColorAlways, map[string]string{"LANG": "C"}, Style{Color: true}},
		"NO_COLOR wins":                       {ColorAlways, map[string]string{"NO_COLOR": "1"}, Style{}},
		"LC_ALL wins over LANG":               {ColorNever, map[string]string{"LC_ALL": "C", "LANG": "C.utf8"}, Style{}},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := Detect(streams, test.mode, func(name string) string { return test.environment[name] })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsAreToldWithTheWayOut(t *testing.T) {
	var out bytes.Buffer
	err := errors.Join(failure.Unmet("run 'liqoctl install'", "Liqo is not installed"), errors.New("and the rest"))
	Error(&out, Style{}, "kubectl liqo", err)
	want := "ERRO Liqo is not installed\n     Next: run 'kubectl liqo install'\nERRO and the rest\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestColoursCarryNoMeaningAlone(t *testing.T) {
	coloured := Style{Color: true}
	for kind, word := range asciiSigns {
		if plain := (Style{}).sign(kind); plain != word {
			t.Errorf("sign %d is %q", kind, plain)
		}
		if !bytes.Contains([]byte(coloured.sign(kind)), []byte(word)) {
			t.Errorf("sign %d loses its word in colour", kind)
		}
	}
}

func TestPage(t *testing.T) {
	var out bytes.Buffer
	page := NewPage(&out, Style{})
	page.Section("One")
	page.Field("Name", "rome")
	page.Line("All is well")
	page.Section("Two")
	page.Table([]string{"A", "LONG HEADER", "C"}, [][]string{{"first", "x", "y"}, {"ü", "", "last"}})
	want := `One
  Name:              rome
  All is well

Two
  A       LONG HEADER   C
  first   x             y
  ü                     last
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestFormats(t *testing.T) {
	value := map[string]any{"b": []int{1}, "a": "x"}
	for format, want := range map[Format]string{JSON: "{\n  \"a\": \"x\",\n  \"b\": [\n    1\n  ]\n}\n", YAML: "a: x\nb:\n- 1\n"} {
		var out bytes.Buffer
		if err := Write(&out, format, value); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", format, out.String(), err)
		}
	}
}

// A spinner's line that wraps cannot be rewritten: each step of it would stay on the screen.
func TestSpinnersFitTheTerminal(t *testing.T) {
	observer := NewObserver(&bytes.Buffer{}, Style{Terminal: true, Unicode: true}, testingclock.NewFakePassiveClock(time.Unix(0, 0)))
	const text = "Creating virtual node milan: VirtualKubeletStarting: the virtual kubelet\ndoes not run yet: pod milan-7f: ContainerCreating"
	cases := map[string]struct {
		width         int
		cluster, text string
		want          string
	}{
		"a wide terminal":                          {200, "rome", text, "rome: Creating virtual node milan: VirtualKubeletStarting: the virtual kubelet does not run yet: pod milan-7f: ContainerCreating"},
		"an ordinary one":                          {80, "rome", text, "rome: Creating virtual node milan: VirtualKubeletStarting: the ..."},
		"40 columns":                               {40, "rome", text, "rome: Creating virtual ..."},
		"40 columns, and a long cluster's ID":      {40, "a-cluster-with-a-long-name", text, "Creating virtual node m..."},
		"40 columns, and signs that are not ASCII": {40, "", "für die Prüfung des Zustands der Knoten", "für die Prüfung des Zus..."},
		"hardly any":                               {10, "rome", text, "..."},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := observer.fit(test.width, test.cluster, test.text)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if columns := len([]rune(got)) + aroundSpinner; columns > max(test.width, aroundSpinner+len(ellipsis)) {
				t.Errorf("%d columns on a terminal of %d", columns, test.width)
			}
		})
	}
}

// Programs iterate over lists without asking whether there is one.
func TestNoListIsNull(t *testing.T) {
	type part struct {
		Names []string          `json:"names"`
		Left  map[string]string `json:"left,omitempty"`
	}
	type report struct {
		Parts    []part              `json:"parts"`
		Residue  map[string][]string `json:"residue"`
		One      *part               `json:"one"`
		None     *part               `json:"none"`
		Key      []byte              `json:"key"`
		Anything any                 `json:"anything"`
		When     metav1.Time         `json:"when"`
		Amount   resource.Quantity   `json:"amount"`
		hidden   []string
	}
	for sentence, test := range map[string]struct {
		value any
		want  string
	}{
		"no list at all": {[]part(nil), `[]`},
		"nothing":        {nil, `null`},
		"lists within": {&report{Residue: map[string][]string{"milan": nil}, One: &part{}, Amount: resource.MustParse("1Gi"), hidden: []string{"a"}},
			`{"parts":[],"residue":{"milan":[]},"one":{"names":[]},"none":null,"key":null,"anything":null,"when":null,"amount":"1Gi"}`},
		"what is there":     {[]part{{Names: []string{"a"}}, {}}, `[{"names":["a"]},{"names":[]}]`},
		"values of a chart": {map[string]any{"a": nil, "b": map[string]any{}}, `{"a":null,"b":{}}`},
	} {
		t.Run(sentence, func(t *testing.T) {
			var written, compact bytes.Buffer
			if err := Write(&written, JSON, test.value); err != nil {
				t.Fatal(err)
			}
			if err := json.Compact(&compact, written.Bytes()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, compact.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
