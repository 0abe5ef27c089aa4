package unpeer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/authenticate"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
)

// Whatever right is missing, in whichever cluster, is found before anything is touched.
func TestUnpeeringWithoutARightTouchesNothing(t *testing.T) {
	const next = "ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs"
	cases := map[string]struct {
		atHome, atProvider []string
		options            unpeer.Options
		want               string
	}{
		"who may only look at the provider": {
			atProvider: []string{"delete tenants.authentication.liqo.io in namespace liqo-tenant-rome", "delete secrets in namespace liqo-tenant-rome"},
			want: "you are not allowed to: delete tenants.authentication.liqo.io in namespace liqo-tenant-rome; " +
				"delete secrets in namespace liqo-tenant-rome (cluster milan): " + next,
		},
		"who may only look at home": {
			atHome: []string{"delete virtualnodes.offloading.liqo.io in namespace liqo-tenant-milan"},
			want:   "you are not allowed to: delete virtualnodes.offloading.liqo.io in namespace liqo-tenant-milan (cluster rome): " + next,
		},
		"who could not see what goes": {
			atHome: []string{"list pods"}, want: "you are not allowed to: list pods (cluster rome): " + next,
		},
		"who could not see what is left": {
			atProvider: []string{"list rolebindings.rbac.authorization.k8s.io"},
			want:       "you are not allowed to: list rolebindings.rbac.authorization.k8s.io (cluster milan): " + next,
		},
		"who wants the namespaces to go, and may not delete the provider's": {
			atProvider: []string{"delete namespaces"}, options: unpeer.Options{DeleteNamespaces: true},
			want: "you are not allowed to: delete namespaces (cluster milan): " + next,
		},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: consumer(), Missing: test.atHome})
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: provider(), Missing: test.atProvider})
			o := test.options
			o.Consumer, o.Provider, o.Timeout = rome.Cluster, milan.Cluster, 20*time.Second
			o.Confirm = func(context.Context, string) error {
				t.Error("it asked before it knew whether it may")
				return nil
			}
			_, err := unpeer.Run(t.Context(), o)
			if failure.CodeOf(err) != failure.Precondition {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if writes := append(rome.Writes(), milan.Writes()...); len(writes) > 0 {
				t.Errorf("written: %v", writes)
			}
		})
	}
}

func TestUnauthenticatingWithoutARightTouchesNothing(t *testing.T) {
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(consumer()[:1], consumer()[5:]...)})
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: provider(),
		Missing: []string{"delete tenants.authentication.liqo.io in namespace liqo-tenant-rome"}})
	err := authenticate.Undo(t.Context(), authenticate.UndoOptions{Consumer: rome.Cluster, Provider: milan.Cluster, Observer: progress.Discard})
	if writes := append(rome.Writes(), milan.Writes()...); failure.CodeOf(err) != failure.Precondition || len(writes) > 0 {
		t.Errorf("got %v, written %v", err, writes)
	}
}

// offloading is what rome has at milan: so many pods, and one namespace.
func offloading(pods int) []client.Object {
	objects := consumer()
	objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{
		corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: "milan",
	}}})
	for i := range pods {
		objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}, Spec: corev1.PodSpec{NodeName: "milan"}})
	}
	objects = append(objects,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "at-home"}, Spec: corev1.PodSpec{NodeName: "worker"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ended"}, Spec: corev1.PodSpec{NodeName: "milan"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}})
	for _, object := range objects {
		if nm, ok := object.(*offloadingv1beta1.NamespaceMap); ok {
			nm.Spec.DesiredMapping = map[string]string{"shop": "shop-rome"}
		}
	}
	return objects
}

func TestUnpeeringSaysWhatGoesAndAsks(t *testing.T) {
	refused := errors.New("no")
	cases := map[string]struct {
		objects []client.Object
		want    string
	}{
		"pods and a namespace": {offloading(2), "Ending the peering of rome with milan evicts 2 pods (shop/web-0, shop/web-1), " +
			"deletes 1 namespace (shop-rome) at milan with everything in it and removes 1 virtual node (milan)."},
		"many pods": {offloading(7), "Ending the peering of rome with milan evicts 7 pods (shop/web-0, shop/web-1, shop/web-2, shop/web-3, shop/web-4 and 2 more), " +
			"deletes 1 namespace (shop-rome) at milan with everything in it and removes 1 virtual node (milan)."},
		"nothing": {consumer(), "Ending the peering of rome with milan takes nothing with it: nothing of rome runs there."},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: test.objects})
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: provider()})
			asked := ""
			_, err := unpeer.Run(t.Context(), unpeer.Options{
				Consumer: rome.Cluster, Provider: milan.Cluster,
				Confirm: func(_ context.Context, question string) error { asked = question; return refused },
			})
			if diff := cmp.Diff(test.want, asked); diff != "" {
				t.Error(diff)
			}
			if writes := append(rome.Writes(), milan.Writes()...); !errors.Is(err, refused) || len(writes) > 0 {
				t.Errorf("got %v, written %v", err, writes)
			}
		})
	}
}
