package main

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"liqo.io/liqo/test/integration/fixture"
)

// Scale is what Liqo holds at one size.
type Scale struct {
	// What is counted, and how many there are.
	What  string `json:"what"`
	Count int    `json:"count"`
	// Namespaces that are offloaded, to each virtual node.
	Namespaces int `json:"namespaces"`
	// Memory of our processes in MB; virtual kubelets are added up.
	Memory map[string]float64 `json:"memoryMB"`
	// Own is the part that is not the program file's.
	Own map[string]float64 `json:"ownMemoryMB"`
	// Watches open at each API server, all clients together.
	HomeWatches int `json:"homeWatches"`
	AwayWatches int `json:"awayWatches"`
	// Seconds until the last one was in place.
	Seconds float64 `json:"seconds"`
}

// What is scaled, and the process that grows with it.
const (
	namespacesName = "offloaded namespaces"
	nodesName      = "virtual nodes"
	kubeletName    = "virtual-kubelet"
)

// watches counts the open watches at an API server.
func (b *bench) watches(c *fixture.Cluster) int {
	raw, err := c.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(b.w.ctx)
	fixture.Must(b.w, "reading the metrics of "+c.ID, err)
	open := 0.0
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `verb="WATCH"`) {
			value, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			open += value
		}
	}
	return int(open)
}

func (b *bench) size(what string, count int, took time.Duration) {
	b.settle(15)
	s := Scale{What: what, Count: count, Namespaces: b.offloaded, Memory: map[string]float64{}, Own: map[string]float64{}, HomeWatches: b.watches(b.env.Rome), AwayWatches: b.watches(b.env.Milan), Seconds: round(took.Seconds())}
	for field, into := range map[string]map[string]float64{"VmRSS": s.Memory, "RssAnon": s.Own} {
		for name, megabytes := range b.resident(field) {
			if strings.HasPrefix(name, kubeletName+" ") {
				name = kubeletName
			}
			into[name] = round(into[name] + megabytes)
		}
	}
	b.report.Scales = append(b.report.Scales, s)
	b.save()
	b.w.Logf("%d %s: %d watches at home, %d away; memory %v", count, what, s.HomeWatches, s.AwayWatches, s.Memory)
}

// namespaces offloads more and more empty namespaces.
func (b *bench) namespaces(counts []int) {
	b.renew(b.kubelets[mainNode])
	b.size(namespacesName, 1, 0)
	made := 1
	for _, count := range counts {
		if count <= made {
			continue
		}
		names := make([]string, count-made)
		for i := range names {
			names[i] = fixture.Unique("empty")
		}
		b.parallel(len(names), func(i int) { b.createNamespace(b.env.Rome, names[i]) })
		start := time.Now()
		b.parallel(len(names), func(i int) { b.offload(names[i]) })
		made, b.offloaded = count, count
		b.size(namespacesName, count, time.Since(start))
	}
}

// spareMegabytes of memory are left to others: a machine without any kills what it likes.
const spareMegabytes = 1500

// virtualNodes adds virtual nodes of the same provider, each with its process.
func (b *bench) virtualNodes(counts []int) {
	b.size(nodesName, 1, 0)
	made := 1
	b.raise(slices.Max(append(counts, made)))
	for _, count := range counts {
		start := time.Now()
		for ; made < count; made++ {
			if free := available(); free < spareMegabytes {
				b.w.Fatalf("with %d virtual nodes there are only %.0f MB of memory left", made, free)
			}
			b.addNode(fmt.Sprintf("%s-%d", mainNode, made))
		}
		if count > 1 {
			b.size(nodesName, count, time.Since(start))
		}
	}
}
