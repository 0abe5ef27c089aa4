package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/lab/image"
)

const (
	listerImage = "lab.liqo.io/lister:1"
	listerName  = "lister"
)

// reachableAPI are the arguments by which virtual kubelets tell pods how to reach the API server of a cluster: the address
// on the lab's switch, which its certificate is for and which pods of all clusters have a way to.
func (c *side) reachableAPI(t *testing.T) string {
	t.Helper()
	api, err := url.Parse(c.config.Host)
	if err != nil {
		t.Fatalf("the address of the API server of %s: %v", c.name, err)
	}
	return fmt.Sprintf("virtualKubelet.extra.args={--home-api-server-host=%s,--home-api-server-port=%s}", api.Hostname(), api.Port())
}

// loadLister compiles the client-go program of these tests and brings it to the nodes.
func loadLister(t *testing.T) {
	t.Helper()
	binary := filepath.Join(the.folder, listerName)
	compile := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, "./test/e2e/lister")
	compile.Dir, compile.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("compiling the lister: %v: %s", err, out)
	}
	archive, err := image.Image{
		Reference: listerImage, Entrypoint: []string{"/" + listerName}, Files: []image.File{{Path: "/" + listerName, Source: binary}},
	}.Archive(the.folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := the.lab.Load(t.Context(), []string{archive}); err != nil {
		t.Fatalf("loading the lister: %v", err)
	}
}

// TestServiceAccounts is acceptance point 3: a client-go program in an offloaded pod lists its own ConfigMaps at home.
func TestServiceAccounts(t *testing.T) {
	the.peered(t)
	loadLister(t)
	const namespace = "identity"
	twin := the.offloaded(t, namespace)
	the.rome.creates(t,
		&corev1.ConfigMap{ObjectMeta: named(namespace, "at-home")},
		&rbacv1.Role{ObjectMeta: named(namespace, listerName),
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}},
		&corev1.ServiceAccount{ObjectMeta: named(namespace, listerName)},
		&rbacv1.RoleBinding{ObjectMeta: named(namespace, listerName),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: listerName},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: listerName}}},
	)
	// What only the provider has must not be seen.
	the.milan.creates(t, &corev1.ConfigMap{ObjectMeta: named(twin, "at-the-provider")})
	spec := script("")
	spec.ServiceAccountName = listerName
	spec.Containers[0].Image, spec.Containers[0].Command = listerImage, nil
	the.rome.creates(t, podOf(namespace, listerName, spec))
	the.rome.ready(t, namespace, listerName, 1)
	var said string
	eventually(t, time.Minute, "the pod to see its own ConfigMaps", func(context.Context) (bool, string) {
		said = the.kubectl(t, the.rome, soon, "logs", "-n", namespace, listerName, "--tail=1").stdout
		return strings.Contains(said, "sees"), said
	})
	if want := "system:serviceaccount:" + namespace + ":" + listerName + " sees at-home,"; !strings.HasPrefix(said, want) || strings.Contains(said, "at-the-provider") {
		t.Errorf("it says %q, want %q and nothing of the provider's", said, want)
	}

	tokens := &corev1.Secret{ObjectMeta: named(twin, reflection.TokenSecretName(listerName))}
	the.milan.reads(t, tokens)
	the.rome.deletes(t, podOf(namespace, listerName, spec))
	the.milan.misses(t, tokens, "the tokens of a pod that is gone")

	t.Run("a pod that turned it off has no token", func(t *testing.T) {
		the.recordFailure(t)
		off := podOf(namespace, "off", spec)
		off.Annotations = map[string]string{offloadingv1beta1.APIServerSupportAnnotation: "disabled"}
		the.rome.creates(t, off)
		the.rome.ready(t, namespace, "off", 1)
		if ok, seen := the.milan.gone(&corev1.Secret{ObjectMeta: named(twin, reflection.TokenSecretName("off"))})(t.Context()); !ok {
			t.Errorf("it has tokens: %s", seen)
		}
	})
}
