package installation

import (
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"liqo.io/liqo/pkg/cli/action/install"
	"liqo.io/liqo/pkg/cli/session"
)

func TestNextAfterInstalling(t *testing.T) {
	s := session.New(genericiooptions.NewTestIOStreamsDiscard(), "kubectl liqo", func(string) string { return "" })
	*s.Local.Config.Context = "rome"
	for want, report := range map[string]*install.Report{
		"Liqo v2 runs in cluster rome. Next: kubectl liqo peer --context rome --remote-kubeconfig KUBECONFIG_OF_THE_PROVIDER": {Version: "v2", ClusterID: "rome"},
		"Liqo v2 runs in cluster rome.": {Version: "v2", ClusterID: "rome", Upgraded: true},
	} {
		if got := installed(s, report); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
