package unpeer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
)

// peer is what a cluster knows of a peer whose API server has a status.
func peer(id, status, message string) *corev1beta1.ForeignCluster {
	return &corev1beta1.ForeignCluster{
		ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: corev1beta1.ClusterID(id)},
		Status: corev1beta1.ForeignClusterStatus{Conditions: []corev1beta1.Condition{{Type: corev1beta1.APIServerStatus, Status: status, Message: message}}},
	}
}

// revoked took our rights back.
func revoked(id string) *corev1beta1.ForeignCluster {
	fc := peer(id, corev1beta1.StatusEstablished, "it answers")
	fc.Status.Modules.Authentication.Conditions = []corev1beta1.Condition{{Type: corev1beta1.AuthIdentityControlPlaneStatus,
		Status: corev1beta1.StatusError, Reason: corev1beta1.ReasonRightsRevoked, Message: "it took our rights back"}}
	return fc
}

// A provider that does nothing for us any more is left by --force, and that is said before anything is torn down.
func TestUnpeeringFromALostProviderIsRefusedAtOnce(t *testing.T) {
	for sentence, test := range map[string]struct {
		peer    *corev1beta1.ForeignCluster
		objects []client.Object
		want    string
	}{
		"it does not answer rome": {peer("milan", corev1beta1.StatusError, "no route to it"), consumer(),
			"nothing can be taken back from milan (cluster rome): no route to it: run the same command once that works again; if it never will: liqoctl unpeer --force milan"},
		"it took our rights back": {revoked("milan"), consumer(),
			"nothing can be taken back from milan (cluster rome): it took our rights back: run the same command once that works again; if it never will: liqoctl unpeer --force milan"},
		"nothing is left that needs it": {revoked("milan"), []client.Object{tenantNamespace("milan")}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(test.objects, test.peer)})
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: provider()})
			_, err := unpeer.Run(t.Context(), unpeer.Options{Consumer: rome.Cluster, Provider: milan.Cluster, NoWait: true, Timeout: 20 * time.Second})
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if failure.CodeOf(err) != failure.Precondition || err.Error() != test.want || len(rome.Writes())+len(milan.Writes()) > 0 {
				t.Errorf("got %v, wrote %v %v", err, rome.Writes(), milan.Writes())
			}
		})
	}
}

// A peer that answers and lets us work is not given up by the word of an administrator: the controllers take the mark back once they have
// asked it, and what protects data there holds.
func TestForceDoesNotGiveUpAPeerThatAnswers(t *testing.T) {
	answering := func(ctx context.Context, store client.Client, written client.Object) {
		if fc, ok := written.(*corev1beta1.ForeignCluster); ok && fc.IsMarkedDead() {
			delete(fc.Annotations, corev1beta1.PermanentlyUnreachableAnnotation)
			if err := store.Update(ctx, fc); err != nil {
				t.Error(err)
			}
		}
	}
	objects := append(consumer()[:len(consumer())-1], peer("milan", corev1beta1.StatusEstablished, "it answers"))
	t.Run("volumes there hold data", func(t *testing.T) {
		rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(objects, stored()...), React: answering})
		_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: rome.Cluster, PeerID: "milan", Timeout: 20 * time.Second})
		if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), "shop/data in milan") || !strings.Contains(err.Error(), "--delete-volumes") {
			t.Errorf("got %v", err)
		}
		for _, write := range rome.Writes() {
			if !strings.Contains(write, "ForeignCluster") {
				t.Errorf("written: %s", write)
			}
		}
	})
	t.Run("nothing is lost", func(t *testing.T) {
		rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: objects, React: answering})
		recorder := &progress.Recorder{}
		_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: rome.Cluster, PeerID: "milan", Timeout: 20 * time.Second, Observer: recorder})
		if lines := recorder.Lines(); !strings.Contains(lines[0], "milan answers and lets this cluster work: it is not given up") {
			t.Errorf("told %v, %v", lines, err)
		}
	})
}

// By the administrator's word a provider that took our rights back is left, and so is one that died since it answered last; the claims of
// volumes there stay.
func TestForceGivesUpAPeerThatIsLost(t *testing.T) {
	for sentence, test := range map[string]struct {
		peer  *corev1beta1.ForeignCluster
		after *corev1beta1.ForeignCluster
	}{
		"it took our rights back":             {revoked("milan"), nil},
		"it does not answer":                  {peer("milan", corev1beta1.StatusError, "silence"), nil},
		"it died after it had answered":       {peer("milan", corev1beta1.StatusEstablished, "it answers"), peer("milan", corev1beta1.StatusError, "silence")},
		"it took them after it had let us do": {peer("milan", corev1beta1.StatusEstablished, "it answers"), revoked("milan")},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := append(consumer()[:len(consumer())-1], test.peer)
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(objects, stored()...),
				React: func(ctx context.Context, store client.Client, written client.Object) {
					if fc, ok := written.(*corev1beta1.ForeignCluster); ok && test.after != nil {
						fc.Status = test.after.Status
						if err := store.Status().Update(ctx, fc); err != nil {
							t.Error(err)
						}
					}
				}})
			recorder := &progress.Recorder{}
			_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: rome.Cluster, PeerID: "milan", Timeout: 20 * time.Second, Observer: recorder})
			told := strings.Join(recorder.Lines(), "\n")
			if !strings.Contains(told, "done: Marking milan as permanently unreachable") || !strings.Contains(told, "PersistentVolumeClaim shop/data is in milan") {
				t.Errorf("got %v, told:\n%s", err, told)
			}
			if err := rome.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "data"}, &corev1.PersistentVolumeClaim{}); err != nil {
				t.Errorf("the claim: %v", err)
			}
		})
	}
}
