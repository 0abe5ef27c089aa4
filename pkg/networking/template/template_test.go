package template

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	data   = Data{Name: "milan", Namespace: "liqo-tenant-milan", ClusterID: "milan", GatewayUID: "u-1", SecretName: "gw-milan-keys"}
	server = networkingv1beta1.GatewayServer{Spec: networkingv1beta1.GatewayServerSpec{
		MTU:                1440,
		Endpoint:           networkingv1beta1.Endpoint{Port: 51840, ServiceType: corev1.ServiceTypeLoadBalancer},
		ServiceAnnotations: map[string]string{"both": "of the gateway", "new": "of the gateway"},
		ServiceLabels:      map[string]string{"zone": "a"},
	}}
	client = networkingv1beta1.GatewayClient{Spec: networkingv1beta1.GatewayClientSpec{
		Endpoint: networkingv1beta1.ClientEndpoint{Addresses: []networkingv1beta1.Host{"192.0.2.1", "gw.example.com"}, Port: 51840, Protocol: corev1.ProtocolUDP},
	}}
)

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatal(err)
	}
}

// golden compares with testdata/name.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestGatewaysAreRendered(t *testing.T) {
	serverTemplate, clientTemplate := &networkingv1beta1.WgGatewayServerTemplate{}, &networkingv1beta1.WgGatewayClientTemplate{}
	read(t, "server.yaml", serverTemplate)
	read(t, "client.yaml", clientTemplate)
	address := networkingv1beta1.IP("192.0.2.9")
	chosen := server
	chosen.Spec.Endpoint.NodePort, chosen.Spec.Endpoint.LoadBalancerIP, chosen.Spec.MTU = 30001, &address, 0
	for name, render := range map[string]func() (any, error){
		"server.rendered.yaml":        func() (any, error) { return Server(serverTemplate, &server, data) },
		"server-chosen.rendered.yaml": func() (any, error) { return Server(serverTemplate, &chosen, data) },
		"client.rendered.yaml":        func() (any, error) { return Client(clientTemplate, &client, data) },
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render()
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, rendered)
		})
	}
}

// put sets a value in a template: path is a.b.0.c.
func put(t *testing.T, into any, path string, value any) {
	t.Helper()
	first, rest, deeper := strings.Cut(path, ".")
	switch into := into.(type) {
	case map[string]any:
		if !deeper {
			into[first] = value
			return
		}
		if _, there := into[first]; !there {
			into[first] = map[string]any{}
		}
		put(t, into[first], rest, value)
	case []any:
		put(t, into[int(first[0]-'0')], rest, value)
	default:
		t.Fatalf("there is no %s", path)
	}
}

const (
	pod       = "spec.deployment.spec.template.spec."
	gateway   = pod + "containers.0."
	forbidden = "Forbidden: a gateway does not have this field"
)

