package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"liqo.io/liqo/test/integration/fixture"
)

// auditPolicy records who asked what, without bodies. Watches are recorded at their start and at their end.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  # Of what is asked beside resources only Liqo's share is counted.
  - level: None
    nonResourceURLs: ["*"]
    users: [kubernetes-admin, "system:anonymous", "system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
  - level: None
    nonResourceURLs: ["*"]
    userGroups: ["system:serviceaccounts:kube-system"]
  # The heartbeat of the simulated nodes.
  - level: None
    users: [kubernetes-admin]
    resources:
      - {group: coordination.k8s.io, resources: [leases]}
      - {group: "", resources: [nodes, nodes/status]}
  - level: Metadata
`

// auditFlags make the log complete about a second after an answer, without making the answer wait for it.
// It is one file for the whole run: marks are positions in it.
var auditFlags = map[string]string{"audit-log-mode": "batch", "audit-log-batch-max-wait": "500ms", "audit-log-batch-max-size": "400", "audit-log-maxsize": "20000"}

// kind is what requests are counted by.
type kind struct {
	// Cluster that was asked, and the Agent who asked.
	Cluster, Agent string
	// Verb and Resource with its group and sub-resource; a path that is no resource begins with a slash.
	Verb, Resource string
	// Conflict says that the API server refused the write for its old version.
	Conflict bool
	// Try says that the write was a dry run.
	Try bool
}

// tally counts requests.
type tally map[kind]int

// entry is the part of an audit event that is counted.
type entry struct {
	Stage     string `json:"stage"`
	URI       string `json:"requestURI"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

const (
	// quietBytes is how much the audit logs may grow in half a second while nothing is going on.
	quietBytes = 3000
	half       = 500 * time.Millisecond
)

var writing = []string{"create", "update", "patch", "delete", "deletecollection"}

// mark is a position in both audit logs.
type mark map[string]int64

func (b *bench) mark() mark {
	m := mark{}
	for _, c := range b.clusters() {
		if info, err := os.Stat(b.env.AuditLog(c.ID)); err == nil {
			m[c.ID] = info.Size()
		}
	}
	return m
}

// since counts the requests that were answered after the mark.
func (b *bench) since(m mark) tally {
	t := tally{}
	for _, c := range b.clusters() {
		file, err := os.Open(b.env.AuditLog(c.ID))
		if err != nil {
			b.w.Fatalf("reading the audit log of %s: %v", c.ID, err)
		}
		if _, err := file.Seek(m[c.ID], io.SeekStart); err != nil {
			b.w.Fatalf("reading the audit log of %s: %v", c.ID, err)
		}
		lines := bufio.NewReaderSize(file, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break // the end, or a line that is still being written
			}
			t.add(c.ID, bytes.TrimSpace(line))
		}
		_ = file.Close()
	}
	return t
}

func (t tally) add(cluster string, line []byte) {
	var e entry
	if json.Unmarshal(line, &e) != nil || e.ResponseStatus == nil {
		return
	}
	if e.ObjectRef == nil {
		path, _, _ := strings.Cut(e.URI, "?")
		if k := (kind{Cluster: cluster, Agent: agent(&e), Verb: e.Verb, Resource: path}); k.ofLiqo() && strings.HasPrefix(path, "/") {
			t[k]++
		}
		return
	}
	// A watch counts when it starts, everything else when it is answered.
	if (e.Verb == "watch") != (e.Stage == "ResponseStarted") {
		return
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.APIGroup != "" && !slices.Contains([]string{"apps", "events.k8s.io", "discovery.k8s.io"}, e.ObjectRef.APIGroup) {
		resource += "." + e.ObjectRef.APIGroup
	}
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	t[kind{Cluster: cluster, Agent: agent(&e), Verb: e.Verb, Resource: resource, Conflict: e.ResponseStatus.Code == 409, Try: strings.Contains(e.URI, "dryRun=All")}]++
}

// ours are the agents that Liqo consists of.
const (
	managerHome = "liqo controller manager"
	managerAway = "liqo controller manager, to its peer"
	kubeletNode = "virtual kubelet, as the node"
	kubeletHome = "virtual kubelet, for reflection"
	kubeletAway = "virtual kubelet, to its peer"
)

// agent names who asked, so that a reader knows which program it is.
func agent(e *entry) string {
	user := e.User.Username
	switch {
	case strings.HasPrefix(user, "system:serviceaccount:liqo:"):
		return managerHome
	case strings.HasPrefix(user, "system:serviceaccount:liqo-tenant-"):
		return kubeletHome
	case strings.HasPrefix(user, "system:node:"):
		return kubeletNode
	case strings.HasPrefix(user, "liqo.io:tenant:"):
		return managerAway
	case strings.HasPrefix(user, "liqo.io:slice:"):
		return kubeletAway
	case strings.HasPrefix(user, "system:serviceaccount:kube-system:"):
		return strings.TrimPrefix(user, "system:serviceaccount:kube-system:")
	case user == "kubernetes-admin":
		name, _, _ := strings.Cut(e.UserAgent, "/")
		return name
	default:
		return strings.TrimPrefix(user, "system:")
	}
}

func (k kind) ofLiqo() bool {
	return slices.Contains([]string{managerHome, managerAway, kubeletNode, kubeletHome, kubeletAway}, k.Agent)
}

// write tells whether the request changes something that is kept. Leases and the state of nodes are the clusters' own
// heartbeat, whatever runs; reviews and tokens are answered, not stored.
func (k kind) write() bool {
	if k.Try || !slices.Contains(writing, k.Verb) {
		return false
	}
	name, _, _ := strings.Cut(k.Resource, ".")
	if slices.Contains([]string{"leases", "nodes", "nodes/status"}, name) || strings.HasSuffix(name, "reviews") {
		return false
	}
	// To mint a token persists nothing.
	return k.Resource != "serviceaccounts/token"
}

// sum counts what is asked for.
func (t tally) sum(of func(kind) bool) int {
	n := 0
	for k, count := range t {
		if of(k) {
			n += count
		}
	}
	return n
}

// rows lists the tally divided by n, the most frequent first.
func (t tally) rows(n int, of func(kind) bool) []Request {
	merged := map[Request]int{}
	for k, count := range t {
		if of(k) {
			merged[Request{Cluster: k.Cluster, Agent: k.Agent, Verb: k.Verb, Resource: k.Resource, Conflict: k.Conflict, Try: k.Try}] += count
		}
	}
	var rows []Request
	for r, count := range merged {
		r.Count = round(float64(count) / float64(max(1, n)))
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Request) int {
		switch {
		case a.Count > b.Count:
			return -1
		case a.Count < b.Count:
			return 1
		default:
			return strings.Compare(a.Cluster+a.Agent+a.Verb+a.Resource, b.Cluster+b.Agent+b.Verb+b.Resource)
		}
	})
	return rows
}

// settle waits until nothing that counts was written for two seconds, at most for the given number of seconds.
func (b *bench) settle(atMost int) { b.still(4, atMost) }

// still waits until the audit logs did not grow for a number of half seconds. The last requests are in them after one.
func (b *bench) still(halves, atMost int) {
	last, still := b.sizes(), 0
	for range atMost * 2 {
		b.w.pause(half)
		now := b.sizes()
		if now <= last+quietBytes {
			still++
		} else {
			still = 0
		}
		last = now
		if still >= halves {
			return
		}
	}
}

func (b *bench) sizes() int64 {
	var total int64
	for _, size := range b.mark() {
		total += size
	}
	return total
}

func (b *bench) clusters() []*fixture.Cluster { return []*fixture.Cluster{b.env.Rome, b.env.Milan} }
