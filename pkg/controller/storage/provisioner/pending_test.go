package provisioner

import (
	"context"
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// said returns the Events since the last time.
func (w *world) said() string {
	var list []string
	for {
		select {
		case event := <-w.claims.Events.(*events.FakeRecorder).Events:
			list = append(list, event)
		default:
			return strings.Join(list, "\n")
		}
	}
}

func (w *world) update(object client.Object) {
	w.Helper()
	if err := w.Update(context.Background(), object); err != nil {
		w.Fatal(err)
	}
}

// nodes are those of the claim and of the one behind it.
func (w *world) nodes() string {
	w.Helper()
	c, b := claim(""), behind()
	w.there(c)
	w.there(b)
	return c.Annotations[reflection.SelectedNodeAnnotation] + "/" + b.Annotations[reflection.SelectedNodeAnnotation]
}

func TestPendingVolumeIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		want string
	}{
		"just made": {time.Second, ""},
		"waiting":   {time.Minute, "VolumePending waiting for a volume on node worker, of no class"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, claim("worker"))
			w.reconcile()
			b := behind()
			w.there(b)
			b.CreationTimestamp = metav1.NewTime(w.claims.Clock.Now().Add(-tc.age))
			w.update(b)
			w.said()
			w.reconcile()
			if got := w.said(); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("said %q", got)
			}
		})
	}
}

// A provisioner that cannot make a volume on a node takes the node away; then the scheduler chooses again for the user's claim.
func TestFullNode(t *testing.T) {
	w := newWorld(t, claim("worker"), node("other", ""))
	w.reconcile()
	if got := w.nodes(); got != "worker/worker" {
		t.Fatalf("to begin with: %s", got)
	}
	b := behind()
	w.there(b)
	delete(b.Annotations, reflection.SelectedNodeAnnotation)
	w.update(b)
	w.said()
	w.reconcile()
	if got := w.nodes(); got != "/" {
		t.Fatalf("after the refusal: %s", got)
	}
	if got := w.said(); !strings.Contains(got, "could not be made on node worker") {
		t.Errorf("said %q", got)
	}
	for _, next := range []string{"worker", "other"} { // first the same one again
		c := claim("")
		w.there(c)
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, reflection.SelectedNodeAnnotation, next)
		w.update(c)
		w.reconcile()
		if got := w.nodes(); got != next+"/"+next {
			t.Errorf("after the scheduler chose %s: %s", next, got)
		}
	}
	w.bind()
	b = behind()
	w.there(b)
	delete(b.Annotations, reflection.SelectedNodeAnnotation)
	w.update(b)
	w.reconcile()
	if got := w.nodes(); got != "other/" {
		t.Errorf("a claim that has its volume was taken off its node: %s", got)
	}
}

// A class of this provisioner is never behind another one.
func TestClassBehindItself(t *testing.T) {
	standard := func(name, provisioner string, age time.Duration) client.Object {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(50000, 0).Add(-age)),
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: provisioner}
	}
	ours := offloadingv1beta1.StorageProvisioner
	for name, tc := range map[string]struct {
		real    string
		classes []client.Object
		refused bool
	}{
		"no class":                         {"", nil, false},
		"itself":                           {"liqo", nil, true},
		"another one of ours":              {"ours", []client.Object{standard("ours", ours, 0)}, true},
		"another one":                      {"real", []client.Object{standard("real", "x", 0), standard("ours", ours, 0)}, false},
		"the default one is ours":          {"", []client.Object{standard("ours", ours, 0)}, true},
		"the newest default one is ours":   {"", []client.Object{standard("ours", ours, 0), standard("real", "x", time.Hour)}, true},
		"an older default one is ours":     {"", []client.Object{standard("ours", ours, time.Hour), standard("real", "x", 0)}, false},
		"the first default one by name":    {"", []client.Object{standard("ours", ours, 0), standard("real", "x", 0)}, true},
		"one that is not there (any more)": {"lost", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.classes, claim("worker"))...)
			w.claims.RealStorageClass = tc.real
			w.reconcile()
			if made := w.there(behind()); made == tc.refused {
				t.Errorf("a claim behind was made: %v", made)
			}
			if told := strings.Contains(w.said(), offloadingv1beta1.ReasonVolumeRefused); told != tc.refused {
				t.Errorf("told: %v", told)
			}
		})
	}
}
