// Package cache builds the development tools of this project once and keeps them outside the checkout.
//
// Tools are Go programs pinned by version in [Known]. [Path] returns the path of a tool's binary, building it
// first when it is missing or was built by another Go release (an analyser reads what the compiler writes, so the
// two must match). A tool is built with `go install package@version` in a module graph of its own: nothing of it
// reaches the product's go.mod.
//
// Binaries live in $LIQO_CACHE/tools/<name>-<version>/ ($HOME/.cache/liqo when LIQO_CACHE is empty). Callers in
// several processes wait for each other through a file lock per tool.
package cache
