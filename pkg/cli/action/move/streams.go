package move

import (
	"context"
	"io"
)

// Streams run commands in pods.
type Streams interface {
	// Exec runs a command in a pod's only container. A command that fails is an error with what it said.
	Exec(ctx context.Context, namespace, pod string, command []string, in io.Reader, out io.Writer) error
}
