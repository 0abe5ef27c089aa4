package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asked makes a line of requests.
func asked(cluster, agent, verb, resource string, count float64) Request {
	return Request{Cluster: cluster, Agent: agent, Verb: verb, Resource: resource, Count: count}
}

// madeUp is a small report in which every scenario has something.
func madeUp() *Report {
	r := &Report{Rounds: 3}
	for _, factor := range []float64{1, 1, 3} {
		r.Bursts = append(r.Bursts, Burst{System: liqo, Pods: 1000, Ready: 20, Gone: 18, DeleteWrites: 6,
			CreateRows: []Request{
				asked("rome", kubeletNode, "patch", "pods/status", factor),
				asked("rome", "kube-scheduler", "create", "events", 1),
				asked("rome", kubeletNode, "create", "events", 0.004),
				asked("rome", kubeletHome, "patch", "pods", 0.5),
				asked("milan", kubeletAway, "create", shadowPods, 1),
				asked("milan", kubeletAway, "get", shadowPods, 0.02),
				asked("milan", managerHome, "create", "pods", 1),
				asked("milan", managerHome, "update", shadowPods+"/status", 2),
				asked("milan", kubeletAway, "watch", "pods", 1),
				asked("milan", kubeletAway, "get", "/version", 0.05),
				{Cluster: "milan", Agent: kubeletAway, Verb: "patch", Resource: "secrets", Try: true, Count: 1},
			},
			DeleteRows: []Request{
				asked("rome", kubeletNode, "patch", "pods/status", 1),
				asked("rome", kubeletNode, "delete", "pods", 1),
				asked("rome", "generic-garbage-collector", "delete", "pods", 1),
				asked("milan", kubeletAway, "delete", shadowPods, 1),
				asked("milan", "generic-garbage-collector", "delete", "pods", 1),
				asked("milan", "kwok", "delete", "pods", 2),
			}})
	}
	r.Bursts = append(r.Bursts,
		Burst{System: liqo, Pods: 2000, Ready: 50, Gone: 40},
		Burst{System: liqo, Pods: 1000, Ready: 90, Gone: -1, DeleteWrites: -1}) // not finished
	operation := func(away float64, rows ...Request) Operation {
		return Operation{Rate: 100, AwayWrites: away, Requests: rows}
	}
	r.Objects = []Objects{
		{Kind: "service", Count: 1, System: liqo, Operations: map[string]Operation{"create": operation(9)}},
		{Kind: "service", Count: 1000, System: liqo, Operations: map[string]Operation{
			"create": operation(1, asked("milan", kubeletAway, "create", "services", 1), asked("rome", "bench", "create", "services", 1), asked("milan", kubeletAway, "list", "services", 0.001)),
			"update": operation(1), "delete": operation(1)}},
		{Kind: "secret", Count: 1000, System: liqo, Operations: map[string]Operation{"create": operation(1.012, asked("milan", managerHome, "update", "configmaps", 0.012))}},
	}
	r.Endpoints = []Endpoints{{Endpoints: 1000, AwayWrites: 22, Requests: []Request{asked("milan", managerHome, "create", "endpointslices", 10)}}}
	r.Restarts = []Restart{{Pods: 500, Rows: []Request{asked("milan", kubeletAway, "list", shadowPods, 1), asked("rome", kubeletNode, "update", "leases.coordination.k8s.io", 2)}}}
	r.Idle = &Idle{Seconds: 30, PerMinute: []Request{asked("rome", kubeletNode, "update", "leases.coordination.k8s.io", 6), asked("milan", kubeletAway, "get", "/version", 6),
		asked("milan", kubeletAway, "create", "selfsubjectaccessreviews.authorization.k8s.io", 2),
		asked("milan", kubeletAway, "watch", "pods", 2)}}
	r.Scales = []Scale{{What: namespacesName, Count: 1, Namespaces: 1, Own: map[string]float64{kubeletName: 10}, HomeWatches: 100, AwayWatches: 50},
		{What: namespacesName, Count: 101, Namespaces: 101, Own: map[string]float64{kubeletName: 20}, HomeWatches: 500, AwayWatches: 250},
		{What: nodesName, Count: 50, Namespaces: 101, Memory: map[string]float64{kubeletName: 2000}}}
	r.Scenarios = []Scenario{{Name: "burst", Seconds: 90, CPU: map[string]float64{kubeletName: 3.25, clustersName: 70.4}, Peak: map[string]float64{kubeletName: 67.2}, Unfinished: true}}
	r.judge()
	return r
}

