package assembly

import (
	"fmt"
	"strings"
)

// Product lists the programs of this project that are published as images.
var Product = []Binary{
	{
		Name:        "liqo-controller-manager",
		Package:     "./cmd/liqo-controller-manager",
		Description: "The controllers and admission webhooks of a Liqo cluster.",
	},
	{
		Name:        "virtual-kubelet",
		Package:     "./cmd/virtual-kubelet",
		Description: "The kubelet of a node that stands for another cluster.",
	},
	{
		Name:        "liqo-gateway",
		Package:     "./cmd/liqo-gateway",
		Description: "The agent of a gateway to a peered cluster.",
	},
	{
		Name:        "liqo-fabric",
		Package:     "./cmd/liqo-fabric",
		Description: "The agent of a node whose pods reach those of peered clusters.",
	},
	{
		Name:        "liqoctl",
		Package:     "./cmd/liqoctl",
		Description: "The command line tool that installs, peers and offloads.",
	},
	{
		Name:        "liqo-volume",
		Package:     "./cmd/liqo-volume",
		Description: "The helper that copies volumes between clusters.",
	},
}

// Select returns the product's binaries with the given names, or all of them when no name is given. A name
// that is not part of the product is an error that lists the known ones.
func Select(names ...string) ([]Binary, error) {
	if len(names) == 0 {
		return Product, nil
	}
	selected := make([]Binary, 0, len(names))
	for _, wanted := range names {
		binary, known := find(wanted)
		if !known {
			return nil, fmt.Errorf("there is no image %q: known are %s", wanted, strings.Join(productNames(), ", "))
		}
		selected = append(selected, binary)
	}
	return selected, nil
}

func find(name string) (Binary, bool) {
	for _, binary := range Product {
		if binary.Name == name {
			return binary, true
		}
	}
	return Binary{}, false
}

func productNames() []string {
	names := make([]string, 0, len(Product))
	for _, binary := range Product {
		names = append(names, binary.Name)
	}
	return names
}
