package helm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
)

// Source is where a chart is published.
type Source struct {
	// URL of a chart repository, or with oci:// of the chart itself in a registry.
	URL string
	// Name of the chart in a repository, and its Version.
	Name, Version string
}

// fetchTimeout is how long a repository or registry may take: a chart has some hundred kilobytes.
const fetchTimeout = 2 * time.Minute

// Fetch downloads a chart. Whoever has logged in with 'helm registry login' is known to registries.
func Fetch(ctx context.Context, from Source) (*Chart, error) {
	at, err := url.Parse(from.URL)
	if err != nil || at.Host == "" {
		return nil, errors.New("it is no URL such as https://charts.example.com or oci://registry.example.com/charts/liqo")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type fetched struct {
		chart *Chart
		err   error
	}
	done := make(chan fetched, 1)
	go func() {
		chart, err := from.fetch(at)
		done <- fetched{chart, err}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%s has not given the chart yet: %w", at.Host, ctx.Err())
	case got := <-done:
		if got.err != nil {
			// A password in the address is nobody else's business.
			return nil, errors.New(strings.ReplaceAll(got.err.Error(), from.URL, at.Redacted()))
		}
		return got.chart, nil
	}
}

// fetch downloads into a folder of its own, so that nothing stays, and nothing that is there is taken for it.
func (s Source) fetch(at *url.URL) (*Chart, error) {
	folder, err := os.MkdirTemp("", "liqoctl-chart-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the chart: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	settings := cli.New()
	settings.RepositoryCache = folder
	install := action.NewInstall(&action.Configuration{})
	install.Version = s.Version
	where := s.URL
	if registry.IsOCI(s.URL) {
		options := []registry.ClientOption{registry.ClientOptWriter(io.Discard), registry.ClientOptCredentialsFile(settings.RegistryConfig)}
		if loopback(at.Hostname()) {
			options = append(options, registry.ClientOptPlainHTTP())
			install.PlainHTTP = true
		}
		client, err := registry.NewClient(options...)
		if err != nil {
			return nil, fmt.Errorf("preparing to ask the registry: %w", err)
		}
		install.SetRegistryClient(client)
	} else if where, err = repo.FindChartInRepoURL(s.URL, s.Name, s.Version, "", "", "", getter.All(settings)); err != nil {
		return nil, err
	}
	archive, err := install.LocateChart(where, settings)
	if err != nil {
		return nil, err
	}
	return LoadPath(archive)
}

// loopback tells registries on this very machine, which have no certificates.
func loopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}
