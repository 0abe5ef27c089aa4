package upstream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/utils/clock"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/host"
	"liqo.io/liqo/test/lab/image"
	"liqo.io/liqo/test/lab/pki"
	"liqo.io/liqo/test/lab/step"
)

// registry is where Kubernetes keeps the images of its tests.
const registry = "registry.k8s.io/e2e-test-images/"

// tools are what the tests run within the images beside busybox's commands.
var tools = []host.Program{
	{Name: "curl", Package: "curl"},
	{Name: "dig", Package: "bind9-dnsutils"},
	{Name: "getent", Package: "libc-bin"},
	{Name: "hostname", Package: "hostname"},
	{Name: "nc", Package: "netcat-openbsd"},
}

const (
	// Both end at once when they are asked to, as a shell that is process 1 does not by itself.
	pause = "#!/bin/busybox sh\ntrap 'exit 0' INT TERM\nsleep 2147483647 &\nwait\n"
	nginx = "#!/bin/busybox sh\ntrap 'exit 0' INT QUIT TERM\nhttpd -f -p 80 -h /usr/share/nginx/html &\nwait\n"
	// Busybox' shell drops variables whose names are not those of shell variables, such as data-1; bash leaves them alone.
	sh = `#!/usr/local/bin/bash
while IFS= read -rd '' variable; do
	case ${variable%%=*} in *[!A-Za-z0-9_]*) exec -a /bin/sh /usr/local/bin/bash "$@" ;; esac
done </proc/self/environ
exec -a /bin/sh /bin/busybox "$@"
`
	// The user, his group and the supplementary one are what the tests of groups look for.
	passwd = "root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
	group  = "root:x:0:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\nnogroup:x:65534:\n"
	index  = "<title>Welcome to nginx!</title>\n"
)

// Archives makes the images of the tests as docker-archives in a folder, and returns their paths.
func Archives(ctx context.Context, programs binary.Set, folder string, o step.Observer) ([]string, error) {
	if err := host.This().Install(ctx, o, append(tools, host.Program{Name: "bash", Package: "bash"})...); err != nil {
		return nil, err
	}
	images, err := Images(ctx, programs, folder)
	if err != nil {
		return nil, err
	}
	var archives []string
	for _, i := range images {
		archive, err := i.Archive(folder)
		if err != nil {
			return nil, err
		}
		archives = append(archives, archive)
	}
	return archives, nil
}

// Images are what stands for the images of the tests. Agnhost and nonewprivs are compiled from Kubernetes' own sources; nginx is
// busybox' httpd with nginx' document root, pause is a shell that waits; the base of all is Debian's static busybox with its bash
// instead of Alpine.
func Images(ctx context.Context, programs binary.Set, folder string) ([]image.Image, error) {
	shell, err := base(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	debian, err := image.Programs(ctx, names...)
	if err != nil {
		return nil, err
	}
	certificate, err := localhost(filepath.Join(folder, "localhost"))
	if err != nil {
		return nil, err
	}
	with := func(more ...image.File) []image.File { return append(slices.Clone(shell), more...) }
	// Busybox' shell prefers its own commands to those of the same names that were added.
	debian = append(slices.DeleteFunc(with(debian...), func(f image.File) bool { return f.Path == "/bin/sh" }),
		image.File{Path: "/bin/sh", Link: "/usr/local/bin/bash"})
	agnhost := append(slices.Clone(debian), certificate...)
	agnhost = append(agnhost, image.File{Path: "/agnhost", Source: programs[binary.Agnhost]}, image.File{Path: "/agnhost-2", Link: "agnhost"},
		image.File{Path: "/uploads", Dir: true})
	server := with(image.File{Path: "/usr/sbin/nginx", Content: nginx}, image.File{Path: "/usr/share/nginx/html/index.html", Content: index, Mode: 0o644})
	return []image.Image{
		{Reference: registry + "agnhost:2.63.0", Entrypoint: []string{"/agnhost"}, Command: []string{"pause"}, Files: agnhost},
		{Reference: registry + "agnhost:2.55", Entrypoint: []string{"/agnhost"}, Command: []string{"pause"}, Files: agnhost},
		{Reference: registry + "busybox:1.37.0-1", Command: []string{"sh"}, Files: shell},
		{Reference: registry + "glibc-dns-testing:2.0.0", Command: []string{"sh"}, Files: debian},
		{Reference: registry + "nginx:1.15-4", Command: []string{"/usr/sbin/nginx"}, Files: server},
		{Reference: registry + "nginx:1.27-0", Command: []string{"/usr/sbin/nginx"}, Files: server},
		{Reference: registry + "nonroot:1.5", User: "1234", Command: []string{"sh"}, Files: shell},
		{
			Reference: registry + "nonewprivs:1.4", Command: []string{"nnp"},
			Files: with(image.File{Path: "/usr/local/bin/nnp", Source: programs[binary.NoNewPrivs], Mode: 0o4755}),
		},
		{Reference: "registry.k8s.io/pause:3.10.2", Entrypoint: []string{"/pause"}, Files: with(image.File{Path: "/pause", Content: pause})},
	}, nil
}

// base is what all images have: busybox' commands and shell, bash, and users.
func base(ctx context.Context) ([]image.File, error) {
	shell, err := image.Shell(ctx)
	if err != nil {
		return nil, err
	}
	bash, err := image.Programs(ctx, "bash")
	if err != nil {
		return nil, err
	}
	shell = slices.DeleteFunc(shell, func(f image.File) bool { return f.Path == "/bin/sh" })
	return append(append(shell, bash...),
		image.File{Path: "/bin/sh", Content: sh}, image.File{Path: "/bin/bash", Link: "/usr/local/bin/bash"},
		image.File{Path: "/etc/passwd", Content: passwd, Mode: 0o644}, image.File{Path: "/etc/group", Content: group, Mode: 0o644}), nil
}

// localhost is the certificate that agnhost serves TLS with, and its key; kept in a folder so that the image stays the same.
func localhost(folder string) ([]image.File, error) {
	keys, err := pki.New(folder, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	if err := keys.EnsureCA(pki.ClusterCA, "localhost"); err != nil {
		return nil, err
	}
	if err := keys.Ensure(pki.Certificate{Name: "localhost", CommonName: "localhost", DNSNames: []string{"localhost"}}); err != nil {
		return nil, err
	}
	var files []image.File
	for path, source := range map[string]string{"/localhost.crt": keys.Cert("localhost"), "/localhost.key": keys.Key("localhost")} {
		data, err := os.ReadFile(source)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate of localhost: %w", err)
		}
		files = append(files, image.File{Path: path, Content: string(data), Mode: 0o644})
	}
	slices.SortFunc(files, func(a, b image.File) int { return len(a.Content) - len(b.Content) })
	return files, nil
}
