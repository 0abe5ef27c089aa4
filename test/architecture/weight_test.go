package architecture

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// heavy are packages that a program of which every cluster runs several must not be linked with, and why.
var heavy = map[string]string{
	"html/template":                                  "it calls methods by name, so that the linker keeps every exported method of every library: some 20 MB",
	"google.golang.org/grpc":                         "it brings html/template",
	"github.com/google/cel-go/cel":                   "only API servers evaluate CEL",
	"go.opentelemetry.io/otel/sdk/trace":             "nothing here sends traces",
	"github.com/prometheus/prometheus/promql/parser": "only tests read alert rules",
}

func TestProgramsAreLight(t *testing.T) {
	var offenders []string
	for _, program := range []string{"virtual-kubelet", "liqo-controller-manager", "liqo-gateway", "liqo-fabric"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/"+program)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatalf("listing what %s is linked with: %v", program, err)
		}
		linked := strings.Fields(string(out))
		for name, why := range heavy {
			if slices.Contains(linked, name) {
				offenders = append(offenders, fmt.Sprintf("%s is linked with %s (%s); go mod why -m, or go list -deps, tells by whom", program, name, why))
			}
		}
	}
	report(t, "programs are not linked with what they do not need", offenders)
}
