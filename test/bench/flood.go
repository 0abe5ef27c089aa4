package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/step"
)

const (
	// hoarded is how many ConfigMaps of hoardedSize characters the consumer has in its namespace: each list of them is a large answer.
	hoarded     = 1000
	hoardedSize = 2000
	// floodWorkers is how many requests the consumer makes at once, each on a connection of its own.
	floodWorkers = 200
	// flooder is what the consumer's wild process calls itself.
	flooder = "flood"
)

// Flood is what the provider's own requests take while one consumer asks as much as it can. Milliseconds.
type Flood struct {
	Idle   Quantiles `json:"idle"`
	During Quantiles `json:"during"`
	// PerSecond is how many requests of the consumer were answered meanwhile.
	PerSecond float64 `json:"perSecond"`
}

// flood measures the provider's own requests, before and while the consumer floods its API server.
func (b *bench) flood(d time.Duration) {
	namespace := fixture.Unique("flood")
	b.createNamespace(b.env.Rome, namespace)
	b.offload(namespace)
	b.offloaded++
	tenant := b.env.Milan.Slice(b.w, b.env.Rome.ID, mainNode)
	reflected := map[string]string{offloadingv1beta1.OriginLabel: b.env.Rome.ID, offloadingv1beta1.DestinationLabel: b.env.Milan.ID}
	for i := range hoarded {
		fixture.Must(b.w, "creating a ConfigMap", tenant.Create(b.w.ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("hoarded-%d", i), Labels: reflected}, Data: map[string]string{"a": strings.Repeat("x", hoardedSize)},
		}))
	}
	for range b.options.rounds {
		b.settle(15)
		result := Flood{Idle: b.probe(d)}
		from := b.mark()
		flooding := b.env.Start(b.w, "flood", b.self("flood"), nil, "flood", b.env.Milan.Kubeconfig, namespace, tenant.Config.Impersonate.UserName, strings.Join(tenant.Config.Impersonate.Groups, ","))
		b.w.pause(calm) // until its connections are there and the queues are full
		result.During = b.probe(d)
		_ = flooding.Stop()
		b.w.pause(2 * half) // the end of the log
		answered := b.since(from).sum(func(k kind) bool { return k.Cluster == b.env.Milan.ID && k.Agent == flooder })
		result.PerSecond = round(float64(answered) / (calm + d).Seconds())
		b.w.Logf("flood: %.1f → %.1f ms at p99, %.1f → %.1f ms at p50, of %d and %d requests; the consumer's: %.0f a second",
			result.Idle.P99, result.During.P99, result.Idle.P50, result.During.P50, result.Idle.N, result.During.N, result.PerSecond)
		b.report.Floods = append(b.report.Floods, result)
		b.save()
	}
	for i := range hoarded {
		fixture.Must(b.w, "deleting a ConfigMap", tenant.Delete(b.w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("hoarded-%d", i)}}))
	}
}

// probe has the provider's administrator work with kubectl, one command after the other: pods of a namespace, one object, a change.
func (b *bench) probe(d time.Duration) Quantiles {
	programs, err := binary.Ensure(b.w.ctx, []string{binary.Kubectl}, step.Silent{})
	fixture.Must(b.w, "finding kubectl", err)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fixture.Unique("settings")}}
	milan := b.env.Milan.Client
	fixture.Must(b.w, "creating a ConfigMap", milan.Create(b.w.ctx, settings))
	commands := []func(n int) []string{
		func(int) []string { return []string{"get", "pods", "--namespace", metav1.NamespaceSystem} },
		func(int) []string { return []string{"get", "namespace", metav1.NamespaceDefault} },
		func(n int) []string {
			return []string{"patch", "configmap", settings.Name, "--namespace", settings.Namespace, "--type", "merge", "--patch", fmt.Sprintf(`{"data":{"n":"%d"}}`, n)}
		},
	}
	var seconds []float64
	for n, start := 0, time.Now(); time.Since(start) < d; n++ {
		kubectl := exec.CommandContext(b.w.ctx, programs[binary.Kubectl], append([]string{"--kubeconfig", b.env.Milan.Kubeconfig}, commands[n%len(commands)](n)...)...)
		kubectl.Env = append(os.Environ(), "HOME="+b.env.Dir) // where it keeps what kinds there are
		began := time.Now()
		said, err := kubectl.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said)
		}
		fixture.Must(b.w, "kubectl at the provider", err)
		if n >= len(commands) { // the first ones ask what kinds there are
			seconds = append(seconds, time.Since(began).Seconds())
		}
	}
	fixture.Must(b.w, "deleting a ConfigMap", milan.Delete(b.w.ctx, settings))
	return quantiles(seconds)
}

// self makes this very program one that the fixture starts, by another name.
func (b *bench) self(name string) string {
	program, err := os.Executable()
	fixture.Must(b.w, "finding this program", err)
	// The fixture takes a program that is there for one that it has built.
	err = os.Symlink(program, filepath.Join(b.env.Dir, "bin", name))
	if !errors.Is(err, os.ErrExist) {
		fixture.Must(b.w, "placing this program", err)
	}
	return name
}

// runFlood is one more face of the program: a virtual kubelet of rome's that has gone wild. It lists, creates and deletes as fast
// as it gets answers, until it is told to stop.
func runFlood(ctx context.Context, milan, namespace, user, groups string) error {
	if err := standAside(); err != nil {
		return fmt.Errorf("lowering the priority: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", milan)
	if err != nil {
		return fmt.Errorf("reading a kubeconfig: %w", err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: strings.Split(groups, ",")}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return fmt.Errorf("reading a kubeconfig: %w", err)
	}
	var all sync.WaitGroup
	for worker := range floodWorkers {
		all.Go(func() {
			wild := &http.Client{Transport: &http.Transport{TLSClientConfig: tls.Clone()}}
			for i := 0; ctx.Err() == nil; i++ {
				ask(ctx, wild, config, namespace, fmt.Sprintf("wild-%d", worker), i)
			}
		})
	}
	all.Wait()
	return nil
}

// standAside leaves the processors to all others: the flooding process stands for one of another machine. The policy is a thread's
// own, so each thread gets it; those that come later inherit it.
func standAside() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("listing the threads: %w", err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return fmt.Errorf("reading a thread's number: %w", err)
		}
		if err := unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
			return fmt.Errorf("setting the policy of thread %d: %w", id, err)
		}
	}
	return nil
}

// ask makes one request of the flood; whatever the answer is, the next one follows.
func ask(ctx context.Context, wild *http.Client, config *rest.Config, namespace, name string, i int) {
	url := config.Host + "/api/v1/namespaces/" + namespace + "/configmaps"
	method, body := http.MethodGet, ""
	switch i % 4 {
	case 1:
		method, body = http.MethodPost, fmt.Sprintf(`{"metadata":{"name":%q},"data":{"a":%q}}`, name, strings.Repeat("x", hoardedSize))
	case 3:
		method, url = http.MethodDelete, url+"/"+name
	}
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", flooder+"/v1")
	request.Header.Set("Accept-Encoding", "gzip") // the answers are not even unpacked
	request.Header.Set("Impersonate-User", config.Impersonate.UserName)
	for _, group := range config.Impersonate.Groups {
		request.Header.Add("Impersonate-Group", group)
	}
	answer, err := wild.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
}
