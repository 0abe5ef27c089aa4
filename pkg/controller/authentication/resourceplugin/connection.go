package resourceplugin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // has connections ask whether the plugin is serving
	"google.golang.org/grpc/keepalive"

	resourcesv1 "liqo.io/liqo/pkg/apis/resources/v1"
)

const (
	// maxAnswer and maxHeaders bound what is read of an answer, in bytes.
	maxAnswer  = 64 << 10
	maxHeaders = 16 << 10
	// UnixScheme starts the address of a plugin that listens on a socket of this machine.
	UnixScheme = "unix://"
)

// service has connections ask whether the plugin is serving. One that does not answer such questions is taken to be.
var service = fmt.Sprintf(`{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": %q}}`,
	resourcesv1.Grants_ServiceDesc.ServiceName)

// Connect returns a client for a plugin at unix:///path or host:port, which connects when it is asked. The second kind shows its certificate
// and wants to be shown one: folder has tls.crt, tls.key and ca.crt.
func Connect(address, folder string) (resourcesv1.GrantsClient, error) {
	target, security := "dns:///"+address, credentials.TransportCredentials(files(folder))
	if strings.HasPrefix(address, UnixScheme) {
		target, security = address, insecure.NewCredentials()
	}
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(security), grpc.WithDefaultServiceConfig(service), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)), grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: Deadline,
			Backoff: backoff.Config{BaseDelay: leastPause, Multiplier: 2, Jitter: 0.2, MaxDelay: Period / 2}}),
		// Servers end connections that send more of these; the time-out is the one of what a host that is gone does not acknowledge.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 2 * Deadline}))
	if err != nil {
		return nil, fmt.Errorf("preparing the client of the resource plugin: %w", err)
	}
	return resourcesv1.NewGrantsClient(connection), nil
}

// files are credentials in a folder. They are read for each connection, so that they may be renewed at any time.
type files string

var errNotServed = errors.New("nothing is served with these credentials")

// ClientHandshake implements credentials.TransportCredentials.
func (f files) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	at := func(name string) string { return filepath.Join(string(f), name) }
	own, err := tls.LoadX509KeyPair(at("tls.crt"), at("tls.key"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate for the resource plugin: %w", err)
	}
	ca, err := os.ReadFile(at("ca.crt"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the CA of the resource plugin: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, nil, fmt.Errorf("reading the CA of the resource plugin: %s has no certificate", at("ca.crt"))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, RootCAs: roots}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, raw)
}

// ServerHandshake implements credentials.TransportCredentials.
func (f files) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errNotServed
}

// Info implements credentials.TransportCredentials.
func (f files) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (f files) Clone() credentials.TransportCredentials { return f }

// OverrideServerName implements credentials.TransportCredentials.
func (f files) OverrideServerName(string) error { return nil }
