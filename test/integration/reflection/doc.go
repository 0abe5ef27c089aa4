// Package reflection tests, for every reflected kind, what becomes of its objects between two real API servers. The engine
// runs in the test's process, with the rights that the chart gives it on either side.
package reflection