// What a template must not have: a value at a path, and what of the error matters. Each is put into a template that is all right.
func TestTemplatesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		path  string
		value any
		want  string
	}{
		"the network of the host":                  {pod + "hostNetwork", true, `hostNetwork: Invalid value: "true": must be one of [false]`},
		"the network of the host, as a text":       {pod + "hostNetwork", "{{ eq .Name .ClusterID }}", `hostNetwork: Invalid value: "true": must be one of [false]`},
		"the processes of the host":                {pod + "hostPID", true, "hostPID: Invalid value"},
		"the memory of the host":                   {pod + "hostIPC", true, "hostIPC: Invalid value"},
		"processes of all containers":              {pod + "shareProcessNamespace", true, "shareProcessNamespace: " + forbidden},
		"a node":                                   {pod + "nodeName", "a", "nodeName: " + forbidden},
		"another scheduler":                        {pod + "schedulerName", "a", "schedulerName: " + forbidden},
		"names of hosts":                           {pod + "hostAliases", []any{}, "hostAliases: " + forbidden},
		"containers of kubectl debug":              {pod + "ephemeralContainers", []any{}, "ephemeralContainers: " + forbidden},
		"another account":                          {pod + "serviceAccountName", "default", `serviceAccountName: Invalid value: "default": must be one of [milan gw-milan]`},
		"another account by its old name":          {pod + "serviceAccount", "default", `serviceAccount: Invalid value: "default"`},
		"settings of the kernel":                   {pod + "securityContext", map[string]any{"sysctls": []any{}}, "securityContext.sysctls: " + forbidden},
		"no filter of system calls":                {pod + "securityContext", map[string]any{"seccompProfile": map[string]any{"type": "Unconfined"}}, `seccompProfile.type: Invalid value: "Unconfined": must be one of [RuntimeDefault Localhost]`},
		"privileges":                               {gateway + "securityContext.privileged", true, `privileged: Invalid value: "true": must be one of [false]`},
		"another capability":                       {gateway + "securityContext.capabilities.add", []any{"NET_ADMIN", "SYS_ADMIN"}, `capabilities.add[1]: Invalid value: "SYS_ADMIN": must be one of [NET_ADMIN]`},
		"all of /proc":                             {gateway + "securityContext.procMount", "Unmasked", "procMount: " + forbidden},
		"labels of SELinux":                        {gateway + "securityContext.seLinuxOptions", map[string]any{}, "seLinuxOptions: " + forbidden},
		"a container before it with privileges":    {pod + "initContainers", []any{map[string]any{"name": "a", "securityContext": map[string]any{"privileged": true}}}, "initContainers[0].securityContext.privileged: Invalid value"},
		"a port of the host":                       {gateway + "ports.0.hostPort", 80, "hostPort: " + forbidden},
		"a probe of another host":                  {gateway + "livenessProbe.httpGet.host", "192.0.2.1", "httpGet.host: " + forbidden},
		"a command at the end":                     {gateway + "lifecycle", map[string]any{}, "lifecycle: " + forbidden},
		"another Secret in the environment":        {gateway + "env", []any{map[string]any{"name": "A", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "a", "key": "b"}}}}, "env[0].valueFrom.secretKeyRef: " + forbidden},
		"all of a Secret in the environment":       {gateway + "envFrom", []any{}, "envFrom: " + forbidden},
		"another Secret in a volume":               {pod + "volumes.0.secret.secretName", "kubeconfig", `secretName: Invalid value: "kubeconfig": must be one of [gw-milan-keys]`},
		"another Secret, by the peer's words":      {pod + "volumes.0.secret.secretName", "{{ .ClusterID }}", `secretName: Invalid value: "milan": must be one of [gw-milan-keys]`},
		"a Secret that is no text":                 {pod + "volumes.0.secret.secretName", map[string]any{}, "secretName: Invalid value"},
		"a folder of the host":                     {pod + "volumes", []any{map[string]any{"name": "a", "hostPath": map[string]any{"path": "/"}}}, `hostPath.path: Invalid value: "/": must be one of [/dev/net/tun]`},
		"a folder of the host that begins alike":   {pod + "volumes", []any{map[string]any{"name": "a", "hostPath": map[string]any{"path": "/dev/net/tun/../.."}}}, "hostPath.path: Invalid value"},
		"a device as a folder":                     {pod + "volumes", []any{map[string]any{"name": "a", "hostPath": map[string]any{"path": "/dev/net/tun", "type": "DirectoryOrCreate"}}}, `hostPath.type: Invalid value: "DirectoryOrCreate": must be one of [CharDevice]`},
		"a claim":                                  {pod + "volumes", []any{map[string]any{"name": "a", "persistentVolumeClaim": map[string]any{"claimName": "a"}}}, "persistentVolumeClaim: " + forbidden},
		"several volumes in one":                   {pod + "volumes", []any{map[string]any{"name": "a", "projected": map[string]any{}}}, "projected: " + forbidden},
		"a volume of a driver":                     {pod + "volumes", []any{map[string]any{"name": "a", "csi": map[string]any{}}}, "csi: " + forbidden},
		"a path in a volume from the environment":  {gateway + "volumeMounts.0.subPathExpr", "$(A)", "subPathExpr: " + forbidden},
		"a pod that ends":                          {pod + "restartPolicy", "Never", `restartPolicy: Invalid value: "Never"`},
		"addresses of others in the Service":       {"spec.service.spec.externalIPs", []any{"10.0.0.1"}, "externalIPs: " + forbidden},
		"another name behind the Service":          {"spec.service.spec.externalName", "example.com", "externalName: " + forbidden},
		"a Service that is only a name":            {"spec.service.spec.type", "ExternalName", `type: Invalid value: "ExternalName": must be one of [ClusterIP NodePort LoadBalancer]`},
		"a Service at an address of its own":       {"spec.service.spec.clusterIP", "10.0.0.10", `clusterIP: Invalid value: "10.0.0.10"`},
		"a Service of another namespace":           {"spec.service.metadata.namespace", "kube-system", `namespace: Invalid value: "kube-system": must be one of [liqo-tenant-milan]`},
		"a Service of another name":                {"spec.service.metadata.name", "kubernetes", `name: Invalid value: "kubernetes": must be one of [milan gw-milan]`},
		"an owner":                                 {"spec.service.metadata.ownerReferences", []any{}, "ownerReferences: " + forbidden},
		"a finalizer":                              {"metadata.finalizers", []any{"a/b"}, "metadata.finalizers: " + forbidden},
		"another namespace":                        {"metadata.namespace", "{{ .ClusterID }}", `metadata.namespace: Invalid value: "milan"`},
		"keys of another gateway":                  {"spec.secretRef.name", "other", `secretRef.name: Invalid value: "other"`},
		"a status":                                 {"status", map[string]any{}, "status: " + forbidden},
		"another kind":                             {"kind", "Secret", "kind: " + forbidden},
		"a file of Prometheus":                     {"spec.metrics.serviceMonitor.spec.endpoints.0.bearerTokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token", "bearerTokenFile: " + forbidden},
		"another target of Prometheus":             {"spec.metrics.serviceMonitor.spec.endpoints.0.relabelings", []any{}, "relabelings: " + forbidden},
		"a proxy of Prometheus":                    {"spec.metrics.serviceMonitor.spec.endpoints.0.proxyUrl", "http://a", "proxyUrl: " + forbidden},
		"all namespaces of Prometheus":             {"spec.metrics.serviceMonitor.spec.namespaceSelector", map[string]any{"any": true}, "namespaceSelector.any: " + forbidden},
		"a field that does not exist":              {pod + "hostnetwork", true, "hostnetwork: " + forbidden},
		"a field that does not exist further down": {pod + "affinity", map[string]any{"a": "b"}, `reading what spec.template is rendered to: error unmarshaling JSON: while decoding JSON: json: unknown field "a"`},
		"a text in place of an object":             {"spec.service", "{{ .Name }}", `spec.template.spec.service: Invalid value: "milan": must be an object`},
		"a list in place of an object":             {"spec.service", []any{}, "reading what spec.template is rendered to"},
		"a port that is no number":                 {"spec.service.spec.ports.0.port", "{{ .Name }}", `spec.template.spec.service.spec.ports[0].port: Invalid value: "{{ .Name }}": renders to "milan", which is no number`},
		"a port that is none":                      {"spec.service.spec.ports.0.port", "{{ .Spec.Endpoint.LoadBalancerIP }}", `renders to "", which is no number; a key that begins with ? is left out where there is none`},
		"a port that does not fit":                 {"spec.service.spec.ports.0.port", "99999999999", `renders to "99999999999", which is no number`},
		"a word in place of true":                  {gateway + "securityContext.readOnlyRootFilesystem", "yes", `renders to "yes", which is neither true nor false`},
		"a key with and without ?":                 {"spec.service.spec.?type", "NodePort", `spec.template.spec.service.spec.type: Duplicate value: "type"`},
		"a key that hides behind ?":                {pod + "?hostNetwork", true, "hostNetwork: Invalid value"},
		"a field that is not known":                {gateway + "args", []any{"{{ .Spec.Endpoint.Ports }}"}, "args[0]: Invalid value: \"{{ .Spec.Endpoint.Ports }}\": there is no field Ports; there are LoadBalancerIP, NodePort, Port, ServiceType"},
		"a template that does not end, with its ?": {"spec.service.spec.?loadBalancerIP", "{{ .Name", "loadBalancerIP: Invalid value: \"{{ .Name\": 1: unclosed action"},
	} {
		t.Run(name, func(t *testing.T) {
			template := &networkingv1beta1.WgGatewayServerTemplate{}
			read(t, "server.yaml", template)
			var object map[string]any
			if err := json.Unmarshal(template.Spec.Template.Raw, &object); err != nil {
				t.Fatal(err)
			}
			put(t, object, tc.path, tc.value)
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			template.Spec.Template = runtime.RawExtension{Raw: raw}
			rendered, err := Server(template, &server, data)
			if err == nil {
				text, _ := yaml.Marshal(rendered)
				t.Fatalf("is rendered to\n%s", text)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("fails with\n  %v\nwant\n  %s", err, tc.want)
			}
		})
	}
}

