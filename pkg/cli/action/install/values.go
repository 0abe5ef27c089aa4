package install

import (
	"slices"
	"strings"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/helm"
)

// providerLabel is the cluster label that tells consumers where their virtual node runs.
const providerLabel = "liqo.io/provider"

// given are the values that the user gave, now or at the present installation: the layers above what is detected.
func (p *Plan) given() (map[string]any, error) {
	o := &p.options
	layers := []map[string]any{}
	if p.present != nil && !o.ResetValues {
		layers = append(layers, withoutProvider(p.present.Values))
	}
	layers = append(layers, o.explicit())
	layers = append(layers, o.Values...)
	values := helm.Merge(layers...)
	for _, assignment := range o.Set {
		if err := helm.Set(values, assignment); err != nil {
			return nil, failure.Misuse("write it as KEY=VALUE", "%w", err)
		}
	}
	for _, assignment := range o.SetString {
		if err := helm.SetString(values, assignment); err != nil {
			return nil, failure.Misuse("write it as KEY=VALUE", "%w", err)
		}
	}
	if only := text(values, "ipam", "podCIDR"); only != "" && strings.Join(list(values, "ipam", "podCIDRs"), "") == "" {
		put(values, []any{only}, "ipam", "podCIDRs")
	}
	for _, path := range found {
		if text(values, path...) == "" && strings.Join(list(values, path...), "") == "" {
			silence(values, at(o.explicit(), path...), path...)
		}
	}
	return values, nil
}

// found are the values that flags or the cluster say where they are empty: a file with all defaults has them so.
var found = [][]string{{"ipam", "podCIDRs"}, {"ipam", "serviceCIDR"}, {"apiServer", "address"}}

// silence makes what stands at a path what flags say, or nothing.
func silence(values map[string]any, flags any, path ...string) {
	if flags != nil {
		put(values, flags, path...)
		return
	}
	if table, is := at(values, path[:len(path)-1]...).(map[string]any); is {
		delete(table, path[len(path)-1])
	}
}

// put sets what stands at a path.
func put(values map[string]any, value any, path ...string) {
	for _, key := range path[:len(path)-1] {
		next, ok := values[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			values[key] = next
		}
		values = next
	}
	values[path[len(path)-1]] = value
}

// withoutProvider leaves the label out that an earlier 'install PROVIDER', or what was detected then, put into the values: what is said or detected
// now counts. One that the user made up stays.
func withoutProvider(values map[string]any) map[string]any {
	word := Provider(text(values, "discovery", "config", "clusterLabels", providerLabel))
	if !slices.Contains([]Provider{Generic, Kubeadm, Kind, K3s}, word) {
		return values
	}
	values = helm.Merge(values)
	labels, _ := at(values, "discovery", "config", "clusterLabels").(map[string]any)
	delete(labels, providerLabel)
	return values
}

// explicit are the values that options other than values stand for.
func (o *Options) explicit() map[string]any {
	values := map[string]any{}
	if len(o.Wishes.PodCIDRs) > 0 {
		put(values, anyList(o.Wishes.PodCIDRs), "ipam", "podCIDRs")
	}
	if o.Wishes.ServiceCIDR != "" {
		put(values, o.Wishes.ServiceCIDR, "ipam", "serviceCIDR")
	}
	if o.Wishes.APIServerURL != "" {
		put(values, o.Wishes.APIServerURL, "apiServer", "address")
	}
	if len(o.ReservedSubnets) > 0 {
		put(values, anyList(o.ReservedSubnets), "ipam", "reservedSubnets")
	}
	if len(o.ClusterLabels) > 0 {
		labels := map[string]any{}
		for key, value := range o.ClusterLabels {
			labels[key] = value
		}
		put(values, labels, "discovery", "config", "clusterLabels")
	}
	if o.Wishes.Provider != Auto {
		put(values, string(o.Wishes.Provider), "discovery", "config", "clusterLabels", providerLabel)
	}
	if o.SharingPercentage != nil {
		put(values, int64(*o.SharingPercentage), "offloading", "sharingPercentage")
	}
	if o.EnableMetrics {
		put(values, true, "metrics", "enabled")
	}
	return values
}

// merge puts what was given over what was detected; the cluster ID is decided already.
func (p *Plan) merge(given map[string]any) map[string]any {
	ipam := map[string]any{}
	if len(p.Settings.PodCIDRs) > 0 {
		ipam["podCIDRs"] = anyList(p.Settings.PodCIDRs)
	}
	if p.Settings.ServiceCIDR != "" {
		ipam["serviceCIDR"] = p.Settings.ServiceCIDR
	}
	detected := map[string]any{
		"ipam":      ipam,
		"discovery": map[string]any{"config": map[string]any{"clusterLabels": map[string]any{providerLabel: string(p.Settings.Provider)}}},
	}
	if p.Settings.APIServerURL != "" {
		detected["apiServer"] = map[string]any{"address": p.Settings.APIServerURL}
	}
	decided := map[string]any{"discovery": map[string]any{"config": map[string]any{"clusterID": p.ClusterID}}}
	return helm.Merge(detected, given, decided)
}

// read takes the settings back from the values, so that checks and reports are about what will be installed.
func (p *Plan) read() {
	if cidrs := list(p.Values, "ipam", "podCIDRs"); len(cidrs) > 0 && !equal(cidrs, p.Settings.PodCIDRs) {
		p.Settings.PodCIDRs, p.Settings.Sources["podCIDRs"] = cidrs, "given"
	}
	if cidr := text(p.Values, "ipam", "serviceCIDR"); cidr != p.Settings.ServiceCIDR {
		p.Settings.ServiceCIDR, p.Settings.Sources["serviceCIDR"] = cidr, "given"
	}
	if address := text(p.Values, "apiServer", "address"); address != p.Settings.APIServerURL {
		p.Settings.APIServerURL, p.Settings.Sources["apiServerURL"] = address, "given"
	}
}

// networking tells whether the network module is to run: as the values say, or the chart if they do not.
func (p *Plan) networking() bool {
	enabled, _ := at(helm.Merge(p.chart.Defaults(), p.Values), "networking", "enabled").(bool)
	return enabled
}

// ranges are those of the network module.
func (p *Plan) ranges() Ranges {
	return Ranges{
		External: text(p.Values, "ipam", "externalCIDR"), Internal: text(p.Values, "ipam", "internalCIDR"),
		Pools: list(p.Values, "ipam", "pools"), Reserved: list(p.Values, "ipam", "reservedSubnets"),
	}
}

func at(values map[string]any, path ...string) any {
	var value any = values
	for _, key := range path {
		table, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = table[key]
	}
	return value
}

// text is the string at a path, empty if there is none.
func text(values map[string]any, path ...string) string {
	value, _ := at(values, path...).(string)
	return value
}

// list is the list of strings at a path.
func list(values map[string]any, path ...string) []string {
	items, _ := at(values, path...).([]any)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		if value, ok := item.(string); ok {
			texts = append(texts, value)
		}
	}
	return texts
}

func anyList(texts []string) []any {
	items := make([]any, len(texts))
	for i, text := range texts {
		items[i] = text
	}
	return items
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
