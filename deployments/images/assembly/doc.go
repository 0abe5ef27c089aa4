// Package assembly makes container images out of Go binaries, without Docker, a daemon or a registry.
//
// [Assemble] compiles each [Binary] statically, lays it into a single layer together with the public root
// certificates and the entry of an unprivileged user, and writes the result either as one docker-archive per
// image and architecture (what `ctr images import` and `docker load` read) or as one OCI layout per image with
// an index over all architectures (what `crane push` and `skopeo copy` read).
//
// The result is reproducible: the same sources, Go release, tag and commit give the same digests. Files carry a
// fixed time and owner, the root certificates come from a Go module pinned in go.mod (never from the machine
// that builds), and compilation trims paths.
//
// A second run is cheap: compiled binaries stay beside the output, and an image is written again only if its
// binary or its options changed. Nothing outside [Options.Out] and Go's build cache is written, and nothing
// needs root. Assemble is safe to call from several processes only with different output folders.
package assembly
