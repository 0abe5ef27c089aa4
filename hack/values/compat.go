package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// compat is what charts/liqo/files/compat.yaml says of values of Liqo v1.
type compat struct {
	WithoutEffect []struct {
		Why    string    `yaml:"why"`
		Values yaml.Node `yaml:"values"`
		Always bool      `yaml:"always"`
	} `yaml:"withoutEffect"`
	Deprecated []struct {
		Path string `yaml:"path"`
		Now  string `yaml:"now"`
	} `yaml:"deprecated"`
	Defaults  []reasons `yaml:"defaults"`
	Arguments []reasons `yaml:"arguments"`
}

// reasons is why something is not as it was in v1.
type reasons struct {
	Why   string   `yaml:"why"`
	Paths []string `yaml:"paths"`
}

func readCompat(chart string) (*compat, error) {
	raw, err := os.ReadFile(filepath.Join(chart, "files", "compat.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading what is known of Liqo v1's values: %w", err)
	}
	c := &compat{}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil {
		return nil, fmt.Errorf("parsing what is known of Liqo v1's values: %w", err)
	}
	return c, nil
}

// extend makes the schema take the values that are known from v1.
func (c *compat) extend(root *schema) error {
	for _, one := range c.WithoutEffect {
		if err := root.know(&one.Values, "", one.Why); err != nil {
			return err
		}
	}
	for _, one := range c.Deprecated {
		now := *root.find(one.Now)
		now.Description = "Deprecated: it is " + one.Now + " now."
		keys := strings.Split(one.Path, ".")
		at := root
		for _, key := range keys[:len(keys)-1] {
			at = at.child(key)
		}
		at.Properties[keys[len(keys)-1]] = &now
	}
	return nil
}

// know adds values without effect. They may be of any type: nobody reads them.
func (s *schema) know(values *yaml.Node, path, why string) error {
	for i := 0; i+1 < len(values.Content); i += 2 {
		key, value := values.Content[i].Value, values.Content[i+1]
		below := strings.TrimPrefix(path+"."+key, ".")
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
			if err := s.child(key).know(value, below, why); err != nil {
				return err
			}
			continue
		}
		if s.Properties[key] != nil {
			return fmt.Errorf("value %s has an effect, and files/compat.yaml says that it has none", below)
		}
		s.Properties[key] = &schema{Description: "No effect here: " + why}
	}
	return nil
}

// child is the schema of a map of values, made if there is none.
func (s *schema) child(key string) *schema {
	below := s.Properties[key]
	if below == nil {
		below = &schema{Type: "object"}
		s.Properties[key] = below
	}
	if below.Properties == nil {
		below.AdditionalProperties, below.Properties = false, map[string]*schema{}
	}
	return below
}

func (s *schema) find(path string) *schema {
	for _, key := range strings.Split(path, ".") {
		s = s.Properties[key]
	}
	return s
}

// leaves are the paths of values, in the order in which they stand.
func leaves(values *yaml.Node, path string) (paths []string) {
	for i := 0; i+1 < len(values.Content); i += 2 {
		below := strings.TrimPrefix(path+"."+values.Content[i].Value, ".")
		if value := values.Content[i+1]; value.Kind == yaml.MappingNode && len(value.Content) > 0 {
			paths = append(paths, leaves(value, below)...)
		} else {
			paths = append(paths, below)
		}
	}
	return paths
}

func (c *compat) markdown() []byte {
	var out bytes.Buffer
	row := func(paths []string, why string) {
		fmt.Fprintf(&out, "| `%s` | %s |\n", strings.Join(paths, "`, `"), strings.ReplaceAll(why, "|", "\\|"))
	}
	out.WriteString(`
## Values of Liqo v1 that have no effect

They belong to parts that are not here. A file of values for Liqo v1 is taken with them; who gives one that is not as it was by default in v1 is told, by
'liqoctl install' and by what 'helm install' says at its end.

| values | why, and what does it here |
|---|---|
`)
	for _, one := range c.WithoutEffect {
		row(leaves(&one.Values, ""), one.Why)
	}
	out.WriteString("\n## Deprecated paths\n\n| value | now |\n|---|---|\n")
	for _, one := range c.Deprecated {
		row([]string{one.Path}, "`"+one.Now+"`")
	}
	out.WriteString("\n## Defaults that are not those of Liqo v1\n\n| values | why |\n|---|---|\n")
	for _, one := range c.Defaults {
		row(one.Paths, one.Why)
	}
	out.WriteString("\n| arguments of virtual kubelets (`virtualKubelet.extra.args`) | why |\n|---|---|\n")
	for _, one := range c.Arguments {
		row(one.Paths, one.Why)
	}
	return out.Bytes()
}
