package skew

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// peering is one direction between the clusters.
type peering struct{ consumer, provider *side }

// both directions there are.
func both() []peering { return []peering{{the.rome, the.milan}, {the.milan, the.rome}} }

// TestReleasesWorkTogether is B8 and E3: whichever release the clusters have, they peer, pods cross and their states come back; and when a
// cluster is upgraded, first or second, as a consumer and as a provider, nothing is restarted, made anew or written for that. Networks that are
// connected afterwards restart nothing, either.
func TestReleasesWorkTogether(t *testing.T) {
	for _, sequence := range []struct {
		name        string
		rome, milan string
		// first is whose liqoctl peers rome with milan for a while before the consumer's does.
		first string
		// upgraded clusters, in this order, and those that go back afterwards.
		upgraded, back []string
		// connected says that the networks, of which the recorded release knows nothing, are connected at last.
		connected bool
	}{
		{name: "peered with an older cluster, which is upgraded", rome: recorded, milan: present, first: present, upgraded: []string{"rome"}, connected: true},
		{name: "peered when both were older, upgraded one after the other", rome: recorded, milan: recorded, upgraded: []string{"rome", "milan"},
			back: []string{"milan"}},
	} {
		t.Run(sequence.name, func(t *testing.T) {
			if the.failed {
				t.Skip("an earlier sequence failed, and left what it had")
			}
			t.Cleanup(func() {
				if the.failed = t.Failed(); the.failed {
					the.rome.tell(t)
					the.milan.tell(t)
				}
			})
			initial := map[*side]*Release{the.rome: the.releases[sequence.rome], the.milan: the.releases[sequence.milan]}
			sideBySide(t, func(c *side) { c.installs(t, initial[c]) }, the.rome, the.milan)
			if sequence.first != "" {
				once(t, both()[0], the.releases[sequence.first])
			}
			var applications []*application
			for _, p := range both() {
				p.peers(t, p.consumer.release)
				applications = append(applications, p.deploys(t, "shop-"+p.consumer.name))
			}
			for _, name := range sequence.upgraded {
				renew(t, applications)
				change(t, name, the.releases[present], applications)
			}
			if sequence.connected {
				connect(t, applications)
			}
			renew(t, applications)
			for _, name := range sequence.back {
				unselect(t, name)
				change(t, name, the.releases[recorded], applications)
			}
			for i, a := range applications {
				a.goes(t)
				a.unpeers(t, a.consumer.release, i == len(applications)-1)
			}
			gone(t)
			sideBySide(t, func(c *side) { c.uninstalls(t) }, the.rome, the.milan)
		})
	}
}

// once peers by one release's liqoctl, and ends that by the consumer's own.
func once(t *testing.T, p peering, r *Release) {
	t.Helper()
	p.peers(t, r)
	a := p.deploys(t, "trial")
	p.consumer.info(t)
	p.provider.info(t)
	a.goes(t)
	p.unpeers(t, p.consumer.release, true)
	gone(t)
}

// peers peers the clusters by the liqoctl of a release.
func (p peering) peers(t *testing.T, r *Release) {
	t.Helper()
	args := []string{"peer", "--kubeconfig", p.consumer.kubeconfig, "--remote-kubeconfig", p.provider.kubeconfig, "--timeout", "2m"}
	if r.Name == present {
		// The recorded release has no network module, which the present one has by default: the lab routes the networks to each other.
		args = append(args, "--networking-disabled")
	}
	r.liqoctl(t, args...)
}

// unpeers ends a peering. If it is the last one of the two clusters, their tenant namespaces go, too.
func (p peering) unpeers(t *testing.T, r *Release, last bool) {
	t.Helper()
	r.liqoctl(t, "unpeer", "--kubeconfig", p.consumer.kubeconfig, "--remote-kubeconfig", p.provider.kubeconfig, "--skip-confirm",
		fmt.Sprintf("--delete-namespaces=%v", last))
}

