package template

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// Data is what templates are rendered with. Its fields are those that Liqo v1 has.
type Data struct {
	// Name and Namespace of the gateway.
	Name, Namespace string
	// ClusterID of the peer.
	ClusterID string
	// GatewayUID is the UID of the GatewayServer or GatewayClient.
	GatewayUID string
	// SecretName names the Secret with the gateway's keys.
	SecretName string
	// Spec of the GatewayServer or GatewayClient; it is filled in.
	Spec any
}

// Server renders a gateway server. The error lists all that is wrong with the template.
func Server(template *networkingv1beta1.WgGatewayServerTemplate, gateway *networkingv1beta1.GatewayServer, data Data,
) (*networkingv1beta1.WgGatewayServer, error) {
	data.Spec = gateway.Spec
	rendered := &networkingv1beta1.WgGatewayServer{}
	if err := render(template.Spec.Template.Raw, data, rendered, serverFields); err != nil {
		return nil, err
	}
	rendered.Name, rendered.Namespace = data.Name, data.Namespace
	service := &rendered.Spec.Service.ObjectMeta
	service.Annotations = merged(service.Annotations, gateway.Spec.ServiceAnnotations)
	service.Labels = merged(service.Labels, gateway.Spec.ServiceLabels)
	return rendered, nil
}

// Client renders a gateway client. The error lists all that is wrong with the template.
func Client(template *networkingv1beta1.WgGatewayClientTemplate, gateway *networkingv1beta1.GatewayClient, data Data,
) (*networkingv1beta1.WgGatewayClient, error) {
	data.Spec = gateway.Spec
	rendered := &networkingv1beta1.WgGatewayClient{}
	if err := render(template.Spec.Template.Raw, data, rendered, clientFields); err != nil {
		return nil, err
	}
	rendered.Name, rendered.Namespace = data.Name, data.Namespace
	return rendered, nil
}

// merged are the entries of both, those of the second one first.
func merged(base, more map[string]string) map[string]string {
	if len(more) == 0 {
		return base
	}
	all := maps.Clone(more)
	for key, value := range base {
		if _, there := all[key]; !there {
			all[key] = value
		}
	}
	return all
}

// render evaluates a template into an object whose fields are allowed.
func render(raw []byte, data Data, into any, allowed fields) error {
	path := field.NewPath("spec", "template")
	var template map[string]any
	if err := json.Unmarshal(raw, &template); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	r := &renderer{texts: texts{root: plain(reflect.ValueOf(data)), steps: maxSteps}}
	rendered := r.value(template, reflect.TypeOf(into).Elem(), path)
	if len(r.problems) == 0 {
		r.problems = allowed.check(rendered, data, path)
	}
	if err := r.problems.ToAggregate(); err != nil {
		return err
	}
	text, err := json.Marshal(rendered)
	if err != nil {
		return fmt.Errorf("writing what %s is rendered to: %w", path, err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("reading what %s is rendered to: %w", path, err)
	}
	return nil
}

// renderer walks a template and notes what is wrong.
type renderer struct {
	texts    texts
	problems field.ErrorList
}

// value renders a value whose place in the target has a type; nil if that is not known.
func (r *renderer) value(value any, target reflect.Type, path *field.Path) any {
	switch value := value.(type) {
	case map[string]any:
		return r.object(value, target, path)
	case []any:
		list := make([]any, 0, len(value))
		for i, item := range value {
			list = append(list, r.value(item, elementOf(target), path.Index(i)))
		}
		return list
	case string:
		text, err := r.texts.evaluate(value)
		if err != nil {
			r.problems = append(r.problems, field.Invalid(path, shorten(value), err.Error()))
			return nil
		}
		typed, err := typedAs(text, target)
		if err != nil {
			r.problems = append(r.problems, field.Invalid(path, shorten(value), err.Error()))
		}
		return typed
	default:
		return value
	}
}

func (r *renderer) object(object map[string]any, target reflect.Type, path *field.Path) any {
	rendered := make(map[string]any, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		name, optional := strings.CutPrefix(key, "?")
		if _, twice := object[name]; optional && twice {
			r.problems = append(r.problems, field.Duplicate(path.Child(name), name))
			continue
		}
		value := object[key]
		if text, isText := value.(string); optional && isText {
			evaluated, err := r.texts.evaluate(text)
			if err == nil && evaluated == "" {
				continue
			}
		}
		rendered[name] = r.value(value, fieldOf(target, name), path.Child(name))
	}
	return rendered
}

// shorten keeps errors readable.
func shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
