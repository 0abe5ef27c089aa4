package artifact

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// embedded are bounds of fields of Kubernetes' own types in our kinds, where no markers can be written: those that Kubernetes has for them
// elsewhere. Beside arrays of which there may be many, no text may be of any length.
var embedded = map[string]string{
	"ShadowEndpointSlice": `
properties: {spec: {properties: {template: {properties: {
  endpoints: {items: {properties: {
    addresses: {maxItems: 100, items: {maxLength: 45}},
    deprecatedTopology: {maxProperties: 0},
    hints: {properties: {
      forNodes: {maxItems: 8, items: {properties: {name: {maxLength: 253}}}},
      forZones: {maxItems: 8, items: {properties: {name: {maxLength: 63}}}}}},
    hostname: {maxLength: 63},
    nodeName: {maxLength: 253},
    targetRef: {properties: {
      apiVersion: {maxLength: 63}, fieldPath: {maxLength: 63}, kind: {maxLength: 63}, name: {maxLength: 253},
      namespace: {maxLength: 63}, resourceVersion: {maxLength: 63}, uid: {maxLength: 63}}},
    zone: {maxLength: 63}}}},
  ports: {items: {properties: {
    appProtocol: {maxLength: 253}, name: {maxLength: 63}, protocol: {maxLength: 63}}}}}}}}}`,
}

// boundEmbedded puts the bounds of a kind into the schema of each version of its CRD.
func boundEmbedded(crd map[string]any) error {
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	text, bounded := embedded[kind]
	if !bounded {
		return nil
	}
	var bounds map[string]any
	if err := yaml.Unmarshal([]byte(text), &bounds); err != nil {
		return fmt.Errorf("reading the bounds of %s: %w", kind, err)
	}
	versions, _ := spec["versions"].([]any)
	for _, version := range versions {
		of, _ := version.(map[string]any)
		schema, _ := of["schema"].(map[string]any)
		root, _ := schema["openAPIV3Schema"].(map[string]any)
		if err := bound(root, bounds); err != nil {
			return fmt.Errorf("bounding %s: %w", kind, err)
		}
	}
	return nil
}

// bound puts bounds into the nodes of a schema, all of which have to be there.
func bound(schema, bounds map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(bounds)) {
		below, deeper := bounds[key].(map[string]any)
		if !deeper {
			schema[key] = bounds[key]
			continue
		}
		node, there := schema[key].(map[string]any)
		if !there {
			return fmt.Errorf("%s is not there", key)
		}
		if err := bound(node, below); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}