// renews has the consumer renew its certificates, each with a new key, as it does before they expire.
func (p peering) renews(t *testing.T) {
	t.Helper()
	namespace := corev1beta1.TenantNamespacePrefix + p.provider.name
	for _, name := range []string{authv1beta1.ControlPlaneIdentityPrefix + p.provider.name, authv1beta1.ResourceSliceIdentityPrefix + p.provider.name} {
		held, err := fixture.Holding(t.Context(), p.consumer, namespace, name)
		fixture.Must(t, "reading Identity "+name+" of "+p.consumer.name, err)
		// The answer to an earlier renewal would be taken in the place of a new one.
		earlier := &authv1beta1.Renew{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		fixture.Must(t, "deleting the earlier Renew", client.IgnoreNotFound(p.consumer.Delete(t.Context(), earlier)))
		held.Expire(t, p.consumer, filepath.Join(the.lab.Dir(), p.provider.name, "pki"))
		held.Renewed(t, p.consumer)
	}
}

// gone sees that nothing of a peering is left.
func gone(t *testing.T) {
	t.Helper()
	for _, c := range []*side{the.rome, the.milan} {
		fixture.Await(t, patience, "nothing of a peering to be left at "+c.name, func(ctx context.Context) (bool, string) {
			left, err := c.left(ctx, "authentication.liqo.io ", "virtualnodes.offloading.liqo.io ", "namespacemaps.offloading.liqo.io ",
				"quotas.offloading.liqo.io ", "shadowpods.offloading.liqo.io ", "foreignclusters.core.liqo.io ", "liqo-tenant-rome", "liqo-tenant-milan")
			return err == nil && len(left) == 0, fmt.Sprint(left, err)
		})
	}
}

// renew has all certificates renewed, and sees that the applications work with the new ones.
func renew(t *testing.T, applications []*application) {
	t.Helper()
	for _, a := range applications {
		a.renews(t)
	}
	for _, a := range applications {
		a.grows(t)
	}
	the.rome.info(t)
	the.milan.info(t)
}

// change brings a cluster to another release while the applications run.
func change(t *testing.T, name string, to *Release, applications []*application) {
	t.Helper()
	t.Logf("%s is brought to the %s release", name, to.Name)
	own := map[string]map[string]any{}
	for _, c := range []*side{the.rome, the.milan} {
		own[c.name] = c.own(t)
	}
	var before []map[string]*unstructured.Unstructured
	for _, a := range applications {
		before = append(before, a.objects(t))
	}
	for _, c := range []*side{the.rome, the.milan} {
		if c.name == name {
			c.installs(t, to)
		}
	}
	the.rome.info(t)
	the.milan.info(t)
	for i, a := range applications {
		same(t, before[i], a.objects(t))
	}
	for _, c := range []*side{the.rome, the.milan} {
		now := c.own(t)
		for key, spec := range own[c.name] {
			if difference := cmp.Diff(spec, now[key]); difference != "" {
				t.Errorf("%s of %s is not what it was before %s changed (-before +after):\n%s", key, c.name, name, difference)
			}
		}
	}
	for i, a := range applications {
		a.works(t)
		a.grows(t)
		untouched(t, before[i], a.objects(t))
	}
	the.rome.info(t)
	the.milan.info(t)
}

// unselect removes what the recorded release selects its pods of by other labels, as docs/upgrade-and-uninstall.md says of going back to one.
func unselect(t *testing.T, name string) {
	t.Helper()
	for _, c := range []*side{the.rome, the.milan} {
		if c.name == name {
			manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "liqo-controller-manager"}}
			fixture.Must(t, "removing the controller manager's Deployment", c.Delete(t.Context(), manager))
		}
	}
}

// connect connects the networks of both clusters while the applications run, whose pods stay as they are. A cluster that was upgraded from a release
// without the network module keeps it off until it is asked for.
func connect(t *testing.T, applications []*application) {
	t.Helper()
	var before []map[string]*unstructured.Unstructured
	for _, a := range applications {
		before = append(before, a.objects(t))
	}
	sideBySide(t, func(c *side) { c.installs(t, the.releases[present], "--set", "networking.enabled=true") }, the.rome, the.milan)
	the.releases[present].liqoctl(t, "network", "connect", "--kubeconfig", the.rome.kubeconfig, "--remote-kubeconfig", the.milan.kubeconfig,
		"--wait", "--timeout", "3m", "--gw-server-service-type", "NodePort")
	for i, a := range applications {
		a.works(t)
		a.grows(t)
		untouched(t, before[i], a.objects(t))
	}
	the.rome.info(t)
	the.milan.info(t)
}

// ruled are the kinds by which a release says what may be done in a namespace. The objects stay, and say what the new release says.
var ruled = []string{"RoleBinding", "ResourceQuota", "NetworkPolicy"}

// same sees that an application has the objects that it had, unwritten. A pod's status is written by its kubelet now and then.
func same(t *testing.T, before, after map[string]*unstructured.Unstructured) {
	t.Helper()
	for key, was := range before {
		is := after[key]
		if is == nil {
			t.Errorf("%s is gone or was made anew", key)
			continue
		}
		if slices.Contains(ruled, is.GetKind()) || is.GetResourceVersion() == was.GetResourceVersion() {
			continue
		}
		difference := cmp.Diff(content(was), content(is))
		if is.GetKind() != "Pod" || difference != "" {
			t.Errorf("%s was written (-before +after):\n%s", key, difference)
		}
	}
}

// content of an object is what it says, without who wrote that and when, and without a pod's status.
func content(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	if object.GetKind() == "Pod" {
		delete(object.Object, "status")
	}
	return object.Object
}

// untouched sees that the pods which an application had run on.
func untouched(t *testing.T, before, after map[string]*unstructured.Unstructured) {
	t.Helper()
	for key, was := range before {
		if was.GetKind() != "Pod" {
			continue
		}
		is := after[key]
		if is == nil {
			t.Errorf("%s is gone or was made anew", key)
			continue
		}
		statuses, _, _ := unstructured.NestedSlice(is.Object, "status", "containerStatuses")
		if slices.ContainsFunc(statuses, func(status any) bool { return status.(map[string]any)["restartCount"] != int64(0) }) || is.GetDeletionTimestamp() != nil {
			t.Errorf("%s was restarted, or is being deleted: %v", key, statuses)
		}
		if phase, _, _ := unstructured.NestedString(is.Object, "status", "phase"); phase != string(corev1.PodRunning) {
			t.Errorf("%s does not run: %s", key, phase)
		}
	}
}
