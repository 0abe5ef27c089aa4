package e2e

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/lab/image"
)

const (
	// listerImage is what the example names.
	listerImage = "registry.example/lister:1"
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

// buildProgram makes the image of a program of these tests.
func (s *suite) buildProgram(ctx context.Context, name, reference string) (archive string, err error) {
	program, err := s.compile(ctx, "./test/e2e/"+name)
	if err != nil {
		return "", err
	}
	return image.Image{
		Reference: reference, Entrypoint: []string{"/" + name}, Files: []image.File{{Path: "/" + name, Source: program}},
	}.Archive(s.folder)
}

// TestServiceAccounts is acceptance point 3: a client-go program in an offloaded pod lists its own ConfigMaps at home.
func TestServiceAccounts(t *testing.T) {
	the.shared(t)
	// The example binds its Role to an account of this namespace.
	const namespace = "shop"
	twin := the.offloaded(t, namespace)
	// It takes full packets to bring it.
	large := map[string]string{"filler": strings.Repeat("x", 100<<10)}
	the.rome.creates(t, &corev1.ConfigMap{ObjectMeta: named(namespace, "at-home"), Data: large})
	// What only the provider has must not be seen.
	the.milan.creates(t, &corev1.ConfigMap{ObjectMeta: named(twin, "at-the-provider")})
	the.rome.applies(t, namespace, "serviceaccounts/lister.yaml")
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
	the.rome.deletes(t, &corev1.Pod{ObjectMeta: named(namespace, listerName)})
	the.milan.misses(t, tokens, "the tokens of a pod that is gone")

	t.Run("a pod that turned it off has no token", func(t *testing.T) {
		the.recordFailure(t)
		the.rome.applies(t, namespace, "serviceaccounts/disabled.yaml")
		the.rome.ready(t, namespace, "hermit", 1)
		if ok, seen := the.milan.gone(&corev1.Secret{ObjectMeta: named(twin, reflection.TokenSecretName("hermit"))})(t.Context()); !ok {
			t.Errorf("it has tokens: %s", seen)
		}
	})
}
