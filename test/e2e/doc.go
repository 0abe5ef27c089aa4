// Package e2e runs Liqo on real clusters, as a user would: liqoctl installs it on rome, milan and naples, rome peers with
// milan, namespaces are offloaded, and kubectl works on pods that run in the other cluster.
//
// Contract:
//   - The lab is named "e2e": rome and milan with two real nodes each, so that one can be lost and packets have to find the node of the gateway,
//     naples with one. It needs root. The second node of rome is reserved for pods that are bound to it.
//   - rome and milan have equal ranges, and between the clusters only addresses of nodes are routed: Liqo connects their networks. milan has
//     flannel, and kube-proxy that works with iptables; the Nodes of naples do not say where their pods are.
//   - With LIQO_E2E_WORLD=flat the same tests run in lab "e2e-flat", where the networks of pods are routed to each other and Liqo's network module
//     is off; tests whose names begin with TestNetwork are left out.
//   - liqoctl and kubectl are run as programs; their exit codes and output are part of what is tested. client-go only observes.
//   - Tests use the installed and peered pair alone, shared or last (see sharing_test.go). They leave it as they found it: each can be
//     run alone with -run. Those that share it run side by side, each in namespaces of its own, and cannot break what others use.
//   - A test deletes its namespaces at its end; that they are gone is proved later (settled), before something is broken and at the end.
//   - Every wait has a deadline, and fails with what it waited for and what it saw last. Nothing sleeps.
//   - When a test fails, logs, Events, pods and our objects of both clusters are written to a folder that is printed.
//   - The lab is taken down at the end, on SIGINT and SIGTERM, and two minutes before -timeout.
//
// Environment:
//
//	LIQO_E2E=off       leaves the tests out
//	LIQO_E2E_WORLD=…   where: routed (default) or flat
//	LIQO_E2E_LAB=name  another name of the lab, for runs side by side
//	LIQO_E2E_KEEP=1    keeps the lab, so that the next run starts in seconds
//	LIQO_E2E_LOGS=dir  where to write what is known about a failure (default: a temporary folder)
//	LIQO_E2E_CHAOS_ROUNDS=n  how many rounds TestNetworkChaos has; without it, it is left out
//	LIQO_E2E_CHAOS_SEED=n    repeats a run of it
//	LIQO_E2E_BURST=n   how many pods start at once in TestNetworkBurst
package e2e
