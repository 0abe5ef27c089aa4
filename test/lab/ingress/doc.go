// Package ingress is the lab's ingress controller: as small as one can be that a user's Ingress works with.
//
// It runs on the network of its node, ports 80 and 443, and serves the Ingresses of one class: by host, wildcard or none, and by
// path, the longest first. It goes to the ready endpoints of a Service one after the other, not by the Service's address, as
// most ingress controllers do. Certificates are read at each handshake from the Secret that an Ingress names. Its own address
// becomes the load balancer's of each Ingress.
//
// It is for tests: default certificates, redirects, weights and annotations are not known to it.
package ingress
