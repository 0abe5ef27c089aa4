package helm

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

// Chart is a chart that can be rendered.
type Chart struct{ loaded *chart.Chart }

// Version returns the chart's version and that of the software it installs.
func (c *Chart) Version() (chartVersion, appVersion string) {
	return c.loaded.Metadata.Version, c.loaded.Metadata.AppVersion
}

// Annotation is what the chart says of itself under a key; empty if it says nothing.
func (c *Chart) Annotation(key string) string { return c.loaded.Metadata.Annotations[key] }

// SetAppVersion makes the chart install another version of the software than it was written for: images without a tag of
// their own take it.
func (c *Chart) SetAppVersion(version string) { c.loaded.Metadata.AppVersion = version }

// Defaults returns a copy of the chart's own values.
func (c *Chart) Defaults() map[string]any {
	return chartutil.CoalesceTables(map[string]any{}, copyValues(c.loaded.Values))
}

// Load reads the chart in a file system, with Chart.yaml at its root.
func Load(files fs.FS) (*Chart, error) {
	var buffered []*loader.BufferedFile
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		buffered = append(buffered, &loader.BufferedFile{Name: path, Data: data})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the built-in chart: %w", err)
	}
	loaded, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, fmt.Errorf("loading the built-in chart: %w", err)
	}
	return &Chart{loaded: loaded}, nil
}

// LoadPath reads the chart in a folder or a .tgz archive.
func LoadPath(path string) (*Chart, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	loaded, err := loader.Load(path)
	if err != nil {
		return nil, fmt.Errorf("loading the chart in %s: %w", path, err)
	}
	return &Chart{loaded: loaded}, nil
}

// Validate compares values with the chart's schema; the error names each key that is wrong.
func (c *Chart) Validate(values map[string]any) error {
	merged, err := chartutil.CoalesceValues(c.loaded, copyValues(values))
	if err != nil {
		return fmt.Errorf("merging the values with the chart's: %w", err)
	}
	if err := chartutil.ValidateAgainstSchema(c.loaded, merged); err != nil {
		return fmt.Errorf("the values do not fit the chart: %s", strings.Join(append(c.unknown(merged), complaints(err.Error())...), "; "))
	}
	return nil
}

// renderedFor is the version of Kubernetes that the chart is rendered for without a cluster: the one that it is tested with.
const renderedFor = "v1.36.0"

// Render renders the chart without any cluster: lookups find nothing. It is keyed by the template's path.
func (c *Chart) Render(name, namespace string, values map[string]any) (map[string]string, error) {
	options := chartutil.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: renderedFor, Major: "1", Minor: "36"}
	complete, err := chartutil.ToRenderValues(c.loaded, copyValues(values), options, capabilities)
	if err != nil {
		return nil, fmt.Errorf("completing the values of Helm release %s/%s: %w", namespace, name, err)
	}
	rendered, err := engine.Render(c.loaded, complete)
	if err != nil {
		return nil, fmt.Errorf("rendering Helm release %s/%s: %s", namespace, name, place.ReplaceAllString(err.Error(), ""))
	}
	return rendered, nil
}

// place is where in a template the chart refused to be rendered, of which users know nothing.
var place = regexp.MustCompile(`execution error at \([^)]*\): `)

// notes is the file of a chart's templates that is for people.
const notes = "/NOTES.txt"

// Manifests is what a chart was rendered to, as one stream of YAML documents.
func Manifests(rendered map[string]string) string {
	var all strings.Builder
	for path, text := range rendered {
		if !strings.HasSuffix(path, notes) {
			all.WriteString("\n---\n" + text)
		}
	}
	return all.String()
}

// Documents are the objects of a kind in a stream of YAML documents. Only those that name the kind are read: most of a chart are definitions,
// which take long.
func Documents(manifests, kind string) (found []string) {
	names := regexp.MustCompile(`kind['"]?\s*:\s*['"]?` + kind + `\b`)
	for _, document := range strings.Split("\n"+manifests, "\n---") {
		if !names.MatchString(document) {
			continue
		}
		var head releaseutil.SimpleHead
		if yaml.Unmarshal([]byte(document), &head) == nil && head.Kind == kind {
			found = append(found, strings.TrimSpace(document))
		}
	}
	slices.Sort(found)
	return found
}

// Notes are the lines of what a chart tells its users at the end that are points of a list.
func Notes(rendered map[string]string) (points []string) {
	for path, text := range rendered {
		if !strings.HasSuffix(path, notes) {
			continue
		}
		for _, line := range strings.Split(text, "\n") {
			if point, is := strings.CutPrefix(line, "  * "); is {
				points = append(points, point)
			}
		}
	}
	return points
}

// complaints are those of the schema, which come as an indented list, but those about unknown keys, for which we have better words.
func complaints(text string) (found []string) {
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- "))
		if line != "" && !strings.HasSuffix(line, ":") && !strings.Contains(line, "additional properties ") {
			found = append(found, line)
		}
	}
	return found
}