func TestAClientHasNoService(t *testing.T) {
	template := &networkingv1beta1.WgGatewayClientTemplate{Spec: networkingv1beta1.WgGatewayClientTemplateSpec{Template: runtime.RawExtension{Raw: []byte(`{"spec":{"service":{}}}`)}}}
	if _, err := Client(template, &client, data); err == nil || err.Error() != "spec.template.spec.service: "+forbidden {
		t.Errorf("fails with %v", err)
	}
}

// A field of the list that does not exist would be one that was meant to be another.
func TestAllowedFieldsExist(t *testing.T) {
	seen := 0
	var walk func(path string, allowed fields, target reflect.Type)
	walk = func(path string, allowed fields, target reflect.Type) {
		for name, below := range allowed {
			seen++
			found := fieldOf(target, name)
			if found == nil {
				t.Errorf("there is no field %s.%s", path, name)
				continue
			}
			for direct(found).Kind() == reflect.Slice {
				found = elementOf(found)
			}
			// What a ServiceMonitor has is not known here.
			if deeper, isObject := below.(fields); isObject && !ownReader(direct(found)) {
				walk(path+"."+name, deeper, found)
			}
		}
	}
	walk("WgGatewayServer", serverFields, reflect.TypeFor[networkingv1beta1.WgGatewayServer]())
	walk("WgGatewayClient", clientFields, reflect.TypeFor[networkingv1beta1.WgGatewayClient]())
	if seen < 200 {
		t.Errorf("only %d fields were looked at", seen)
	}
}

