package skew

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/lab/cluster"
)

const (
	// patience is enough for anything to cross, and for pods to start on a busy machine.
	patience = 2 * time.Minute
	// unhurried is what a command of liqoctl may take.
	unhurried = 4 * time.Minute
)

// side is one cluster, with the rights of its administrator, and the release that is installed there.
type side struct {
	client.WithWatch
	name       string
	kubeconfig string
	config     *rest.Config
	kube       kubernetes.Interface
	dynamic    dynamic.Interface
	release    *Release
}

func newSide(lab *cluster.Lab, name string) (*side, error) {
	config, err := lab.Config(name)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // listing every kind brings up every deprecated one
	c := &side{name: name, kubeconfig: lab.Kubeconfig(name), config: config}
	if c.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: fixture.Scheme}); err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", name, err)
	}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", name, err)
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", name, err)
	}
	return c, nil
}

// liqoctl runs liqoctl of a release, which has to succeed.
func (r *Release) liqoctl(t *testing.T, args ...string) {
	t.Helper()
	begin := time.Now()
	out, err := r.execute(t, args...)
	did := fmt.Sprintf("liqoctl %s of the %s release took %s\n%s", strings.Join(args, " "), r.Name, time.Since(begin).Round(time.Second), out)
	if err != nil {
		t.Fatalf("%s%v", did, err)
	}
	t.Log(did)
}

// execute runs liqoctl of a release, and returns what it said.
func (r *Release) execute(t *testing.T, args ...string) (out []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), unhurried)
	defer cancel()
	return exec.CommandContext(ctx, r.Liqoctl, args...).CombinedOutput()
}

// installs brings a cluster to a release, by that release's liqoctl: an upgrade if another one is there, which keeps the values that it has.
func (c *side) installs(t *testing.T, r *Release, more ...string) {
	t.Helper()
	declared, _ := the.lab.Spec().Cluster(c.name)
	api, err := url.Parse(c.config.Host)
	fixture.Must(t, "reading the address of the API server of "+c.name, err)
	args := []string{"install", "--kubeconfig", c.kubeconfig, "--cluster-id", c.name, "--pod-cidr", declared.PodCIDR.String(),
		"--service-cidr", declared.ServiceCIDR.String(), "--timeout", "3m",
		"--set", fmt.Sprintf("virtualKubelet.extra.args={--home-api-server-host=%s,--home-api-server-port=%s}", api.Hostname(), api.Port())}
	r.liqoctl(t, append(args, more...)...)
	c.release = r
}

// uninstalls removes Liqo, and sees that nothing of it is left.
func (c *side) uninstalls(t *testing.T) {
	t.Helper()
	c.release.liqoctl(t, "uninstall", "--purge", "--skip-confirm", "--kubeconfig", c.kubeconfig)
	c.release = nil
	fixture.Await(t, patience, "nothing of Liqo to be left at "+c.name, func(ctx context.Context) (bool, string) {
		left, err := c.left(ctx, "liqo")
		return err == nil && len(left) == 0, fmt.Sprint(left, err)
	})
}

// info has liqoctl of the cluster's own release say that all is well there, and with the only peer.
func (c *side) info(t *testing.T) {
	t.Helper()
	fixture.Await(t, patience, "liqoctl info to find "+c.name+" and its peer healthy", func(context.Context) (bool, string) {
		out, err := c.release.execute(t, "info", "--kubeconfig", c.kubeconfig, "-o", "json")
		var said struct {
			Health   struct{ Healthy bool }
			Peerings struct {
				Peers []struct{ AuthenticationStatus, OffloadingStatus string }
			}
		}
		if err == nil {
			err = json.Unmarshal(out, &said)
		}
		// A provider has nothing to say about offloading.
		return err == nil && said.Health.Healthy && len(said.Peerings.Peers) == 1 && said.Peerings.Peers[0].AuthenticationStatus == "Healthy" &&
			said.Peerings.Peers[0].OffloadingStatus != "Unhealthy", fmt.Sprint(string(out), err)
	})
}

// each visits the objects of all kinds that the cluster knows and some group fits.
func (c *side) each(ctx context.Context, fits func(group string) bool, visit func(kind string, object *unstructured.Unstructured)) error {
	lists, err := discovery.ServerPreferredResources(c.kube.Discovery())
	if err != nil {
		return fmt.Errorf("listing the kinds of %s: %w", c.name, err)
	}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !fits(group.Group) {
			continue
		}
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			items, err := c.dynamic.Resource(group.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("listing %s of %s: %w", kind.Name, c.name, err)
			}
			for i := range items.Items {
				visit(kind.Name+"."+group.Group, &items.Items[i])
			}
		}
	}
	return nil
}

