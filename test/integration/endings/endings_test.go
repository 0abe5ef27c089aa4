package endings

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/action/uninstall"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/test/integration/fixture"
)

// losses are how a provider stops to play its part, each with what brings it back for the next world.
var losses = []struct {
	state string
	lose  func(t *testing.T)
}{
	// Nobody answers, and no connection ends.
	{"hanging", func(*testing.T) { env.Milan.Link.Cut() }},
	{"dead", func(*testing.T) { env.Milan.Link.Refuse() }},
	// The administrator of milan ends it from that side.
	{"revoked", forget},
	// Another cluster stands at the address, with another CA; what was there is gone.
	{"rebuilt", func(t *testing.T) { forget(t); env.Milan.Link.Lead(env.Rome.Config.Host) }},
}

// errBeyond says that a command came past its own checks.
var errBeyond = errors.New("the release would be removed now")

// noHelm removes nothing.
type noHelm struct{ helm.Client }

func (noHelm) Uninstall(context.Context, string, time.Duration) error { return errBeyond }

// The table of endings: whatever became of the provider, and whatever a namespace holds, each command ends within its deadline, in
// success or with a refusal that names the way out and leaves everything as it was; and that way leads out. Nothing stays with our
// finalizers at home, and no object of a user is lost without a word.
//
// One world serves the four commands: those that refuse write nothing, which is checked, and the one that does not comes last.
func TestEndings(t *testing.T) {
	for _, loss := range losses {
		t.Run(loss.state, func(t *testing.T) {
			w := newWorld(t)
			t.Cleanup(env.Milan.Link.Mend)
			loss.lose(t)
			w.awaitLost(t)
			w.late(t)
			quietly := env.Rome.Recorder.Now(t)
			t.Run("uninstall", func(t *testing.T) {
				_, err := uninstall.Run(t.Context(), uninstall.Options{Cluster: env.Rome.Target(t), Timeout: refusalTimeout, Helm: noHelm{}})
				w.each(t, func(t *testing.T, namespace string) {
					refuses(t, err, namespace, "liqoctl unoffload namespace")
					w.untouched(t, namespace, quietly)
				})
			})
			t.Run("unoffload", func(t *testing.T) {
				w.each(t, func(t *testing.T, namespace string) {
					err := offload.Undo(t.Context(), offload.UndoOptions{Cluster: env.Rome.Target(t), Namespaces: []string{namespace}, Timeout: refusalTimeout})
					refuses(t, err, namespace, "liqoctl unpeer --force milan")
					w.untouched(t, namespace, quietly)
				})
			})
			t.Run("unpeer", func(t *testing.T) {
				_, err := unpeer.Run(t.Context(), unpeer.Options{Consumer: env.Rome.Target(t), Provider: env.Milan.Target(t), Timeout: refusalTimeout})
				w.each(t, func(t *testing.T, namespace string) {
					refuses(t, err, "milan", "liqoctl unpeer --force milan")
					w.untouched(t, namespace, quietly)
				})
			})
			t.Run("unpeer --force", func(t *testing.T) {
				told := &progress.Recorder{}
				_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: env.Rome.Target(t), PeerID: "milan", Timeout: forceTimeout, Observer: told})
				w.each(t, func(t *testing.T, namespace string) {
					fixture.Must(t, "leaving milan at rome", err)
					w.stays(t, namespace, told)
				})
				nothingLeft(t)
				if len(env.Rome.Recorder.Since(t, quietly, administrator)) == 0 {
					t.Error("the audit log shows no write of the administrator, so it proves nothing of the commands that refused")
				}
			})
			t.Run("the way out", w.wayOut)
			fixture.Must(t, "stopping the virtual kubelet", w.kubelet.Stop())
			env.Milan.Link.Mend()
			forget(t)
		})
	}
}

// each runs one cell of the table for each of the contents.
func (w *world) each(t *testing.T, cell func(t *testing.T, namespace string)) {
	t.Helper()
	for _, content := range contents {
		t.Run(content, func(t *testing.T) { cell(t, w.namespaces[content]) })
	}
}

// late makes a pod on the virtual node after the provider was lost. It never had a remote one, nor had the one that was refused: both go
// when they are deleted.
func (w *world) late(t *testing.T) {
	t.Helper()
	p := pod(w.namespaces["refused pod"])
	p.Name, p.Spec.NodeName = "late", w.kubelet.Node
	fixture.Must(t, "creating a pod that comes too late", env.Rome.Client.Create(t.Context(), p))
	other := pod(p.Namespace)
	other.Name, other.Spec.NodeName = "stays", w.kubelet.Node
	fixture.Must(t, "creating another one", env.Rome.Client.Create(t.Context(), other))
	for _, gone := range []*corev1.Pod{p, pod(p.Namespace)} {
		fixture.Must(t, "deleting pod "+gone.Name, env.Rome.Client.Delete(t.Context(), gone.DeepCopy()))
		awaitGone(t, gone)
	}
}

