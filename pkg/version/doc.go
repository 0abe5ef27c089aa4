// Package version says which release and which commit a binary was built from.
//
// Release builds stamp both values through the linker:
//
//	go build -ldflags "-X liqo.io/liqo/pkg/version.Version=v1.2.3 -X liqo.io/liqo/pkg/version.Commit=0123abc"
//
// Other builds (`go install liqo.io/liqo/cmd/liqoctl@v1.2.3`, `go run`) fall back to what the Go toolchain
// recorded in the binary. The values never change while a process runs.
package version
