package agent

import (
	"slices"
	"strings"

	"liqo.io/liqo/pkg/dataplane"
)

// Differences are what is wanted and not in the kernel (-), and what is there and not wanted (+), line by line; empty if there are none.
func Differences(wanted, there dataplane.State) string {
	missing, surplus := places(wanted.String()), places(there.String())
	var b strings.Builder
	for _, line := range surplus.without(missing) {
		b.WriteString("+ " + line + "\n")
	}
	for _, line := range missing.without(surplus) {
		b.WriteString("- " + line + "\n")
	}
	if b.Len() == 0 && !slices.Equal(missing.rules(), surplus.rules()) {
		return "rules of the firewall are in another order\n"
	}
	return b.String()
}

type lines []string

// places are the lines of a State's text, each after what it stands in.
func places(text string) lines {
	var all lines
	var around []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		bare := strings.TrimLeft(line, "\t")
		depth := min(len(line)-len(bare), len(around))
		around = around[:depth]
		if bare == "}" {
			continue
		}
		name := strings.TrimSuffix(bare, " {")
		all = append(all, strings.Join(append(around[:depth:depth], name), ": "))
		around = append(around, name)
	}
	return all
}

// rules are the lines of the firewall's chains: of all that there is, these alone have an order.
func (l lines) rules() lines {
	return slices.DeleteFunc(slices.Clone(l), func(line string) bool { return !strings.Contains(line, ": chain ") })
}

// without are the lines that the others have not, as often as that.
func (l lines) without(others lines) lines {
	count := map[string]int{}
	for _, line := range others {
		count[line]++
	}
	var rest lines
	for _, line := range l {
		if count[line] > 0 {
			count[line]--
			continue
		}
		rest = append(rest, line)
	}
	return rest
}
