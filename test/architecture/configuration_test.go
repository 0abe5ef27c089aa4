package architecture

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	// configuration is the package whose loaders complete what the chart wrote, as the controller manager does.
	configuration = "pkg/config/v1alpha1"
	// configurationKey is what the chart calls the configuration in its ConfigMap, and the end of the name of the file that this becomes.
	configurationKey = "config.yaml"
)

var (
	loaders  = []string{"Load", "Parse", "Read"}
	decoders = []string{"Unmarshal", "UnmarshalStrict", "NewDecoder", "NewYAMLOrJSONDecoder", "NewYAMLToJSONDecoder", "FromUnstructured", "Decode"}
)

// beside are the places of the product that name the configuration without giving it to a loader in the same call, or that decode something
// in a file that knows the configuration, and why they may.
var beside = map[string]string{
	"cmd/liqo-controller-manager/command.go /etc/liqo/config.yaml":                                                     "the default of the flag whose file is loaded",
	"pkg/cli/fixture/objects.go --config=/etc/liqo/config.yaml":                                                        "tests' clusters have one: it is written",
	"pkg/cli/fixture/objects.go config.yaml":                                                                           "tests' clusters have one: it is written",
	"pkg/cli/action/install/inspect.go liqo/templates/config.yaml":                                                     "the chart's template of the ConfigMap, whose data is parsed",
	`pkg/cli/action/install/inspect.go yaml.Unmarshal([]byte(rendered["liqo/templates/config.yaml"]), &configuration)`: "the ConfigMap around it",
	"pkg/controller/networking/gatewaytemplate/gatewaytemplate.go json.Unmarshal(of.content.Raw, &content)":            "a template, which the configuration holds as it is",
}

// Who reads the configuration past its loader takes what the chart left to the profile for what is off: `network test` told of faults that
// there were not wherever the profile was hardened.
func TestTheConfigurationIsReadByItsLoader(t *testing.T) {
	var offenders []string
	seen := map[string]bool{}
	for _, file := range sources(t) {
		product := strings.HasPrefix(file.path, "pkg/") || strings.HasPrefix(file.path, "cmd/")
		if !product || file.isTest() || file.isGenerated() || file.folder() == configuration {
			continue
		}
		found := func(node ast.Node, what string) {
			place := file.path + " " + what
			if beside[place] == "" || seen[place] {
				offenders = append(offenders, at(node, file)+": "+what)
			}
			seen[place] = true
		}
		knows := slices.Contains(file.imports(), configuration)
		ast.Inspect(file.ast, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(node.Value); err == nil && strings.HasSuffix(text, configurationKey) {
					found(node, text)
				}
			case *ast.CallExpr:
				called, isOf := node.Fun.(*ast.SelectorExpr)
				switch {
				case !knows || !isOf:
				case slices.Contains(loaders, called.Sel.Name) && strings.HasSuffix(types.ExprString(called.X), "v1alpha1"):
					return false // what is named here goes to the loader
				case slices.Contains(decoders, called.Sel.Name):
					found(node, types.ExprString(node))
				}
			}
			return true
		})
	}
	for place := range beside {
		if !seen[place] {
			offenders = append(offenders, place+" is there no more, and is listed")
		}
	}
	slices.Sort(offenders)
	report(t, "the configuration is read by the loaders of "+configuration+", with its name in the call", offenders)
}
