// Package charts holds the Helm chart, so that liqoctl installs the very version that it was built with.
package charts

import (
	"embed"
	"io/fs"
)

//go:embed all:liqo
var liqo embed.FS

// Liqo returns the files of the chart, with Chart.yaml at the root.
func Liqo() fs.FS {
	chart, err := fs.Sub(liqo, "liqo")
	if err != nil {
		// fs.Sub fails on a malformed name only, and the name is a constant.
		return liqo
	}
	return chart
}
