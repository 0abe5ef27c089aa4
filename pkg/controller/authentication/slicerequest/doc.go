// Package slicerequest completes, at the consumer, the ResourceSlices that ask a provider for resources: who asks whom, and
// the certificate signing request of the slice's own key. It writes specs only; the answer is written by the replication.
package slicerequest
