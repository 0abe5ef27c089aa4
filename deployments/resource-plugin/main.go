// Command resource-plugin is a sample of a resource plugin: it grants each ResourceSlice what a file says of its consumer, and half of what is
// free to consumers that the file does not name. Take it as a beginning of your own.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	resourcesv1 "liqo.io/liqo/pkg/apis/resources/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "resource-plugin:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("resource-plugin", flag.ContinueOnError)
	address := flags.String("listen", "", "where to listen: unix:///path, or host:port, which needs --tls")
	folder := flags.String("tls", "", "folder with tls.crt, tls.key, and the CA of the controller manager's certificate in ca.crt")
	quotas := flags.String("quotas", "", "YAML file with what the slices of consumers are granted, by cluster ID; it is read for each question")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	p := &plugin{quotas: *quotas}
	if _, err := p.read(); err != nil {
		return err
	}
	listener, options, err := listen(ctx, *address, *folder)
	if err != nil {
		return err
	}
	server, healthy := grpc.NewServer(options...), health.NewServer()
	healthy.SetServingStatus(resourcesv1.Grants_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(server, healthy)
	resourcesv1.RegisterGrantsServer(server, p)
	go func() {
		<-ctx.Done()
		healthy.Shutdown()
		server.Stop()
	}()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// listen opens a socket, or a port on which only those are heard that show a certificate.
func listen(ctx context.Context, address, folder string) (net.Listener, []grpc.ServerOption, error) {
	network, at := "tcp", address
	if path, is := strings.CutPrefix(address, "unix://"); is {
		network, at = "unix", path
	}
	var options []grpc.ServerOption
	if network == "tcp" {
		config, err := mutual(folder)
		if err != nil {
			return nil, nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, at)
	if err != nil {
		return nil, nil, fmt.Errorf("listening (--listen): %w", err)
	}
	return listener, options, nil
}

// mutual is how both sides show certificates.
func mutual(folder string) (*tls.Config, error) {
	if folder == "" {
		return nil, errors.New("name a folder with certificates (--tls), or listen on a socket (--listen unix:///path)")
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate (--tls): %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the CA (--tls): %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("reading the CA (--tls): %s has no certificate", filepath.Join(folder, "ca.crt"))
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert}, nil
}

// plugin decides by a file.
type plugin struct {
	resourcesv1.UnimplementedGrantsServer
	quotas string
}

// read is the file: quantities by resource, by cluster ID.
func (p *plugin) read() (map[string]map[string]string, error) {
	raw, err := os.ReadFile(p.quotas)
	if err != nil {
		return nil, fmt.Errorf("reading the quotas (--quotas): %w", err)
	}
	var quotas map[string]map[string]string
	if err := yaml.UnmarshalStrict(raw, &quotas); err != nil {
		return nil, fmt.Errorf("reading the quotas (--quotas): %w", err)
	}
	return quotas, nil
}

// Decide implements resourcesv1.GrantsServer. After an error what was granted before stays.
func (p *plugin) Decide(_ context.Context, in *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
	quotas, err := p.read()
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	out := &resourcesv1.DecideResponse{ClusterId: in.GetClusterId(), Namespace: in.GetNamespace(), Name: in.GetName()}
	if quota, named := quotas[in.GetClusterId()]; named {
		out.Grant, out.Reason = quota, "the quota of this consumer"
		return out, nil
	}
	out.Reason = "half of what is free"
	if out.Grant, err = half(in.GetFree()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return out, nil
}

// half of each quantity, in whole units, or thousandths of a core.
func half(free map[string]string) (map[string]string, error) {
	halves := make(map[string]string, len(free))
	for name, text := range free {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("reading what is free of %s: %w", name, err)
		}
		if name == "cpu" {
			quantity.SetMilli(quantity.MilliValue() / 2)
		} else {
			quantity.Set(quantity.Value() / 2)
		}
		halves[name] = quantity.String()
	}
	return halves, nil
}
