// Package offloading holds the commands that extend namespaces to other clusters and take them back: offload and unoffload. They
// are glue around pkg/cli/action.
package offloading
