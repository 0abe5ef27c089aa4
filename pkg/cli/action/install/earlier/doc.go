// Package earlier looks for Liqo v1, and for what it left, before something is installed.
//
// Contract:
//   - Where Liqo v1 is, nothing is installed: not over its release, and not beside its controllers, agents, virtual kubelets and gateways. It has
//     the same names, labels and partly images, and is told by what its programs are started with.
//   - What it left once it is removed, and what an own release left, is adopted: marked as the release's, and not written otherwise. Only what the
//     chart itself makes is looked at, and nothing is taken from a Liqo that runs.
//   - What the API server or Helm would refuse in the middle of an installation is refused before.
package earlier