func TestCallsAreComparedWithTheirBudgets(t *testing.T) {
	got := map[string]string{}
	for _, c := range madeUp().Calls {
		key := c.Event + ": " + c.What + " at " + c.Where
		if _, twice := got[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		got[key] = c.Liqo + " of " + c.Budget + " " + c.Met
	}
	const created, deleted, idle = "a pod created, of 1000 pods at once: ", "a pod deleted: ", "idle, per minute and virtual node: "
	want := map[string]string{
		created + "writes of the pod's status at home":           "1.00 of ≤ 2 yes",
		created + "Events at home":                               "0.00 of ≤ 1 yes",
		created + "other writes at home":                         "0.50 of 0 no",
		created + "ShadowPod created at provider":                "1.00 of ≤ 1 yes",
		created + "Pod created at provider":                      "1.00 of ≤ 1 yes",
		created + "writes of the ShadowPod's status at provider": "2.00 of ≤ 1 no",
		created + "Events at provider":                           "0.00 of 0 yes",
		created + "other writes at provider":                     "0.00 of 0 yes",
		created + "get and list at both":                         "0.02 of 0 no",
		deleted + "writes of the pod's status (its end) at home": "1.00 of ≤ 1 yes",
		deleted + "other writes (the final delete) at home":      "1.00 of ≤ 1 yes",
		deleted + "ShadowPod deleted at provider":                "1.00 of ≤ 1 yes",
		deleted + "Pod deleted, by Liqo or for its ShadowPod's sake (the node's own calls left out) at provider": "1.00 of ≤ 1 yes",
		deleted + "other writes at provider":            "0.00 of 0 yes",
		"a Service with 1000 endpoints: writes at home": "0.00 of 0 yes",
		"a Service with 1000 endpoints: writes: 1 Service, 10 ShadowEndpointSlice and 10 EndpointSlice at provider":                  "22.00 of ≤ 21 no",
		"a Service created, of 1000 at once: writes at home":                                                                         "0.00 of 0 yes",
		"a Service created, of 1000 at once: writes at provider":                                                                     "1.00 of ≤ 1 yes",
		"a Service changed, of 1000 at once: writes at home":                                                                         "0.00 of 0 yes",
		"a Service changed, of 1000 at once: writes at provider":                                                                     "1.00 of ≤ 1 yes",
		"a ConfigMap created, of 1000 at once: writes at home":                                                                       "– of 0 ",
		"a ConfigMap created, of 1000 at once: writes at provider":                                                                   "– of ≤ 1 ",
		"a ConfigMap changed, of 1000 at once: writes at home":                                                                       "– of 0 ",
		"a ConfigMap changed, of 1000 at once: writes at provider":                                                                   "– of ≤ 1 ",
		"a Secret created, of 1000 at once: writes at home":                                                                          "0.00 of 0 yes",
		"a Secret created, of 1000 at once: writes at provider":                                                                      "1.01 of ≤ 1 no",
		"a Secret changed, of 1000 at once: writes at home":                                                                          "– of 0 ",
		"a Secret changed, of 1000 at once: writes at provider":                                                                      "– of ≤ 1 ",
		"the virtual kubelet restarted with 500 pods: writes at home":                                                                "0.00 of 0 yes",
		"the virtual kubelet restarted with 500 pods: writes at provider":                                                            "0.00 of 0 yes",
		"an empty offloaded namespace: watches at home":                                                                              "4.00 of ≤ 4 yes",
		"an empty offloaded namespace: MB of the virtual kubelet's memory at home":                                                   "0.10 of ≤ 0.1 yes",
		idle + "writes of the lease at home":                                                                                         "6.00 of ≤ 6 yes",
		idle + "other requests (watches that begin anew left out) at home":                                                           "0.00 of 0 yes",
		idle + "readiness probes at provider":                                                                                        "8.00 of ≤ 6 no",
		idle + "other requests, also the controller manager's own probes of its peer (watches that begin anew left out) at provider": "0.00 of 0 yes",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func TestTheReportShowsWhatWasMeasured(t *testing.T) {
	page := madeUp().markdown()
	for sentence, want := range map[string]string{
		"requests per Service":                "\nRequests per Service created, of 1000 at once, in the last round: the writes of everybody, and all requests of Liqo (0.01 and more):\n\n| count | verb | resource | by | at |\n| --- | --- | --- | --- | --- |\n| 1.00 | create | services | virtual kubelet, to its peer | milan |\n| 1.00 | create | services | bench | rome |\n\n",
		"requests per Secret":                 "| 0.01 | update | configmaps | liqo controller manager | milan |",
		"requests for a Service's endpoints":  "| 10.00 | create | endpointslices | liqo controller manager | milan |",
		"a budget beside its figure":          "| a pod deleted | home | other writes (the final delete) | ≤ 1 | **1.00** | yes |",
		"dry runs as such":                    "| 1.00 | patch (dry run) | secrets |",
		"each scenario's processes":           "| burst (unfinished) | 1.5 | 3.2 | 67 | – | – | – | – | – | – | 70 |",
		"how many rounds there were":          "| 1000 | liqo | 4 | 20.0 | – | 18.0 |",
		"sizes that had one round":            "| 2000 | liqo | 1 | 50.0 |",
		"the namespaces beside virtual nodes": "| virtual nodes | 50 | 101 | 2000 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: the report lacks %q:\n%s", sentence, want, page)
		}
	}
	if strings.Contains(page, "Requests per ConfigMap") {
		t.Errorf("the report tells of ConfigMaps, which were not measured:\n%s", page)
	}
	if strings.Contains(page, "-1") {
		t.Errorf("what was not measured is shown as a figure:\n%s", page)
	}
}

func TestAReportOfNothingIsWritten(t *testing.T) {
	r := &Report{}
	r.judge()
	folder := t.TempDir()
	if err := r.write(folder); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Calls {
		if c.Met != "" || c.Liqo != unknown {
			t.Errorf("a run that measured nothing says %v", c)
		}
	}
}
