package selection

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func TestListerWatcher(t *testing.T) {
	for name, tc := range map[string]struct {
		selector Selector
		want     metav1.ListOptions
	}{
		"a name":     {Named("web"), metav1.ListOptions{FieldSelector: "metadata.name=web", ResourceVersion: "7"}},
		"a field":    {Where("spec.nodeName", "milan"), metav1.ListOptions{FieldSelector: "spec.nodeName=milan", ResourceVersion: "7"}},
		"labels":     {Labelled("app=web"), metav1.ListOptions{LabelSelector: "app=web", ResourceVersion: "7"}},
		"everything": {Selector{}, metav1.ListOptions{ResourceVersion: "7"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []metav1.ListOptions
			refused := errors.New("refused")
			lw, ok := ListerWatcher(tc.selector,
				func(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
					asked = append(asked, o)
					return nil, refused
				},
				func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
					asked = append(asked, o)
					return nil, refused
				}, nil).(cache.ListerWatcherWithContext)
			if !ok {
				t.Fatal("it takes no context")
			}
			_, err := lw.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "7", FieldSelector: "theirs=x"})
			if !errors.Is(err, refused) {
				t.Errorf("listing: %v", err)
			}
			if _, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "7", LabelSelector: "theirs=x"}); !errors.Is(err, refused) {
				t.Errorf("watching: %v", err)
			}
			if diff := cmp.Diff([]metav1.ListOptions{tc.want, tc.want}, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A client that cannot stream lists says so: else an informer would wait for what never comes.
func TestWhetherListsAreStreamed(t *testing.T) {
	kube := fake.NewClientset()
	pods := kube.CoreV1().Pods("shop")
	lw := ListerWatcher(Selector{}, pods.List, pods.Watch, kube)
	streams, says := lw.(interface{ IsWatchListSemanticsUnSupported() bool })
	if !says || !streams.IsWatchListSemanticsUnSupported() {
		t.Error("a client that cannot stream lists is asked to")
	}
}
