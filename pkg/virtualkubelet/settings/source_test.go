package settings

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/placement"
)

// What a VirtualNode and its template keep at home stays there from the first moment on, and while the template is exchanged.
func TestNothingIsInForceBeforeTheTemplateIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		templates := map[templateKey]chan *offloadingv1beta1.VkOptionsTemplate{
			{"liqo", "virtual-kubelet-default"}: make(chan *offloadingv1beta1.VkOptionsTemplate),
			{"liqo", "strict"}:                  make(chan *offloadingv1beta1.VkOptionsTemplate),
		}
		var inForce []string
		s := &Source{
			View: &latest.Value[View]{},
			follow: func(ctx context.Context, from templateKey, set func(*offloadingv1beta1.VkOptionsTemplate)) {
				for {
					select {
					case <-ctx.Done():
						return
					case template := <-templates[from]:
						set(template)
					}
				}
			},
			options: Options{Home: placement.HomeNamespaces{Liqo: "liqo"}, Reflectors: &Reflectors{}},
		}
		s.View.Follow(func(_, v View) {
			if v.Node != nil {
				inForce = append(inForce, v.Node.ResourceVersion+" "+strings.Join(v.NotReflected.Labels, ","))
			}
		})
		expect := func(when string, known bool, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, inForce); diff != "" {
				t.Errorf("%s: in force one after the other (-want +got):\n%s", when, diff)
			}
			if got := s.View.Get().Node != nil; got != known {
				t.Errorf("%s: known is %v", when, got)
			}
		}
		node := func(version, template string) *offloadingv1beta1.VirtualNode {
			vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
			if template != "" {
				vn.Spec.VkOptionsTemplateRef = &corev1.ObjectReference{Name: template}
			}
			return vn
		}
		version := func(v string) *offloadingv1beta1.VkOptionsTemplate {
			return &offloadingv1beta1.VkOptionsTemplate{Spec: offloadingv1beta1.VkOptionsTemplateSpec{LabelsNotReflected: []string{v}}}
		}
		s.View.Change(func(v *View) { s.readNode(ctx, v, node("node-1", "")) })
		expect("only the VirtualNode was read", false)
		templates[templateKey{"liqo", "virtual-kubelet-default"}] <- version("default-1")
		expect("both were read", true, "node-1 default-1")
		s.View.Change(func(v *View) { s.readNode(ctx, v, node("node-2", "strict")) })
		expect("another template is named", true, "node-1 default-1", "node-2 default-1")
		s.View.Change(func(v *View) {
			s.readTemplate(ctx, v, templateKey{"liqo", "virtual-kubelet-default"}, version("default-2"))
		})
		expect("late news of the one before", true, "node-1 default-1", "node-2 default-1")
		templates[templateKey{"liqo", "strict"}] <- version("strict-1")
		expect("the other template was read", true, "node-1 default-1", "node-2 default-1", "node-2 strict-1")
	})
}