func awaitGone(t *testing.T, object client.Object) {
	t.Helper()
	fixture.Await(t, fixture.Patience, fmt.Sprintf("%T %s to go", object, object.GetName()), func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), fmt.Sprintf("finalizers %v, deleted %v, error %v", object.GetFinalizers(), object.GetDeletionTimestamp(), err)
	})
}

// refuses checks that an error is a refusal, that it names what it is about, and the way out.
func refuses(t *testing.T, err error, about, wayOut string) {
	t.Helper()
	if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), about) || !strings.Contains(err.Error(), wayOut) {
		t.Errorf("got %v (code %d), want a refusal that names %q and %q", err, failure.CodeOf(err), about, wayOut)
	}
}

// untouched checks that the user has written nothing since a moment, so that a refusal left everything as it was.
func (w *world) untouched(t *testing.T, namespace string, since fixture.Moment) {
	t.Helper()
	for _, write := range env.Rome.Recorder.Since(t, since, administrator) {
		if write.Namespace == namespace || strings.HasSuffix(write.Resource, "liqo.io") {
			t.Errorf("a command that refused wrote: %s", write)
		}
	}
	w.present(t, namespace)
}

// administrator is who the commands are run by.
func administrator(user string) bool { return strings.Contains(user, "admin") }

// present checks that the objects of the user are there, the same ones, and not being deleted.
func (w *world) present(t *testing.T, namespace string) {
	t.Helper()
	for _, object := range w.kept[namespace] {
		live, _ := object.DeepCopyObject().(client.Object)
		if err := env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil || live.GetUID() != object.GetUID() || live.GetDeletionTimestamp() != nil {
			t.Errorf("the user's %T %s: deleted %v, error %v", object, object.GetName(), live.GetDeletionTimestamp(), err)
		}
	}
}

// stays checks a namespace after the peering was ended by force: what is the user's is there, what ran at milan is not shown to run any
// more, and the user was told of the data.
func (w *world) stays(t *testing.T, namespace string, told *progress.Recorder) {
	t.Helper()
	w.present(t, namespace)
	pods := &corev1.PodList{}
	fixture.Must(t, "listing pods", env.Rome.Client.List(t.Context(), pods, client.InNamespace(namespace)))
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == w.kubelet.Node {
			t.Errorf("pod %s is left on the virtual node: %s, deleted %v, finalizers %v", pods.Items[i].Name, pods.Items[i].Status.Phase, pods.Items[i].DeletionTimestamp, pods.Items[i].Finalizers)
		}
	}
	if namespace == w.namespaces["volume"] && !strings.Contains(strings.Join(told.Lines(), "\n"), "PersistentVolumeClaim "+namespace+"/data is in milan") {
		t.Errorf("the user was not told of the data: %v", told.Lines())
	}
}

// nothingLeft checks that nothing of the peering is at rome: no object with a finalizer of ours waits for somebody who is gone.
func nothingLeft(t *testing.T) {
	t.Helper()
	for _, list := range []client.ObjectList{
		&authv1beta1.IdentityList{}, &authv1beta1.ResourceSliceList{}, &authv1beta1.RenewList{}, &authv1beta1.TenantList{}, &offloadingv1beta1.VirtualNodeList{},
		&offloadingv1beta1.NamespaceMapList{}, &corev1beta1.ForeignClusterList{},
	} {
		fixture.Must(t, "listing what is left", env.Rome.Client.List(t.Context(), list))
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			object, _ := item.(client.Object)
			t.Errorf("%T %s/%s is left, finalizers %v", object, object.GetNamespace(), object.GetName(), object.GetFinalizers())
			return nil
		})
	}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.ConsumerNamespace}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}} {
		if err := env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left: finalizers %v, error %v", object, object.GetName(), object.GetFinalizers(), err)
		}
	}
}

// wayOut goes on where the refusals pointed to, and leaves nothing: the namespaces are taken back, the claim of the lost data is deleted,
// and uninstalling is not refused any more.
func (w *world) wayOut(t *testing.T) {
	t.Helper()
	namespace := w.namespaces["volume"]
	err := offload.Undo(t.Context(), offload.UndoOptions{Cluster: env.Rome.Target(t), Namespaces: []string{namespace}, Timeout: refusalTimeout})
	refuses(t, err, namespace+"/data", "--delete-volumes")
	w.present(t, namespace)
	all := make([]string, 0, len(contents))
	for _, content := range contents {
		all = append(all, w.namespaces[content])
	}
	err = offload.Undo(t.Context(), offload.UndoOptions{Cluster: env.Rome.Target(t), Namespaces: all, DeleteVolumes: true, Timeout: fixture.Patience})
	fixture.Must(t, "taking the namespaces back", err)
	for _, object := range w.kept[namespace] {
		if _, settings := object.(*corev1.ConfigMap); !settings {
			awaitGone(t, object)
		}
	}
	_, err = uninstall.Run(t.Context(), uninstall.Options{Cluster: env.Rome.Target(t), Timeout: refusalTimeout, Helm: noHelm{}})
	if !errors.Is(err, errBeyond) {
		t.Errorf("uninstalling: %v", err)
	}
	for _, name := range all {
		fixture.Must(t, "deleting namespace "+name, env.Rome.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, name := range all {
		awaitGone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}
