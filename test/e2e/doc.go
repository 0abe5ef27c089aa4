// Package e2e runs Liqo on two real clusters, as a user would: liqoctl installs it on rome and milan, rome peers with
// milan, namespaces are offloaded, and kubectl works on pods that run in the other cluster.
//
// Contract:
//   - The lab is named "e2e": rome with one real node, milan with two, so that one of them can be lost. It needs root.
//   - The networks of pods are routed to each other, and Liqo's network module is off. With LIQO_E2E_WORLD=routed the same tests run in lab
//     "e2e-routed": the same clusters, which have equal ranges, and between which only addresses of nodes are routed, so that Liqo
//     connects their networks.
//   - Tests whose names begin with TestNetwork run in a lab of their own, "e2e-net", and only with -run TestNetwork: rome and milan with two
//     nodes each and equal ranges, between which only addresses of nodes are routed, so that Liqo connects their networks. milan has flannel, and
//     kube-proxy that works with iptables; naples has one node, and Nodes that do not say where their pods are.
//   - liqoctl and kubectl are run as programs; their exit codes and output are part of what is tested. client-go only observes.
//   - Tests share the installed and peered pair, ask for it with suite.peered, and leave it as they found it: each can be
//     run alone with -run.
//   - A test deletes its namespaces at its end; that they are gone is proved later (settled), before something is broken and at the end.
//   - Every wait has a deadline, and fails with what it waited for and what it saw last. Nothing sleeps.
//   - When a test fails, logs, Events, pods and our objects of both clusters are written to a folder that is printed.
//
// Environment:
//
//	LIQO_E2E=off       leaves the tests out
//	LIQO_E2E_WORLD=…   where: flat (default) or routed
//	LIQO_E2E_KEEP=1    keeps the lab, so that the next run starts in seconds
//	LIQO_E2E_LOGS=dir  where to write what is known about a failure (default: a temporary folder)
//	LIQO_E2E_CHAOS_ROUNDS=n  how many rounds TestNetworkChaos has; without it, it is left out
//	LIQO_E2E_CHAOS_SEED=n    repeats a run of it
//	LIQO_E2E_BURST=n   how many pods start at once in TestNetworkBurst
package e2e
