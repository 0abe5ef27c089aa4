package helm

import (
	"fmt"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// Merge returns the layers merged: a later layer wins, maps are merged key by key, everything else is replaced.
func Merge(layers ...map[string]any) map[string]any {
	merged := map[string]any{}
	for _, layer := range layers {
		merged = chartutil.MergeTables(copyValues(layer), merged)
	}
	return merged
}

// Set applies an assignment such as a.b=1,c[0]=x to values; the value's type is guessed as Helm does.
func Set(values map[string]any, assignment string) error {
	if err := strvals.ParseInto(assignment, values); err != nil {
		return fmt.Errorf("parsing --set %s: %w", assignment, err)
	}
	return nil
}

// SetString applies an assignment whose value is always a string.
func SetString(values map[string]any, assignment string) error {
	if err := strvals.ParseIntoString(assignment, values); err != nil {
		return fmt.Errorf("parsing --set-string %s: %w", assignment, err)
	}
	return nil
}

// Parse reads values from YAML. source names them in errors.
func Parse(source string, data []byte) (map[string]any, error) {
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("parsing the values in %s: %w", source, err)
	}
	return values, nil
}

// copyValues copies deeply, because Helm's merging writes into its arguments.
func copyValues(values map[string]any) map[string]any {
	copied := make(map[string]any, len(values))
	for key, value := range values {
		copied[key] = copyValue(value)
	}
	return copied
}

func copyValue(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		return copyValues(typed)
	case []any:
		items := make([]any, len(typed))
		for i := range typed {
			items[i] = copyValue(typed[i])
		}
		return items
	default:
		return value
	}
}
