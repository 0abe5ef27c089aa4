package peering

import (
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/cli/failure"
)

// resourceFlags are quantities of resources.
type resourceFlags struct {
	cpu, memory, pods string
	others            map[string]string
}

// namesOfResources are their names on the command line.
var namesOfResources = []string{"cpu", "memory", "pods", "resource"}

// askedFor registers them as what a provider is asked for.
func (f *resourceFlags) askedFor(set *pflag.FlagSet) {
	set.StringVar(&f.cpu, "cpu", "", "CPU to ask for; empty leaves it to the provider")
	set.StringVar(&f.memory, "memory", "", "Memory to ask for; empty leaves it to the provider")
	set.StringVar(&f.pods, "pods", "", "Number of pods to ask for; empty leaves it to the provider")
	set.StringToStringVar(&f.others, "resource", nil, "Other resources to ask for, such as nvidia.com/gpu=2")
}

// ofNode registers them as what a virtual node has, with the defaults of Liqo v1.
func (f *resourceFlags) ofNode(set *pflag.FlagSet) {
	set.StringVar(&f.cpu, "cpu", "2", "CPU of the virtual node, where it is made of no ResourceSlice")
	set.StringVar(&f.memory, "memory", "4Gi", "Memory of the virtual node, where it is made of no ResourceSlice")
	set.StringVar(&f.pods, "pods", "110", "Number of pods of the virtual node, where it is made of no ResourceSlice")
	set.StringToStringVar(&f.others, "resource", nil, "Other resources of it, such as nvidia.com/gpu=2")
}

// givenResource is the first of the flags that the user gave; empty if none.
func givenResource(set *pflag.FlagSet) string {
	if i := slices.IndexFunc(namesOfResources, set.Changed); i >= 0 {
		return namesOfResources[i]
	}
	return ""
}

// list reads the quantities.
func (f *resourceFlags) list() (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	add := func(flag string, name corev1.ResourceName, value string) error {
		if value == "" {
			return nil
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return failure.Misuse("write it as Kubernetes does, for example 2, 500m or 4Gi", "%s %s is not a quantity", flag, value)
		}
		if quantity.Sign() < 0 {
			return failure.Misuse("give a positive one", "%s %s is negative", flag, value)
		}
		list[name] = quantity
		if capacity.WhyNotWhole(list) != "" {
			return failure.Misuse("pods and devices are counted: give a whole one", "%s %s is no whole number", flag, value)
		}
		return nil
	}
	for _, item := range []struct {
		flag  string
		name  corev1.ResourceName
		value string
	}{{"--cpu", corev1.ResourceCPU, f.cpu}, {"--memory", corev1.ResourceMemory, f.memory}, {"--pods", corev1.ResourcePods, f.pods}} {
		if err := add(item.flag, item.name, item.value); err != nil {
			return nil, err
		}
	}
	for name, value := range f.others {
		if _, twice := list[corev1.ResourceName(name)]; twice {
			return nil, failure.Misuse("give it once", "--resource %s and --%s ask for the same", name, name)
		}
		if value == "" {
			return nil, failure.Misuse("write it as --resource NAME=QUANTITY", "--resource %s has no quantity", name)
		}
		if err := add("--resource "+name, corev1.ResourceName(name), value); err != nil {
			return nil, err
		}
	}
	return list, nil
}
