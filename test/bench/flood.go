package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

const (
	// hoarded is how many ConfigMaps of hoardedSize characters the consumer has in its namespace: each list of them is a large answer.
	hoarded     = 1000
	hoardedSize = 2000
	// floodWorkers is how many requests the consumer makes at once, each on a connection of its own.
	floodWorkers = 200
	// lowest is the priority of the flooding process: it stands for one of another machine.
	lowest = 19
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
		answered := b.since(from).sum(func(k kind) bool { return k.Cluster == b.env.Milan.ID && k.Agent == kubeletAway })
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

// probe asks the provider's API server what kubectl asks it, 20 times a second: pods of a namespace, one object, a change.
func (b *bench) probe(d time.Duration) Quantiles {
	var seconds []float64
	milan := b.env.Milan.Client
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fixture.Unique("settings")}}
	fixture.Must(b.w, "creating a ConfigMap", milan.Create(b.w.ctx, settings))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for n, start := 0, time.Now(); time.Since(start) < d; n++ {
		began := time.Now()
		var err error
		switch n % 3 {
		case 0:
			err = milan.List(b.w.ctx, &corev1.PodList{}, client.InNamespace(metav1.NamespaceSystem))
		case 1:
			err = milan.Get(b.w.ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
		case 2:
			settings.Data = map[string]string{"n": strconv.Itoa(n)}
			err = milan.Update(b.w.ctx, settings)
		}
		fixture.Must(b.w, "asking the provider's API server", err)
		seconds = append(seconds, time.Since(began).Seconds())
		select {
		case <-tick.C:
		case <-b.w.ctx.Done():
			b.w.Fatalf("told to stop")
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
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowest); err != nil {
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
