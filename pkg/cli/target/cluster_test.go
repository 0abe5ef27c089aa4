package target_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/target"
	configv1alpha1 "liqo.io/liqo/pkg/config/v1alpha1"
)

// refuses compares an error's code with what is wanted, and looks for words in it.
func refuses(t *testing.T, err error, code failure.Code, words string) {
	t.Helper()
	if failure.CodeOf(err) != code || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
		t.Errorf("code %d and %q wanted, got %d: %v", code, words, failure.CodeOf(err), err)
	}
}

func named(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// What exists is changed, what is as wanted is left alone; only what is made gets the stamp, which overrules nothing.
func TestEnsure(t *testing.T) {
	for sentence, tc := range map[string]struct {
		live   *corev1.ConfigMap
		want   target.Change
		labels map[string]string
		writes []string
	}{
		"what is not there is made, with the stamp": {nil, target.Created, map[string]string{"own": "kept", "team": "a"}, []string{"create ConfigMap shop/a (cluster rome)"}},
		"what is other than wanted is changed": {&corev1.ConfigMap{Data: map[string]string{"a": "old"}}, target.Updated,
			map[string]string{"own": "kept"}, []string{"update ConfigMap shop/a (cluster rome)"}},
		"what is as wanted is left alone": {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"own": "kept"}}, Data: map[string]string{"a": "new"}},
			target.Unchanged, map[string]string{"own": "kept"}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			var objects []client.Object
			if tc.live != nil {
				tc.live.Namespace, tc.live.Name = "shop", "a"
				objects = append(objects, tc.live)
			}
			c := fixture.New(t, fixture.Options{Name: "rome", Objects: objects})
			c.Stamp = target.Stamp{Labels: map[string]string{"team": "a", "own": "overruled"}, Annotations: map[string]string{"note": "x"}}
			object := named("a")
			got, err := c.Ensure(t.Context(), object, func() error {
				object.Data = map[string]string{"a": "new"}
				metav1.SetMetaDataLabel(&object.ObjectMeta, "own", "kept")
				return nil
			})
			if err != nil || got != tc.want {
				t.Fatalf("%s, %v", got, err)
			}
			if diff := cmp.Diff(tc.writes, c.Writes()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.labels, object.Labels); diff != "" {
				t.Error(diff)
			}
			if _, stamped := object.Annotations["note"]; stamped != (tc.want == target.Created) {
				t.Errorf("annotations %v", object.Annotations)
			}
		})
	}
}

// Somebody who writes in between is given way to, but not for ever.
func TestEnsureStartsAgainOnConflicts(t *testing.T) {
	for sentence, tc := range map[string]struct {
		conflicts int
		want      target.Change
		fails     bool
	}{
		"a conflict":             {1, target.Updated, false},
		"conflicts without end":  {1000, "", true},
		"no conflict whatsoever": {0, target.Updated, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := fixture.New(t, fixture.Options{Name: "rome", Objects: []client.Object{named("a")}})
			left, tries := tc.conflicts, 0
			c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
				Update: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.UpdateOption) error {
					if tries++; left > 0 {
						left--
						return apierrors.NewConflict(corev1.Resource("configmaps"), o.GetName(), errors.New("changed meanwhile"))
					}
					return w.Update(ctx, o, options...)
				},
			})
			object := named("a")
			got, err := c.Ensure(t.Context(), object, func() error { object.Data = map[string]string{"a": "b"}; return nil })
			if got != tc.want || (err != nil) != tc.fails || tries > 5 {
				t.Errorf("%q after %d tries: %v", got, tries, err)
			}
		})
	}
}

// Only the object that was read is removed: one that took its name stays.
func TestRemove(t *testing.T) {
	live := named("a")
	live.UID = "new"
	for sentence, tc := range map[string]struct {
		uid   types.UID
		name  string
		stays bool
	}{
		"the very object": {"new", "a", false}, "one that took its name": {"old", "a", true}, "one that was not read": {"", "a", false}, "one that is gone": {"new", "b", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := fixture.New(t, fixture.Options{Name: "rome", Objects: []client.Object{live.DeepCopy()}})
			// The store in memory knows no preconditions; an API server answers as this does.
			c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
				Delete: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					if p := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions; p != nil && p.UID != nil && o.GetName() == live.Name && *p.UID != live.UID {
						return apierrors.NewConflict(corev1.Resource("configmaps"), o.GetName(), errors.New("the UID differs"))
					}
					return w.Delete(ctx, o, options...)
				},
			})
			object := named(tc.name)
			object.UID = tc.uid
			if err := c.Remove(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			if found, err := c.Get(t.Context(), named("a")); err != nil || found != tc.stays {
				t.Errorf("it is there: %v, %v", found, err)
			}
		})
	}
}