func TestTexts(t *testing.T) {
	root := plain(reflect.ValueOf(Data{Name: "milan", ClusterID: "", Spec: client.Spec}))
	for text, want := range map[string]string{
		"":                                                  "",
		"no template":                                       "no template",
		"{{ .Name }}":                                       "milan",
		"a{{- .Name -}} b":                                  "amilanb",
		"{{ .Name }}{{/* not seen */}}":                     "milan",
		"{{ .ClusterID }}":                                  "",
		"{{ .Spec.Endpoint.Port }}":                         "51840",
		"{{ (.Spec).Endpoint.Port }}":                       "51840",
		"{{ .Spec.SecretRef.Name }}":                        "",
		"{{ not .Name }}":                                   "false",
		"{{ eq .Name `turin` `milan` }}":                    "true",
		"{{ ne .Name `milan` }}":                            "false",
		"{{ lt .Spec.Endpoint.Port 1024 }}":                 "false",
		"{{ le 1 1 }}{{ ge 1 2 }}{{ gt `b` `a` }}":          "truefalsetrue",
		"{{ eq true false }}":                               "false",
		"{{ or .ClusterID .Name }}":                         "milan",
		"{{ and .ClusterID .Name }}":                        "",
		"{{ len .Name }}":                                   "5",
		"{{ index .Spec.Endpoint.Addresses 1 }}":            "gw.example.com",
		"{{ index .Spec `MTU` }}":                           "0",
		"{{ print `a` 1 true }}":                            "a1true",
		"{{ if .ClusterID }}a{{ else if .Name }}b{{ end }}": "b",
		"{{ with .Spec.Endpoint }}{{ .Port }}{{ $.Name }}{{ end }}":            "51840milan",
		"{{ range .Spec.Endpoint.Addresses }}<{{ . }}>{{ else }}none{{ end }}": "<192.0.2.1><gw.example.com>",
		"{{ range .Spec.ClientTemplateRef }}a{{ end }}":                        "fails: .Spec.ClientTemplateRef is no list",
		"{{ range 1000000000 }}{{ end }}":                                      "fails: 1000000000 is no list",
		"{{ range $i, $a := .Spec.Endpoint.Addresses }}{{ $a }}{{ end }}":      "fails: variables are not known here",
		"{{ $a := .Name }}{{ $a }}":                                            "fails: variables are not known here",
		"{{ define `a` }}{{ template `a` }}{{ end }}{{ template `a` }}":        "fails: definitions are not known here",
		"{{ template `text` }}":                                                "fails: {{template \"text\"}} is not known here",
		"{{ block `text` . }}{{ end }}":                                        "fails: not known here",
		"{{ range .Spec.Endpoint.Addresses }}{{ break }}{{ end }}":             "fails: {{break}} is not known here",
		"{{ printf `%999999d` 1 }}":                                            `fails: function "printf" not defined`,
		"{{ call .Name }}":                                                     `fails: function "call" not defined`,
		"{{ .Name.String }}":                                                   "fails: there is no field String",
		"{{ .Spec.DeepCopy }}":                                                 "fails: there is no field DeepCopy; there are ClientTemplateRef, Endpoint, MTU, SecretRef",
		"{{ .Spec }}":                                                          "fails: is no text, number, true or false",
		"{{ .Name 1 }}":                                                        "fails: .Name is no function",
		"{{ 1.5 }}":                                                            "fails: 1.5 is no whole number",
		"{{ index .Spec.Endpoint.Addresses 2 }}":                               "fails: a list of 2 has no item 2",
		"{{ index .Spec.Endpoint.Addresses -1 }}":                              "fails: a list of 2 has no item -1",
		"{{ index .Name 0 }}":                                                  "fails: is neither a list nor a map",
		"{{ eq .Name 1 }}":                                                     "fails: values of these types cannot be compared",
		"{{ eq .Spec .Spec }}":                                                 "fails: values of these types cannot be compared",
		"{{ eq .Name }}":                                                       "fails: takes another number of arguments",
		"{{ len 1 }}":                                                          "fails: has no length",
		"{{ .Name ":                                                            "fails: unclosed action",
		"{{ if .Name }}" + strings.Repeat("a", maxText):                        "fails: at most 4096 bytes",
		"{{ range .Spec.Endpoint.Addresses }}" + strings.Repeat("a", 3000) + "{{ end }}": "fails: at most 4096 bytes",
	} {
		got, err := (&texts{root: root, steps: maxSteps}).evaluate(text)
		if failed, fails := strings.CutPrefix(want, "fails: "); fails {
			if err == nil || !strings.Contains(err.Error(), failed) {
				t.Errorf("%.80s\n  gives %q and %v, want the error %q", text, got, err, failed)
			}
		} else if err != nil || got != want {
			t.Errorf("%.80s\n  gives %q and %v, want %q", text, got, err, want)
		}
	}
}

