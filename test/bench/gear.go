package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"liqo.io/liqo/test/bench/floor"
)

// runFloor is the program's other face: the floor's virtual kubelet.
func runFloor(ctx context.Context, home, away string) error {
	clients := make([]kubernetes.Interface, 2)
	for i, path := range []string{home, away} {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return fmt.Errorf("reading a kubeconfig: %w", err)
		}
		config.QPS, config.UserAgent = -1, "floor/v1"
		if clients[i], err = kubernetes.NewForConfig(config); err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
	}
	return floor.Run(ctx, clients[0], clients[1])
}

// startFloor runs this very program as the floor's virtual kubelet.
func (b *bench) startFloor() {
	b.self(floorName)
	b.runFloor()
}

func (b *bench) runFloor() {
	b.own[floorName] = b.env.Start(b.w, floorName, floorName, nil, "floor", b.env.Rome.Kubeconfig, b.env.Milan.Kubeconfig)
}

// profiled is compiled into our binaries for a run with profiles: they then answer on a socket in their temporary folder.
const profiled = `package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
)

func init() {
	if listener, err := net.Listen("unix", fmt.Sprintf("%s/pprof-%d", os.TempDir(), os.Getpid())); err == nil {
		go func() { _ = http.Serve(listener, nil) }()
	}
}
`

// overlay has our binaries built with profiled, without touching the checkout.
func overlay(dir string) (flag string, err error) {
	source := filepath.Join(dir, "profiled.go")
	if err := os.WriteFile(source, []byte(profiled), 0o600); err != nil {
		return "", fmt.Errorf("writing the profiler: %w", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	replace := map[string]string{}
	for _, command := range []string{"virtual-kubelet", "liqo-controller-manager"} {
		replace[filepath.Join(here, "cmd", command, "profiled.go")] = source
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encoding the overlay: %w", err)
	}
	path := filepath.Join(dir, "overlay.json")
	return "-overlay=" + path, os.WriteFile(path, data, 0o600)
}

// profile fetches a profile of each of our processes in the background, such as "profile?seconds=10" or "heap".
func (b *bench) profile(label, what string) {
	if !b.options.profile {
		return
	}
	for name, p := range b.own {
		if name == "floor" {
			continue
		}
		path := filepath.Join(b.options.folder, strings.ReplaceAll(label+"-"+name, " ", "-")+"-"+strings.SplitN(what, "?", 2)[0]+".pprof")
		socket := filepath.Join(b.env.Dir, fmt.Sprintf("pprof-%d", p.PID()))
		go func() {
			if err := fetch(b.w.ctx, socket, what, path); err != nil {
				b.w.Logf("no profile of %s: %v", name, err)
			}
		}()
	}
}

func fetch(ctx context.Context, socket, what, path string) error {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://pprof/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	_ = file.Close()
	return err
}
