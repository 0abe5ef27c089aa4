// Package inspection holds the commands that look and change nothing: info, info peer and version. They are glue around
// pkg/cli/action.
package inspection