// However lists lie in lists, and however many texts there are, rendering ends.
func TestRenderingEnds(t *testing.T) {
	list := make([]any, 64)
	for i := range list {
		list[i] = "a"
	}
	root := map[string]any{"List": list}
	nested := strings.Repeat("{{ range $.List }}", 20) + strings.Repeat("{{ end }}", 20)
	if _, err := (&texts{root: root, steps: maxSteps}).evaluate(nested); err != errTooMuch { //nolint:errorlint // Nothing is wrapped around it.
		t.Errorf("lists in lists end with %v", err)
	}
	many := make([]any, maxSteps+1)
	for i := range many {
		many[i] = fmt.Sprintf("{{ print %d }}", i)
	}
	r := &renderer{texts: texts{root: root, steps: maxSteps}}
	if r.value(many, nil, nil); !slices.ContainsFunc(r.problems.ToAggregate().Errors(), func(err error) bool { return strings.Contains(err.Error(), errTooMuch.Error()) }) {
		t.Error("very many texts are rendered")
	}
}

func FuzzTexts(f *testing.F) {
	for _, seed := range []string{"{{ .Name }}", "{{ range .Spec.Endpoint.Addresses }}{{ . }}{{ end }}", "{{ index .Spec.Endpoint.Addresses 0 | print }}", "{{ if and (eq .Name `a`) true }}a{{ else }}b{{ end }}", "{{ with $ }}{{ .Name }}{{ end }}"} {
		f.Add(seed)
	}
	root := plain(reflect.ValueOf(Data{Name: "milan", Spec: client.Spec}))
	f.Fuzz(func(t *testing.T, text string) {
		got, err := (&texts{root: root, steps: maxSteps}).evaluate(text)
		if err != nil && got != "" {
			t.Errorf("fails with %v and gives %q", err, got)
		}
		if len(got) > max(maxText, len(text)) {
			t.Errorf("gives %d bytes", len(got))
		}
	})
}
