package artifact

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

const (
	partOfLabel = "app.kubernetes.io/part-of"
	partOf      = "liqo"
	// keepAnnotation makes helm leave an object alone when the release goes, and the user's data with it.
	keepAnnotation = "helm.sh/resource-policy"

	// maxCRDSize is the size above which a CRD loses the deep part of its documentation. `kubectl apply` stores
	// the whole object in an annotation, and annotations end at 256 KiB.
	maxCRDSize = 200 << 10
	// documentedDepth is how many levels of fields keep their documentation in such a CRD: enough for our own
	// fields, while that of embedded Kubernetes types (a pod's specification), known from elsewhere, goes.
	documentedDepth = 3

	// quantityPattern is what controller-gen writes for a Quantity, as Kubernetes itself has it.
	quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
	// boundedPattern are the Quantities that are read at once: to read 1e-999999999 takes whoever reads it minutes, or all of its memory.
	boundedPattern = `^(\+|-)?(([0-9]{1,40}(\.[0-9]{0,40})?)|(\.[0-9]{1,40}))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`
)

// completeCRD adds our label and annotation to a CRD that controller-gen wrote, bounds its quantities and what it has of
// Kubernetes' own types, and shortens its documentation when it is too large to be applied.
func completeCRD(content []byte) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(bytes.ReplaceAll(content, []byte(quantityPattern), []byte(boundedPattern)), &crd); err != nil {
		return nil, fmt.Errorf("reading a CRD: %w", err)
	}
	if err := boundEmbedded(crd); err != nil {
		return nil, err
	}
	add(crd, partOf, "metadata", "labels", partOfLabel)
	add(crd, "keep", "metadata", "annotations", keepAnnotation)
	if len(content) > maxCRDSize {
		trimDescriptions(crd, 0)
	}
	completed, err := yaml.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("writing a CRD: %w", err)
	}
	return append([]byte("---\n"), completed...), nil
}

// add sets a value at a path of keys, making the maps on the way.
func add(object map[string]any, value string, path ...string) {
	for _, key := range path[:len(path)-1] {
		next, isMap := object[key].(map[string]any)
		if !isMap {
			next = map[string]any{}
			object[key] = next
		}
		object = next
	}
	object[path[len(path)-1]] = value
}

// trimDescriptions walks a schema; depth counts the `properties` steps from its root to node.
func trimDescriptions(node any, depth int) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			trimDescriptions(item, depth)
		}
	case map[string]any:
		if _, isText := node["description"].(string); isText && depth > documentedDepth {
			delete(node, "description")
		}
		for key, value := range node {
			fields, isFields := value.(map[string]any)
			if key != "properties" || !isFields {
				trimDescriptions(value, depth)
				continue
			}
			// Fields may be called "description" or "properties" too, so their names are not looked at.
			for _, field := range fields {
				trimDescriptions(field, depth+1)
			}
		}
	}
}
