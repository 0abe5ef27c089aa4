// Package install installs Liqo in one cluster, or upgrades what is installed.
//
// Contract:
//   - Everything that the chart has to know of the cluster is found out (Detect, a pure function of Facts) and told, or is asked
//     for with the flag that answers it.
//   - Values are merged in this order, later ones win: the chart's defaults, what was detected, the values of the present
//     installation, explicit options, value files, --set, --set-string.
//   - The cluster ID never changes once there is one.
//   - Liqo v1 is never installed over, nor beside. What it left behind once it is removed becomes the release's, with its objects.
//   - Checks come before the first write: rights, addresses, the values against the chart's schema, and the configuration that the chart makes
//     of them as the controller manager reads it.
//   - Run ends when the installation really answers: every pod is available, the webhooks can be called, and the API server knows our
//     kinds, without which its policies refuse pods. On a timeout the error says which pod is not ready and why.
package install