// left lists the objects that have one of some texts in their kind, namespace or name.
func (c *side) left(ctx context.Context, texts ...string) (left []string, err error) {
	err = c.each(ctx, func(group string) bool {
		return !strings.HasPrefix(group, "events") && !strings.HasPrefix(group, "metrics")
	},
		func(kind string, o *unstructured.Unstructured) {
			line := fmt.Sprintf("%s %s/%s", kind, o.GetNamespace(), o.GetName())
			if !strings.HasPrefix(kind, "events.") && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
				left = append(left, line)
			}
		})
	return left, err
}

// unequal are the fields of specs that differ between releases, or from minute to minute, by design: certificates are renewed, the later release
// says whose a namespace is and what the provider's nodes are like.
var unequal = map[string][][]string{
	"identities.authentication.liqo.io": {{"authParams", "signedCRT"}},
	"namespacemaps.offloading.liqo.io":  {{"originUIDs"}},
	"virtualnodes.offloading.liqo.io":   {{"providerNodes"}},
}

// quantities are fields whose values follow what is free. Which resources they name stays.
var quantities = map[string][]string{
	"quotas.offloading.liqo.io":       {"resources"},
	"virtualnodes.offloading.liqo.io": {"resourceQuota", "hard"},
}

// own is the spec of every object of a kind of ours by kind, name and UID, without what says what is installed and what is unequal by design.
func (c *side) own(t *testing.T) map[string]any {
	t.Helper()
	found := map[string]any{}
	fixture.Must(t, "listing what is there", c.each(t.Context(), func(group string) bool { return strings.HasSuffix(group, ".liqo.io") },
		func(kind string, o *unstructured.Unstructured) {
			for _, path := range unequal[kind] {
				unstructured.RemoveNestedField(o.Object, append([]string{"spec"}, path...)...)
			}
			if all, there, _ := unstructured.NestedMap(o.Object, append([]string{"spec"}, quantities[kind]...)...); there && quantities[kind] != nil {
				named := slices.Sorted(maps.Keys(all))
				_ = unstructured.SetNestedStringSlice(o.Object, named, append([]string{"spec"}, quantities[kind]...)...)
			}
			if kind != "vkoptionstemplates.offloading.liqo.io" {
				found[fmt.Sprintf("%s %s/%s %s", kind, o.GetNamespace(), o.GetName(), o.GetUID())] = o.Object["spec"]
			}
		}))
	return found
}

// tell writes down what is known about the cluster.
func (c *side) tell(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods); err != nil {
		t.Logf("listing the pods of %s: %v", c.name, err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		t.Logf("%s: %s/%s", c.name, p.Namespace, describe(p))
		if p.Namespace != fixture.Namespace && !strings.HasPrefix(p.Namespace, "liqo-tenant-") {
			continue
		}
		text, err := c.kube.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{TailLines: ptr.To(int64(25))}).DoRaw(ctx)
		t.Logf("%s: logs of %s: %v\n%s", c.name, p.Name, err, text)
	}
	err := c.each(ctx, func(group string) bool { return strings.HasSuffix(group, ".liqo.io") }, func(kind string, o *unstructured.Unstructured) {
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		summary, _, _ := unstructured.NestedSlice(o.Object, "status", "summary")
		text, _ := json.Marshal(slices.Concat(conditions, summary))
		t.Logf("%s: %s %s/%s deleted %v: %s", c.name, kind, o.GetNamespace(), o.GetName(), o.GetDeletionTimestamp(), text)
	})
	events := &corev1.EventList{}
	if err := c.List(ctx, events); err == nil {
		for i := range events.Items {
			if e := &events.Items[i]; e.Type != corev1.EventTypeNormal {
				t.Logf("%s: Event %s %s/%s: %s %s", c.name, e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Reason, e.Message)
			}
		}
	}
	if err != nil {
		t.Logf("looking at %s: %v", c.name, err)
	}
}

// sideBySide does something for several clusters at once.
func sideBySide(t *testing.T, work func(c *side), clusters ...*side) {
	t.Helper()
	var group sync.WaitGroup
	for _, c := range clusters {
		group.Go(func() { work(c) })
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func describe(p *corev1.Pod) string {
	line := fmt.Sprintf("%s on %s: %s %s %s", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Reason, p.Status.Message)
	for _, s := range p.Status.ContainerStatuses {
		line += fmt.Sprintf(" [%s ready %v, %d restarts, %v]", filepath.Base(s.Image), s.Ready, s.RestartCount, s.State.Waiting)
	}
	return line
}
