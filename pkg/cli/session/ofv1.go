package session

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqo.io/liqo/pkg/cli/progress"
)

// withoutEffect marks flags of Liqo v1 that have no effect, with why.
const withoutEffect = "liqo.io/without-effect"

// OfV1 registers a flag of Liqo v1 that has no effect here: whoever gives it is told why. Value is its zero value, which says of which type it is.
func OfV1(set *pflag.FlagSet, name string, value any, why string) {
	if _, isSwitch := value.(bool); isSwitch {
		set.Bool(name, false, "Of Liqo v1, without effect: "+why)
	} else {
		set.String(name, "", "Of Liqo v1, without effect: "+why)
	}
	set.Lookup(name).Annotations = map[string][]string{withoutEffect: {why}}
}

// tellOfV1 tells whoever gives flags that have no effect.
func (s *Session) tellOfV1(command *cobra.Command) {
	command.Flags().Visit(func(flag *pflag.Flag) {
		if why := flag.Annotations[withoutEffect]; len(why) > 0 {
			s.Observer().Note(progress.Warning, "", "--"+flag.Name+" has no effect: "+why[0])
		}
	})
}

// MayBeEmpty lets a flag be given empty, as scripts do whose variable is: then it says nothing.
func MayBeEmpty(set *pflag.FlagSet, name string) {
	flag := set.Lookup(name)
	flag.Value = emptyValue{flag.Value}
}

type emptyValue struct{ pflag.Value }

// Set implements pflag.Value.
func (v emptyValue) Set(text string) error {
	if text == "" {
		return nil
	}
	return v.Value.Set(text)
}
