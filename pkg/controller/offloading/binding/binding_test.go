package binding

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"liqo.io/liqo/pkg/kube/reconcile"
)

func TestEnsureAndRemove(t *testing.T) {
	want := New("shop", "rights", "viewer", Group("a"), ServiceAccount("liqo", "b"))
	other := New("shop", "rights", "editor", Group("a"))
	labelled := New("shop", "rights", "viewer", Group("c"))
	labelled.Labels["user"] = "keeps"
	foreign := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rights"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "theirs"}}
	for name, tc := range map[string]struct {
		live     *rbacv1.RoleBinding
		conflict bool
		labels   map[string]string
	}{
		"there is none":                     {nil, false, map[string]string{"liqo.io/managed": "true"}},
		"it is there":                       {want, false, map[string]string{"liqo.io/managed": "true"}},
		"other subjects are replaced":       {labelled, false, map[string]string{"liqo.io/managed": "true", "user": "keeps"}},
		"another role means another object": {other, false, map[string]string{"liqo.io/managed": "true"}},
		"C6: somebody else's is left alone": {foreign, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			scheme := runtime.NewScheme()
			if err := clientgoscheme.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			b := fake.NewClientBuilder().WithScheme(scheme)
			if tc.live != nil {
				b = b.WithObjects(tc.live.DeepCopy())
			}
			c := b.Build()
			read := func() *rbacv1.RoleBinding {
				var rb rbacv1.RoleBinding
				if err := c.Get(ctx, client.ObjectKeyFromObject(want), &rb); err != nil {
					if apierrors.IsNotFound(err) {
						return nil
					}
					t.Fatal(err)
				}
				return &rb
			}
			before := read()
			err := Keeper(c).All(ctx, want)
			if tc.conflict {
				if reconcile.Classify(err) != reconcile.Refused || read().ResourceVersion != before.ResourceVersion {
					t.Errorf("error %v", err)
				}
				if err := Keeper(c).Remove(ctx, want); err != nil || read() == nil {
					t.Errorf("error %v: somebody else's RoleBinding was removed", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			after := read()
			if diff := cmp.Diff([]any{want.RoleRef, want.Subjects, tc.labels}, []any{after.RoleRef, after.Subjects, after.Labels}); diff != "" {
				t.Error(diff)
			}
			if err := Keeper(c).All(ctx, want); err != nil || read().ResourceVersion != after.ResourceVersion {
				t.Errorf("error %v: it is written although nothing changed", err)
			}
			for range 2 {
				if err := Keeper(c).Remove(ctx, want); err != nil || read() != nil {
					t.Errorf("error %v: it is still there", err)
				}
			}
		})
	}
}
