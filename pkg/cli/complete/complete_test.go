package complete

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/pkg/cli/target"
)

func TestFilter(t *testing.T) {
	got := filter([]string{"shop", "shelf", "bank"}, []string{"shelf"}, "sh")
	if diff := cmp.Diff([]string{"shop"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDistinguishing(t *testing.T) {
	item := func(labels map[string]string) metav1.ObjectMeta { return metav1.ObjectMeta{Labels: labels} }
	cases := map[string]struct {
		items []metav1.ObjectMeta
		want  []string
	}{
		"nothing":                     {nil, []string{}},
		"what all have is left out":   {[]metav1.ObjectMeta{item(map[string]string{"a": "1", "b": "1"}), item(map[string]string{"a": "1", "b": "2"})}, []string{"b=1", "b=2"}},
		"of a single one, all it has": {[]metav1.ObjectMeta{item(map[string]string{"a": "1"})}, []string{"a=1"}},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, distinguishing(test.items)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func kubeconfig(t *testing.T) *target.Flags {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a"}}],"clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := target.NewFlags(false)
	*flags.Config.KubeConfig = file
	return flags
}

func TestAnswersAreCached(t *testing.T) {
	flags, asked := kubeconfig(t), 0
	source := Source{Question: "names", Ask: func(context.Context, *target.Cluster) ([]string, error) {
		asked++
		return []string{"x"}, nil
	}}
	for range 3 {
		if diff := cmp.Diff([]string{"x"}, live(context.Background(), flags, source)); diff != "" {
			t.Error(diff)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestFailuresAreSilentAndNotCached(t *testing.T) {
	flags, asked := kubeconfig(t), 0
	source := Source{Question: "names", Ask: func(context.Context, *target.Cluster) ([]string, error) {
		asked++
		return []string{"x"}, errors.New("no")
	}}
	for range 2 {
		if got := live(context.Background(), flags, source); got != nil {
			t.Errorf("proposed %v", got)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

func TestSlowClustersAreGivenUp(t *testing.T) {
	flags, begun := kubeconfig(t), time.Now()
	source := Source{Question: "names", Ask: func(ctx context.Context, _ *target.Cluster) ([]string, error) {
		<-t.Context().Done()
		return nil, nil
	}}
	if got := live(context.Background(), flags, source); got != nil || time.Since(begun) > 5*budget {
		t.Errorf("proposed %v after %s", got, time.Since(begun))
	}
}

func TestOldAnswersAreAskedAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "folder", "answer.json")
	store(file, []string{"x"})
	if words, ok := cached(file, time.Now()); !ok || words[0] != "x" {
		t.Error("a fresh answer was not used")
	}
	if _, ok := cached(file, time.Now().Add(fresh+time.Second)); ok {
		t.Error("an old answer was used")
	}
}
