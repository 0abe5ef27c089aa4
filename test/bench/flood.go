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
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// watchesEach is how many watches each of them opens, where it floods with watches.
	watchesEach = 20
	// large is how many ConfigMaps of nearly the size that an API server takes there are besides: less than a consumer may store.
	large     = 100
	largeSize = 900 << 10
	// watchedName is the ConfigMap that is watched.
	watchedName = "watched"
	// flooder is what the consumer's wild process calls itself.
	flooder = "flood"
)

// The ways of a consumer to flood an API server.
const (
	// byRequests lists a thousand objects, creates and deletes.
	byRequests = "lists, creations, deletions"
	// byWatches has many watches of an object that nobody writes open.
	byWatches = "open watches"
	// byFanOut has as many watches of a small object, and writes that.
	byFanOut = "writes that are watched"
	// bySize reads the largest ConfigMaps. It is the last way, because these are in the way of the others.
	bySize = "reads of large objects"
)

var floods = []string{byRequests, byWatches, byFanOut, bySize}

// Flood is what the provider's own requests take while one consumer asks as much as it can. Milliseconds.
type Flood struct {
	// By is the consumer's way, one of floods.
	By     string    `json:"by"`
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
	fill := func(name string, count, size int) {
		for i := range count {
			fixture.Must(b.w, "creating a ConfigMap", tenant.Create(b.w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, i),
				Labels: map[string]string{offloadingv1beta1.OriginLabel: b.env.Rome.ID, offloadingv1beta1.DestinationLabel: b.env.Milan.ID},
			}, Data: map[string]string{"a": strings.Repeat("x", size)}}))
		}
	}
	fill("hoarded", hoarded, hoardedSize)
	fill(watchedName, 1, 10)
	watched := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: watchedName + "-0"}}
	for _, by := range floods {
		if by == bySize {
			fill("large", large, largeSize)
		}
		b.settle(15)
		fixture.Must(b.w, "reading the ConfigMap that is watched", b.env.Milan.Client.Get(b.w.ctx, client.ObjectKeyFromObject(watched), watched))
		before := watched.ResourceVersion
		result := Flood{By: by, Idle: b.probe(d)}
		from := b.mark()
		flooding := b.env.Start(b.w, "flood", b.self("flood"), nil, "flood", by, b.env.Milan.Kubeconfig, namespace,
			tenant.Config.Impersonate.UserName, strings.Join(tenant.Config.Impersonate.Groups, ","))
		b.w.pause(calm) // until its connections are there and the queues are full
		result.During = b.probe(d)
		_ = flooding.Stop()
		b.w.pause(2 * half) // the end of the log
		answered := b.since(from).sum(func(k kind) bool { return k.Cluster == b.env.Milan.ID && k.Agent == flooder })
		result.PerSecond = round(float64(answered) / (calm + d).Seconds())
		b.w.Logf("flood of %s: %.1f → %.1f ms at p99, %.1f → %.1f ms at p50, of %d and %d requests; the consumer's: %.0f a second",
			by, result.Idle.P99, result.During.P99, result.Idle.P50, result.During.P50, result.Idle.N, result.During.N, result.PerSecond)
		fixture.Must(b.w, "reading the ConfigMap that is watched", b.env.Milan.Client.Get(b.w.ctx, client.ObjectKeyFromObject(watched), watched))
		if (watched.ResourceVersion != before) != (by == byFanOut) {
			fixture.Must(b.w, "flooding by "+by, fmt.Errorf("the ConfigMap that is watched had version %s, and has %s", before, watched.ResourceVersion))
		}
		b.report.Floods = append(b.report.Floods, result)
		b.save()
	}
	fixture.Must(b.w, "deleting the ConfigMaps", b.env.Milan.Client.DeleteAllOf(b.w.ctx, &corev1.ConfigMap{}, client.InNamespace(namespace),
		client.MatchingLabels{offloadingv1beta1.OriginLabel: b.env.Rome.ID}))
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

// runFlood is one more face of the program: a virtual kubelet of rome's that has gone wild in one of the ways. It asks as fast as it gets
// answers, until it is told to stop.
func runFlood(ctx context.Context, by, milan, namespace, user, groups string) error {
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
		a := &asker{config: config, url: config.Host + "/api/v1/namespaces/" + namespace + "/configmaps",
			client: &http.Client{Transport: &http.Transport{TLSClientConfig: tls.Clone(), ForceAttemptHTTP2: true}}}
		if by == byWatches || by == byFanOut {
			for range watchesEach {
				all.Go(func() {
					for ctx.Err() == nil {
						a.ask(ctx, http.MethodGet, "?watch=1&fieldSelector=metadata.name%3D"+watchedName+"-0", "")
					}
				})
			}
		}
		if by == byWatches {
			continue
		}
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				a.next(ctx, by, worker, i)
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

// asker is one of the consumer's connections.
type asker struct {
	config *rest.Config
	url    string
	client *http.Client
}

// next makes request i of a worker.
func (a *asker) next(ctx context.Context, by string, worker, i int) {
	object := func(name string, size int) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{%q:"rome",%q:"milan"}},"data":{"a":"%d-%d%s"}}`, name, offloadingv1beta1.OriginLabel,
			offloadingv1beta1.DestinationLabel, worker, i, strings.Repeat("x", size))
	}
	name := fmt.Sprintf("wild-%d", worker)
	switch {
	case by == bySize:
		a.ask(ctx, http.MethodGet, fmt.Sprintf("/large-%d", (worker+i)%large), "")
	case by == byFanOut:
		a.ask(ctx, http.MethodPut, "/"+watchedName+"-0", object(watchedName+"-0", 10))
	case i%2 == 0:
		a.ask(ctx, http.MethodGet, "", "")
	case i%4 == 1:
		a.ask(ctx, http.MethodPost, "", object(name, hoardedSize))
	default:
		a.ask(ctx, http.MethodDelete, "/"+name, "")
	}
}

// ask makes one request; whatever the answer is, the next one follows.
func (a *asker) ask(ctx context.Context, method, rest, body string) {
	request, err := http.NewRequestWithContext(ctx, method, a.url+rest, strings.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", flooder+"/v1")
	request.Header.Set("Accept-Encoding", "gzip") // the answers are not even unpacked
	request.Header.Set("Impersonate-User", a.config.Impersonate.UserName)
	for _, group := range a.config.Impersonate.Groups {
		request.Header.Add("Impersonate-Group", group)
	}
	answer, err := a.client.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
}
