package install

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/helm"
)

const (
	fetchTimeout = 30 * time.Second
	maxValues    = 4 << 20
)

// ReadValues reads value files: paths, http(s) URLs, or - for standard input.
func ReadValues(ctx context.Context, stdin io.Reader, sources []string) ([]map[string]any, error) {
	var files []map[string]any
	for _, source := range sources {
		data, err := readSource(ctx, stdin, source)
		if err != nil {
			return nil, failure.Misuse("give a file, a URL, or - for standard input", "--values: %w", err)
		}
		values, err := helm.Parse(source, data)
		if err != nil {
			return nil, failure.Misuse("correct the file", "--values: %w", err)
		}
		files = append(files, values)
	}
	return files, nil
}

func readSource(ctx context.Context, stdin io.Reader, source string) ([]byte, error) {
	switch {
	case source == "-":
		return io.ReadAll(io.LimitReader(stdin, maxValues))
	case strings.HasPrefix(source, "https://"), strings.HasPrefix(source, "http://"):
		return fetch(ctx, source)
	default:
		return os.ReadFile(source)
	}
}

func fetch(ctx context.Context, source string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", source, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading %s: the server answered %s", source, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxValues))
}
