package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

func TestReflectorConfig(t *testing.T) {
	config := func(workers int32, policy offloadingv1beta1.ReflectionType) offloadingv1beta1.ReflectorConfig {
		return offloadingv1beta1.ReflectorConfig{NumWorkers: workers, Type: policy}
	}
	template := func(c offloadingv1beta1.ReflectorConfig) *offloadingv1beta1.VkOptionsTemplate {
		return &offloadingv1beta1.VkOptionsTemplate{Spec: offloadingv1beta1.VkOptionsTemplateSpec{
			ReflectorsConfig: map[string]offloadingv1beta1.ReflectorConfig{"secret": c, Pods: c}}}
	}
	for name, tc := range map[string]struct {
		args     []string
		kind     string
		template *offloadingv1beta1.VkOptionsTemplate
		want     offloadingv1beta1.ReflectorConfig
	}{
		"nothing is said":                {nil, "secret", nil, config(10, offloadingv1beta1.DenyList)},
		"the template says it":           {nil, "secret", template(config(7, offloadingv1beta1.Referenced)), config(7, offloadingv1beta1.Referenced)},
		"the template turns it off":      {nil, "secret", template(config(0, "")), config(0, offloadingv1beta1.DenyList)},
		"flags win":                      {[]string{"--secret-reflection-workers=1", "--secret-reflection-type=AllowList"}, "secret", template(config(7, "")), config(1, offloadingv1beta1.AllowList)},
		"one flag wins, for its half":    {[]string{"--secret-reflection-type=AllowList"}, "secret", template(config(7, "")), config(7, offloadingv1beta1.AllowList)},
		"a policy that the kind has not": {nil, "secret", template(config(7, offloadingv1beta1.CustomLiqo)), config(7, offloadingv1beta1.DenyList)},
		"another kind":                   {nil, "configmap", template(config(7, "")), config(10, offloadingv1beta1.DenyList)},
		"pods":                           {nil, Pods, nil, config(10, "")},
		"pods, as the template has them": {nil, Pods, template(config(7, "")), config(7, "")},
		"the status of the template comes back, whatever the flags say": {[]string{"--secret-reflection-workers=1"}, "secret",
			template(offloadingv1beta1.ReflectorConfig{NumWorkers: 7, StatusBack: true}),
			offloadingv1beta1.ReflectorConfig{NumWorkers: 1, Type: offloadingv1beta1.DenyList, StatusBack: true}},
		"a template that says nothing else": {nil, "secret", &offloadingv1beta1.VkOptionsTemplate{}, config(10, offloadingv1beta1.DenyList)},
	} {
		t.Run(name, func(t *testing.T) {
			var r Reflectors
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			r.Register(set)
			if err := set.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, r.config(tc.kind, tc.template)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNotReflected(t *testing.T) {
	vn := &offloadingv1beta1.VirtualNode{Spec: offloadingv1beta1.VirtualNodeSpec{
		OffloadingPatch: &offloadingv1beta1.OffloadingPatch{LabelsNotReflected: []string{"b", "a"}}}}
	template := &offloadingv1beta1.VkOptionsTemplate{Spec: offloadingv1beta1.VkOptionsTemplateSpec{
		LabelsNotReflected: []string{"c", "a"}, AnnotationsNotReflected: []string{"x"}}}
	want := reflection.NotReflected{Labels: []string{"a", "b", "c"}, Annotations: []string{"x"}}
	if diff := cmp.Diff(want, notReflected(vn, template)); diff != "" {
		t.Error(diff)
	}
}
