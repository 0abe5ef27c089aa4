// Package monitoring holds docs/metrics.md, the dashboard and the alert rules of deployments/monitoring against each other, and
// lets the tests of our processes hold the page against what they register.
package monitoring
