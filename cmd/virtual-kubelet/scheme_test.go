package main

import (
	"testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

func TestTheSchemeKnowsWhatIsReflected(t *testing.T) {
	scheme := newScheme()
	for _, kind := range reflection.Kinds() {
		if !scheme.Recognizes(kind.GVK) || !scheme.Recognizes(kind.RemoteKind().GVK) {
			t.Errorf("kind %s is not known: %s, %s", kind.Name, kind.GVK, kind.RemoteKind().GVK)
		}
	}
	for _, name := range []string{"ShadowPod", "NamespaceMap", "VirtualNode", "VkOptionsTemplate"} {
		if !scheme.Recognizes(offloadingv1beta1.GroupVersion.WithKind(name)) {
			t.Errorf("kind %s is not known", name)
		}
	}
}
