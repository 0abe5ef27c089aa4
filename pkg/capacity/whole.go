package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Counted tells whether a resource comes in whole pieces: pods, and devices such as nvidia.com/gpu.
func Counted(name corev1.ResourceName) bool {
	return name == corev1.ResourcePods || strings.Contains(string(name), "/")
}

// WhyNotWhole returns which resources are asked for by parts of a piece, empty if none.
func WhyNotWhole(list corev1.ResourceList) string {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if quantity := list[name]; Counted(name) && quantity.Cmp(whole(quantity)) != 0 {
			return fmt.Sprintf("%s of %s is no whole number", quantity.String(), name)
		}
	}
	return ""
}

// WholePieces leaves out of a list the parts of pieces, which nobody can use.
func WholePieces(list corev1.ResourceList) {
	for name, quantity := range list {
		if down := whole(quantity); Counted(name) && quantity.Cmp(down) != 0 {
			list[name] = down
		}
	}
}

// whole rounds down: Value rounds up.
func whole(quantity resource.Quantity) resource.Quantity {
	down := *resource.NewQuantity(quantity.Value(), quantity.Format)
	if down.Cmp(quantity) > 0 {
		down.Sub(*resource.NewQuantity(1, quantity.Format))
	}
	return down
}
