package e2e

import (
	"context"
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// spread is enough for a part of an application to start: they wait for one another.
const spread = 3 * time.Minute

// An application of six parts works when it is spread over two providers and the consumer, with both profiles: each part is found by its
// Service's name from each cluster, and the front end through Ingresses at home and at a provider. With the stricter profile, which the
// clusters are peered with, all other examples are tried, too.
func TestApplication(t *testing.T) {
	naples := the.naples
	the.recordFailure(t, naples)
	t.Cleanup(func() {
		the.liqoctl(t, 2*time.Minute, "uninstall", "--purge", "--skip-confirm", "--kubeconfig", naples.kubeconfig).succeeds(t)
	})
	t.Cleanup(func() {
		if the.profile != compatible {
			the.runs(t, compatible)
		}
	})
	the.runs(t, hardened, naples)
	the.peered(t)
	the.liqoctl(t, 3*time.Minute, the.romeAnd(naples, the.peerArgs()...)...).succeeds(t)
	t.Cleanup(func() {
		if err := the.settle(context.WithoutCancel(t.Context()), the.leaving); err != nil {
			t.Error(err)
		}
		the.liqoctl(t, 3*time.Minute, the.romeAnd(naples, "unpeer", "--skip-confirm")...).succeeds(t)
	})
	t.Run(hardened, func(t *testing.T) {
		the.recordFailure(t, naples)
		spreadBookshop(t, naples, "bookshop-"+hardened)
		hardenedExamples(t)
	})
	the.runs(t, compatible, naples)
	the.peered(t)
	the.recordFailure(t, naples)
	const namespace = "bookshop"
	twin, authority := spreadBookshop(t, naples, namespace)
	t.Run("through its Ingresses", func(t *testing.T) { the.recordFailure(t, naples); throughIngresses(t, namespace, twin, authority) })
	the.kubectl(t, the.rome, patience, "delete", "-n", namespace, "pod", "db-0").succeeds(t)
	the.rome.readyWithin(t, spread, namespace, "db", 1)
	// The clients are only ready while what the database kept in its volume is still there.
	the.rome.readyWithin(t, spread, namespace, "client", 3)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named(namespace, "data-db-0")}
	the.rome.deletes(t, claim)
}

// spreadBookshop runs the application in a namespace that is offloaded to both providers, until each of its parts works.
func spreadBookshop(t *testing.T, naples *side, namespace string) (twin string, authority *x509.CertPool) {
	t.Cleanup(func() {
		if !kept(t) {
			the.leaving = append(the.leaving, absence{naples, twinOf(namespace)})
		}
	})
	twin = the.offloaded(t, namespace)
	the.recordFailure(t, naples)
	naples.sees(t, namespaceOf(twin), "the twin namespace")
	authority = the.certifies(t, namespace, "bookshop", bookshop)
	the.rome.applies(t, namespace, "bookshop.yaml")

	the.rome.readyWithin(t, spread, namespace, "db", 1)
	the.rome.readyWithin(t, spread, namespace, "api", 1)
	the.rome.readyWithin(t, spread, namespace, "front", 2)
	clients := the.rome.readyWithin(t, spread, namespace, "client", 3)
	nodes := map[string]bool{}
	for i := range clients {
		nodes[clients[i].Spec.NodeName] = true
	}
	if len(nodes) != 3 || !nodes[provider] || !nodes[secondProvider] {
		t.Errorf("the clients run on %v, want one in each cluster", nodes)
	}
	// Its container starts again after up to 160 s when it asked too early.
	eventually(t, 6*time.Minute, "the Job to complete", func(ctx context.Context) (bool, string) {
		job := &batchv1.Job{}
		if err := the.rome.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "order"}, job); err != nil {
			return false, err.Error()
		}
		return job.Status.Succeeded == 1, fmt.Sprint(job.Status)
	})
	for _, c := range []*side{the.milan, naples} {
		c.sees(t, &networkingv1.Ingress{ObjectMeta: named(twin, "front")}, "the Ingress")
	}
	return twin, authority
}
