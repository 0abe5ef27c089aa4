package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqo.io/liqo/test/lab/host"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/state"
	"liqo.io/liqo/test/lab/step"
)

func TestMountsBelow(t *testing.T) {
	mountinfo := `25 1 254:0 / / rw - ext4 /dev/vda rw
90 25 0:50 / /var/lib/liqo-lab/demo/a rw - overlay overlay rw
91 90 0:51 / /var/lib/liqo-lab/demo/a/b\040c rw - tmpfs tmpfs rw
92 25 0:52 / /var/lib/liqo-lab/demo2/x rw - tmpfs tmpfs rw
`
	want := []string{"/var/lib/liqo-lab/demo/a", "/var/lib/liqo-lab/demo/a/b c"}
	if diff := cmp.Diff(want, mountsBelow(mountinfo, "/var/lib/liqo-lab/demo")); diff != "" {
		t.Errorf("mounts differ (-want +got):\n%s", diff)
	}
}

func TestWhatALabNeeds(t *testing.T) {
	mixed := spec.Demo(1)
	mixed.Clusters[1].Nodes = []spec.Node{{Kind: spec.Simulated}}
	mixed = mixed.Complete()
	want := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet", "kube-proxy", "coredns", "provisioner", "kwok"}
	if diff := cmp.Diff(want, wanted(mixed)); diff != "" {
		t.Errorf("programs differ (-want +got):\n%s", diff)
	}
	l := &Lab{state: state.State{Lab: mixed}}
	want = []string{
		"rome/etcd", "rome/kube-apiserver", "rome/kube-controller-manager", "rome/kube-scheduler", "rome/provisioner",
		"rome/rome-1/containerd", "rome/rome-1/kubelet", "rome/rome-1/kube-proxy",
	}
	if diff := cmp.Diff(want, l.components(mixed.Clusters[0])); diff != "" {
		t.Errorf("components of rome differ (-want +got):\n%s", diff)
	}
	entrance := spec.Demo(1)
	entrance.Clusters[0].IngressClass = "lab"
	if !slices.Contains(wanted(entrance.Complete()), "ingress") {
		t.Error("a lab with an ingress class gets no ingress controller")
	}
	encapsulated := spec.Demo(1)
	encapsulated.Clusters[0].CNI = spec.Flannel
	encapsulated = encapsulated.Complete()
	l = &Lab{state: state.State{Lab: encapsulated}}
	if !slices.Contains(wanted(encapsulated), "flannel") || !slices.Contains(l.components(encapsulated.Clusters[0]), "rome/rome-1/flannel") {
		t.Error("a cluster with flannel does not run it")
	}
	bare := mixed.Clusters[1]
	bare.WithoutControllerManager, bare.WithoutScheduler = true, true
	if diff := cmp.Diff([]string{"milan/etcd", "milan/kube-apiserver", "milan/kwok"}, l.components(bare)); diff != "" {
		t.Errorf("components of a bare cluster differ (-want +got):\n%s", diff)
	}
}

func TestATakenPortIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	c := spec.Cluster{Name: "rome", APIServer: spec.APIServer{Port: port}}
	want := fmt.Sprintf("port %d of cluster rome is in use by another program: end that program, or choose another apiServer.port", port)
	if _, err := freePorts(c); err == nil || err.Error() != want {
		t.Errorf("error = %v, want %q", err, want)
	}
	c.APIServer.Port = 0
	if ports, err := freePorts(c); err != nil || ports.API == ports.Etcd || ports.API == 0 {
		t.Errorf("ports %+v, error %v", ports, err)
	}
}

func TestRefusalsLeaveNothing(t *testing.T) {
	machine := host.Machine{UID: 0, Kernel: "6.1.0", Filesystems: "overlay"}
	if err := checkReal(machine, spec.Demo(1).Complete(), "/var/lib/"+strings.Repeat("x", 100)); err == nil || !strings.Contains(err.Error(), "too long for the sockets") {
		t.Errorf("a long path: %v", err)
	}
	root := filepath.Join(t.TempDir(), "labs")
	t.Setenv(state.EnvRoot, root)
	t.Setenv("LIQO_LAB_BIN", t.TempDir())
	overlapping := spec.Demo(0)
	overlapping.Clusters[0].PodCIDR = netip.MustParsePrefix("10.20.0.0/16")
	for sentence, c := range map[string]struct {
		lab  spec.Lab
		want string
	}{
		"bad declaration":  {overlapping, "flat mode cannot route"},
		"missing programs": {spec.Demo(0), "lacks the programs"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := Up(t.Context(), c.lab, step.Silent{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
			if _, err := os.Stat(root); err == nil {
				t.Error("the refusal left files")
			}
		})
	}
}

func TestUnknownNames(t *testing.T) {
	t.Setenv(state.EnvRoot, t.TempDir())
	if _, err := Open("nowhere"); !errors.Is(err, ErrUnknown) {
		t.Errorf("opening: %v", err)
	}
	l := &Lab{state: state.State{Lab: spec.Demo(0)}}
	for what, err := range map[string]error{
		"cutting":    l.CutLink(t.Context(), "rome", "paris"),
		"killing":    l.KillNode(t.Context(), "rome", "rome-9"),
		"loading":    l.Load(t.Context(), nil, "paris"),
		"pausing":    l.PauseNode("paris", "x"),
		"connecting": func() error { _, err := l.Config("paris"); return err }(),
	} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v, want ErrUnknown", what, err)
		}
	}
	if err := l.CutLink(t.Context(), "rome", "rome"); err == nil || !strings.Contains(err.Error(), "two ends") {
		t.Errorf("a link with one end: %v", err)
	}
	if err := l.CutLink(t.Context(), "rome", "milan"); !errors.Is(err, errSimulated) {
		t.Errorf("a link of a simulated lab: %v", err)
	}
}

func TestDiskErrorNamesTheRemedy(t *testing.T) {
	if got := diskError(errors.New("x: no space left on device")).Error(); !strings.Contains(got, "free at least 3 GB") {
		t.Errorf("got %q", got)
	}
}