func TestInstalled(t *testing.T) {
	without := func(drop func(client.Object) bool) []client.Object {
		var kept []client.Object
		for _, o := range fixture.Installed("rome-1", "v1.2.3", false) {
			if !drop(o) {
				kept = append(kept, o)
			}
		}
		return kept
	}
	isDeployment := func(o client.Object) bool { _, ok := o.(*appsv1.Deployment); return ok }
	isConfig := func(o client.Object) bool {
		config, ok := o.(*corev1.ConfigMap)
		return ok && config.Data["config.yaml"] != ""
	}
	broken := without(func(client.Object) bool { return false })
	for _, o := range broken {
		if isConfig(o) {
			o.(*corev1.ConfigMap).Data["config.yaml"] = "ipam: ["
		}
	}
	for sentence, tc := range map[string]struct {
		objects               []client.Object
		id, version, podCIDR  string
		deployed, none, fails bool
	}{
		"all of it":              {without(func(client.Object) bool { return false }), "rome-1", "v1.2.3", "10.10.0.0/16", true, false, false},
		"nothing":                {nil, "", "", "", false, true, false},
		"half of it, being made": {without(isDeployment), "rome-1", "", "", false, false, false},
		"without configuration":  {without(isConfig), "rome-1", "v1.2.3", "", true, false, false},
		"a broken configuration": {broken, "", "", "", false, false, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := fixture.New(t, fixture.Options{Name: "rome", Objects: tc.objects})
			got, err := c.Installed(t.Context())
			if (err != nil) != tc.fails || (got == nil) != (tc.none || tc.fails) {
				t.Fatalf("%+v, %v", got, err)
			}
			if got == nil {
				return
			}
			cidr := ""
			if len(got.Config.IPAM.PodCIDRs) > 0 {
				cidr = got.Config.IPAM.PodCIDRs[0]
			}
			if got.ClusterID != tc.id || got.Version != tc.version || cidr != tc.podCIDR || (got.Deployment != nil) != tc.deployed {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Commands see what the controller manager runs with: what is left open is as the profile decides, and what a newer release has more is no error.
func TestTheConfigurationIsReadAsTheControllerManagerReadsIt(t *testing.T) {
	for profile, want := range map[string]configv1alpha1.Isolation{"compatible": configv1alpha1.IsolationOpen, "hardened": configv1alpha1.IsolationOffloaded} {
		objects := fixture.Installed("rome", "v1.2.3", true)
		for _, o := range objects {
			if config, ok := o.(*corev1.ConfigMap); ok && config.Data["config.yaml"] != "" {
				config.Data["config.yaml"] = "profile: " + profile + "\nnetworking: {enabled: true, notYetInvented: 1}"
			}
		}
		got, err := fixture.New(t, fixture.Options{Name: "rome", Objects: objects}).Installed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if network := got.Config.Networking; network.Isolation != want || network.GenevePort != configv1alpha1.DefaultOverlayPort || !got.Networking() {
			t.Errorf("%s: %+v", profile, network)
		}
	}
}

// A pair is two clusters that answer, have Liqo of the same minor version, and differ in ID.
func TestRequirePair(t *testing.T) {
	cluster := func(name, uid, id, version string) fixture.Options {
		return fixture.Options{Name: name, UID: uid, ClusterID: id, Version: version}
	}
	for sentence, tc := range map[string]struct {
		consumer, provider fixture.Options
		anyVersion         bool
		code               failure.Code
		says               string
	}{
		"two that fit":                     {cluster("a", "1", "rome", ""), cluster("b", "2", "milan", ""), false, failure.OK, ""},
		"the same one by two names":        {cluster("a", "1", "rome", ""), cluster("b", "1", "rome", ""), false, failure.Precondition, "are the same one (a and b)"},
		"one without Liqo":                 {cluster("a", "1", "rome", ""), cluster("b", "2", "", ""), false, failure.Precondition, "Liqo is not installed in namespace liqo (cluster b)"},
		"one without Liqo, the first":      {cluster("a", "1", "", ""), cluster("b", "2", "milan", ""), false, failure.Precondition, "liqoctl install --context a"},
		"two of the same ID":               {cluster("a", "1", "rome", ""), cluster("b", "2", "rome", ""), false, failure.Precondition, "both clusters have the cluster ID rome"},
		"two versions":                     {cluster("a", "1", "rome", "v1.2.0"), cluster("b", "2", "milan", "v1.3.0"), false, failure.Precondition, "rome (v1.2.0) and milan (v1.3.0) cannot peer"},
		"two versions, at the user's risk": {cluster("a", "1", "rome", "v1.2.0"), cluster("b", "2", "milan", "v1.3.0"), true, failure.OK, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			consumer, provider := fixture.New(t, tc.consumer), fixture.New(t, tc.provider)
			pair, err := target.RequirePair(t.Context(), consumer.Cluster, provider.Cluster, tc.anyVersion)
			refuses(t, err, tc.code, tc.says)
			if tc.code == failure.OK && (pair.ConsumerNamespace() != "liqo-tenant-milan" || pair.ProviderNamespace() != "liqo-tenant-rome" || consumer.Name != "rome") {
				t.Errorf("%+v", pair)
			}
			if len(consumer.Writes())+len(provider.Writes()) > 0 {
				t.Errorf("it wrote %v %v", consumer.Writes(), provider.Writes())
			}
		})
	}
}

// Every missing right is named, as kubectl auth can-i takes it.
func TestRequireRights(t *testing.T) {
	rights := append(target.Rights("", "secrets", "liqo", "get", "create"), target.Rights("apps", "deployments", "", "list")...)
	for sentence, tc := range map[string]struct {
		missing []string
		code    failure.Code
		says    string
	}{
		"all":  {nil, failure.OK, ""},
		"one":  {[]string{"create secrets in namespace liqo"}, failure.Precondition, "you are not allowed to: create secrets in namespace liqo (cluster rome)"},
		"some": {[]string{"list deployments.apps", "get secrets in namespace liqo"}, failure.Precondition, "get secrets in namespace liqo; list deployments.apps (cluster rome)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := fixture.New(t, fixture.Options{Name: "rome", Missing: tc.missing})
			refuses(t, c.RequireRights(t.Context(), rights), tc.code, tc.says)
		})
	}
}

func TestAClusterThatDoesNotAnswer(t *testing.T) {
	c := fixture.New(t, fixture.Options{Name: "rome"})
	if version, err := c.Reach(t.Context()); err != nil || version != "v1.36.3" {
		t.Errorf("%q, %v", version, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Reach(ctx); err == nil || !strings.Contains(err.Error(), "kubectl version --context rome") {
		t.Errorf("no way out in %v", err)
	}
	if err := c.RequireRights(ctx, target.Rights("", "secrets", "liqo", "get")); err == nil {
		t.Error("rights of a cluster that does not answer are taken for granted")
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443"}}]
contexts: [{name: rome, context: {cluster: c}}, {name: milan, context: {cluster: c}}, {name: lost, context: {cluster: nowhere}}]
current-context: rome
`

// The cluster is the one that the flags name; what is wrong with them is said with the flag that the user knows.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	for sentence, tc := range map[string]struct {
		remote                bool
		path, context, server string
		code                  failure.Code
		want                  string
		flags                 string
	}{
		"the current context":              {false, path, "", "", failure.OK, "rome", "--kubeconfig " + path},
		"a context by name":                {true, path, "milan", "", failure.OK, "milan", "--kubeconfig " + path + " --context milan"},
		"an address alone":                 {false, "", "", "https://10.0.0.9:6443", failure.OK, "10.0.0.9:6443", ""},
		"nothing":                          {false, "", "", "", failure.Usage, "no cluster is configured", ""},
		"a context that is not there":      {true, path, "paris", "", failure.Usage, "choose one with --remote-context: lost, milan, rome", ""},
		"a context without its cluster":    {false, path, "lost", "", failure.Usage, "no cluster \"nowhere\": choose one with --cluster: c", ""},
		"a kubeconfig that is not there":   {false, path + "x", "", "", failure.Usage, "with --kubeconfig", ""},
		"a kubeconfig that is not, remote": {true, path + "x", "", "", failure.Usage, "with --remote-kubeconfig", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			flags := target.NewFlags(tc.remote)
			*flags.Config.KubeConfig, *flags.Config.Context, *flags.Config.APIServer = tc.path, tc.context, tc.server
			if got, want := flags.Given(), tc.path+tc.context+tc.server != ""; got != want {
				t.Errorf("something was given: %v", got)
			}
			cluster, err := flags.Open(target.Stamp{Labels: map[string]string{"a": "b"}})
			if tc.code != failure.OK {
				refuses(t, err, tc.code, tc.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if cluster.Name != tc.want || cluster.Flags != tc.flags || cluster.Stamp.Labels["a"] != "b" || cluster.LiqoNamespace != "liqo" {
				t.Errorf("%q %q %+v %q", cluster.Name, cluster.Flags, cluster.Stamp, cluster.LiqoNamespace)
			}
			wanted := "liqoctl info"
			if tc.flags != "" {
				wanted += " " + tc.flags
			}
			if got := cluster.Command("liqoctl info"); got != wanted {
				t.Errorf("it suggests %q", got)
			}
		})
	}
	if _, err := target.FromKubeconfig(path+"x", ""); err == nil {
		t.Error("a kubeconfig that is not there was read")
	}
	if c, err := target.FromKubeconfig(path, "milan"); err != nil || c.Name != "milan" {
		t.Errorf("%+v, %v", c, err)
	}
}
