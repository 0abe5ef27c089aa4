package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxResources is how many resources one node, pod or slice may name.
	maxResources = 128
	// maxAmount is the most of a resource that one of them is believed to have: a pebibyte, or a million million cores. A sum of some
	// thousands of these is still a number.
	maxAmount = int64(1) << 50
)

var (
	errNothingAllocatable = errors.New("it reports no allocatable resources, though it is ready")
	errNobody             = errors.New("it has no name")
)

// measured is a resource by its name, in the unit of amounts.
type measured struct {
	name  corev1.ResourceName
	value int64
}

// measure reads quantities in the units of amounts, rounded up or down, in the order of names. Those that cannot be are refused.
func measure(list corev1.ResourceList, up bool) ([]measured, error) {
	if len(list) > maxResources {
		return nil, fmt.Errorf("it names %d resources, more than %d", len(list), maxResources)
	}
	out := make([]measured, 0, len(list)+1) // One more for the pod itself.
	for _, name := range names(list) {
		quantity, most := list[name], amountOf(name, maxAmount)
		switch {
		case quantity.Sign() < 0:
			return nil, fmt.Errorf("the quantity %s of %s is negative", quantity.String(), name)
		case quantity.Cmp(most) > 0:
			return nil, fmt.Errorf("the quantity %s of %s is more than can be: at most %s", quantity.String(), name, most.String())
		}
		value := quantity.Value()
		if name == corev1.ResourceCPU {
			value = quantity.MilliValue()
		}
		if is := amountOf(name, value); !up && is.Cmp(quantity) > 0 {
			value--
		}
		if value > 0 && name != "" {
			out = append(out, measured{name, value})
		}
	}
	return out, nil
}

// Believed returns why quantities cannot be, nil if they can.
func Believed(list corev1.ResourceList) error {
	_, err := measure(list, false)
	return err
}

// amountOf is the quantity of so many units of a resource.
func amountOf(name corev1.ResourceName, value int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return *resource.NewQuantity(value, resource.BinarySI)
	default:
		return *resource.NewQuantity(value, resource.DecimalSI)
	}
}

// piece is how much of a resource is the least that can be used: a page, a device, a pod, or a unit.
func piece(name corev1.ResourceName) (size int64, countable bool) {
	text, pages := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	if !pages {
		return 1, Counted(name)
	}
	page, err := resource.ParseQuantity(text)
	if err != nil || page.Sign() <= 0 || page.Cmp(amountOf(name, maxAmount)) > 0 {
		return 1, false
	}
	return page.Value(), true
}

// part is floor(whole × times ÷ of); times is not more than of.
func part(whole, times, of int64) int64 {
	if whole <= 0 || times <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(whole), uint64(times))
	quotient, _ := bits.Div64(high, low, uint64(of)) //nolint:gosec // not less than times, which is positive
	return int64(quotient)                           //nolint:gosec // not more than whole
}

// InOrder are the names of a list in the order in which those are taken that there is room for: what Kubernetes itself knows before devices.
func InOrder(list corev1.ResourceList) []corev1.ResourceName {
	return slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		return cmp.Or(strings.Count(string(a), "/")-strings.Count(string(b), "/"), strings.Compare(string(a), string(b)))
	})
}

// names of a list, in order.
func names(list corev1.ResourceList) []corev1.ResourceName { return slices.Sorted(maps.Keys(list)) }
