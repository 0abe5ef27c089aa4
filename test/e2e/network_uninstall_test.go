package e2e

import "testing"

// TestNetworkUninstalled is the last of the tests of this world: of Liqo nothing is left in the API servers, nor in the kernel of any node.
func TestNetworkUninstalled(t *testing.T) {
	the.peered(t)
	leavesNoNetwork(t)
	uninstall(t)
	for _, c := range the.sides() {
		for _, node := range c.ownNodes() {
			eventually(t, patience, "nothing of Liqo to be left on node "+node, c.kernelWithout(t, node, "cni-liqo", "table ip liqo", "table ip6 liqo", "5163"))
		}
	}
}
