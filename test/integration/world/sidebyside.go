package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// sharedProcesses are both controller managers, what keeps the certificates of each, and the virtual kubelet.
const sharedProcesses = 5

// sideBySide fails unless the first thing that each test of the folder does is to call t.Parallel: the others would run while none of
// these does.
func sideBySide() error {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		return fmt.Errorf("looking for the tests of this folder: %w", err)
	}
	var errs []error
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading the tests of this folder: %w", err)
		}
		for _, declaration := range file.Decls {
			f, isFunction := declaration.(*ast.FuncDecl)
			if isFunction && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" && !parallel(f) {
				errs = append(errs, fmt.Errorf("%s: %s does not begin with t.Parallel(): tests of this folder run side by side; "+
					"one that cannot belongs to a folder whose tests run one by one", name, f.Name.Name))
			}
		}
	}
	return errors.Join(errs...)
}

// parallel tells whether a test begins with t.Parallel().
func parallel(test *ast.FuncDecl) bool {
	if len(test.Body.List) == 0 {
		return false
	}
	statement, isExpression := test.Body.List[0].(*ast.ExprStmt)
	if !isExpression {
		return false
	}
	call, isCall := statement.X.(*ast.CallExpr)
	if !isCall {
		return false
	}
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	return isMethod && method.Sel.Name == "Parallel"
}

// untouched fails if a test changed what all tests share.
func (s *Shared) untouched() error {
	if s.peering == nil {
		return nil
	}
	var errs []error
	processes := s.environment.Processes()
	if len(processes) != sharedProcesses {
		errs = append(errs, fmt.Errorf("%d processes were started, want %d: a test that starts one belongs to a folder whose tests run one by one",
			len(processes), sharedProcesses))
	}
	for _, p := range processes {
		if !p.Running() {
			errs = append(errs, fmt.Errorf("%s, which all tests share, ended; it said last:\n%s", p.Name(), p.Tail(30)))
		}
	}
	settings, err := s.sharedSettings(context.Background())
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if diff := cmp.Diff(s.settings, settings); diff != "" {
		errs = append(errs, fmt.Errorf("settings that all tests share are not what they were (-before +after):\n%s", diff))
	}
	return errors.Join(errs...)
}

// sharedSettings are what a test could change for all others without touching a process.
func (s *Shared) sharedSettings(ctx context.Context) (map[string]string, error) {
	template, nodes, tenants := &offloadingv1beta1.VkOptionsTemplate{}, &offloadingv1beta1.VirtualNodeList{}, &authv1beta1.TenantList{}
	err := errors.Join(
		s.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.Namespace, Name: offloadingv1beta1.DefaultVkOptionsTemplate}, template),
		s.Rome.Client.List(ctx, nodes, client.InNamespace(fixture.ConsumerNamespace)),
		s.Milan.Client.List(ctx, tenants, client.InNamespace(fixture.ProviderNamespace)))
	if err != nil {
		return nil, fmt.Errorf("reading the settings that all share: %w", err)
	}
	all := map[string]any{"VkOptionsTemplate": template.Spec}
	for i := range nodes.Items {
		all["patch of VirtualNode "+nodes.Items[i].Name] = nodes.Items[i].Spec.OffloadingPatch
	}
	for i := range tenants.Items {
		all["Tenant "+tenants.Items[i].Name] = tenants.Items[i].Spec
	}
	settings := map[string]string{}
	for name, value := range all {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("writing %s down: %w", name, err)
		}
		settings[name] = string(text)
	}
	return settings, nil
}
