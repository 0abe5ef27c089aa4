package config_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/config"
	"liqo.io/liqo/test/lab/golden"
	"liqo.io/liqo/test/lab/pki"
	"liqo.io/liqo/test/lab/spec"
)

func programs() binary.Set {
	set := binary.Set{}
	for _, name := range []string{binary.Etcd, binary.APIServer, binary.ControllerManager, binary.Scheduler, binary.Kwok, binary.Provisioner, binary.Kubelet, binary.Proxy, binary.Flannel} {
		set[name] = "/bin/" + name
	}
	return set
}

func TestControlPlane(t *testing.T) {
	dir := t.TempDir()
	keys, err := pki.New(dir, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	adjusted := spec.Demo(1).Complete().Clusters[0]
	adjusted.APIServer = spec.APIServer{
		ExtraArgs:       map[string]string{"v": "4", "allow-privileged": "false"},
		EnableAdmission: []string{"AlwaysPullImages"}, DisableAdmission: []string{"LimitRanger"},
	}
	for name, cp := range map[string]config.ControlPlane{
		"networked.txt": {Cluster: spec.Demo(1).Complete().Clusters[0], Address: "172.30.0.3", Port: 6443, EtcdPort: 2379, EtcdPeerPort: 2380},
		"loopback.txt":  {Cluster: spec.Demo(0).Clusters[1], Address: "127.0.0.1", Port: 41001, EtcdPort: 41002, EtcdPeerPort: 41003, Loopback: true},
		"adjusted.txt":  {Cluster: adjusted, Address: "172.30.0.3", Port: 6443, EtcdPort: 2379, EtcdPeerPort: 2380, AdmissionFile: "/lab/rome/admission.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			cp.Programs, cp.Keys, cp.Dir = programs(), keys, "/lab/"+cp.Cluster.Name
			var b strings.Builder
			for _, command := range [][]string{cp.Etcd(), cp.APIServer(), cp.ControllerManager(), cp.Scheduler(), cp.Kwok(), cp.Provisioner("/lab/volumes")} {
				fmt.Fprintln(&b, strings.Join(command, "\n  "))
			}
			golden.Check(t, name, strings.ReplaceAll(b.String(), dir, "/keys"))
		})
	}
}

func TestNode(t *testing.T) {
	dir := t.TempDir()
	keys, err := pki.New(dir, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*spec.Cluster){
		"node.txt":    func(*spec.Cluster) {},
		"flannel.txt": func(c *spec.Cluster) { c.CNI, c.ProxyMode = spec.Flannel, spec.IPTables },
	} {
		t.Run(name, func(t *testing.T) {
			c := spec.Demo(1).Complete().Clusters[0]
			change(&c)
			n := config.NewNode(c, "rome-1", keys, programs())
			n.Dir, n.Address, n.PodCIDR = "/lab/rome/nodes/rome-1", netip.MustParseAddr("172.30.0.4"), c.NodeCIDR(0)
			n.Cgroup, n.Network, n.PluginDir, n.PauseImage = "/liqo-lab/demo/rome/nodes/rome-1/pods", "liqo-lab-demo-rome-rome-1", "/usr/lib/cni", "pause:1"
			files, err := n.Files()
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, path := range slices.Sorted(maps.Keys(files)) {
				fmt.Fprintf(&b, "# %s\n%s\n", path, files[path])
			}
			commands := [][]string{n.Containerd(), n.Kubelet(), n.Proxy()}
			if c.CNI == spec.Flannel {
				commands = append(commands, n.Flannel())
			}
			for _, command := range commands {
				fmt.Fprintln(&b, strings.Join(command, "\n  "))
			}
			golden.Check(t, name, strings.ReplaceAll(b.String(), dir, "/keys"))
		})
	}
}

func TestAdmission(t *testing.T) {
	data, err := config.Admission("baseline")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "admission.yaml", string(data))
}

func TestStagesNameTheVersion(t *testing.T) {
	data, err := config.Stages()
	if err != nil || !strings.Contains(string(data), "kubeletVersion: "+binary.KubernetesVersion) {
		t.Errorf("stages without the version of Kubernetes, error %v", err)
	}
}
