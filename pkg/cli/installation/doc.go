// Package installation holds the commands that bring Liqo into a cluster and out of it: install (alias upgrade) and uninstall. They
// are glue around pkg/cli/action.
package installation
