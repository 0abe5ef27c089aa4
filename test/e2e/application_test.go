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

// TestApplication shows that an application of six parts works when it is spread over two providers and the consumer: each part is found by its
// Service's name from each cluster, and the front end through Ingresses at home and at a provider.
func TestApplication(t *testing.T) {
	the.shared(t)
	naples := the.naples
	the.peersSecond(t)
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

// TestApplicationHardened shows that it works with the stricter profile, too, and so do all other examples, as far as their pages say.
func TestApplicationHardened(t *testing.T) {
	the.claimed(t)
	t.Cleanup(func() { the.runs(t, compatible) })
	the.runs(t, hardened)
	the.peered(t)
	hardenedExamples(t)
	the.peersSecond(t)
	spreadBookshop(t, the.naples, "bookshop-"+hardened)
}

// peersSecond has rome use the second provider, too, until the test ends. Namespaces of other tests select the first one.
func (s *suite) peersSecond(t *testing.T) {
	t.Helper()
	s.recordFailure(t, s.naples)
	t.Cleanup(func() {
		if err := s.settle(context.WithoutCancel(t.Context()), s.leftBy(t)); err != nil {
			t.Error(err)
		}
		s.runsLiqoctl(t, 3*time.Minute, s.romeAnd(s.naples, "unpeer", "--delete-namespaces", "--skip-confirm")...).succeeds(t)
	})
	s.runsLiqoctl(t, 3*time.Minute, s.romeAnd(s.naples, s.peerArgs()...)...).succeeds(t)
}

// spreadBookshop runs the application in a namespace that is offloaded to both providers, until each of its parts works.
func spreadBookshop(t *testing.T, naples *side, namespace string) (twin string, authority *x509.CertPool) {
	t.Cleanup(func() {
		if !kept(t) {
			the.leaves(absence{naples, twinOf(namespace)})
		}
	})
	twin = the.offloadedTo(t, namespace)
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
