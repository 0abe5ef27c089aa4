// Package helm installs, upgrades, removes and renders one Helm release.
//
// It is the only importer of Helm's library, behind the interface Client, so that the next major version of the library is a
// change of this package alone.
//
// Contract:
//   - Nothing here waits for pods: Helm's own wait is off, because it cannot say what it waits for. Callers wait themselves.
//   - Charts are loaded from a file system (the chart that liqoctl was built with) or from a path.
//   - Values are plain maps, already merged; see Merge and Set for the merging rules, which are Helm's.
//   - A release that is not there is nil, not an error.
package helm
