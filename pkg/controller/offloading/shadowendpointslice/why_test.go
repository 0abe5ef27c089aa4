package shadowendpointslice

import (
	"net/netip"
	"strings"
	"testing"
)

func TestWhatIsLeftOutNamesTheWayOut(t *testing.T) {
	accepted := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	for name, tc := range map[string]struct {
		omitted []string
		know    Knowledge
		transit bool
		words   string
	}{
		"pods of another provider":       {[]string{"10.9.0.1"}, Knowledge{Accepted: accepted}, true, "1 addresses lie in no range"},
		"beside a cloud's metadata":      {[]string{"169.254.169.254", "10.9.0.1"}, Knowledge{Accepted: accepted}, true, "169.254.169.254 is no pod's"},
		"nothing but a cloud's":          {[]string{"169.254.169.254"}, Knowledge{Accepted: accepted}, false, "169.254.169.254 is no pod's"},
		"the consumer announced nothing": {[]string{"10.9.0.1"}, Knowledge{}, false, "nothing was announced"},
	} {
		t.Run(name, func(t *testing.T) {
			got := why(tc.omitted, tc.know)
			if strings.Contains(got, "liqoctl network connect --transit") != tc.transit || !strings.Contains(got, tc.words) {
				t.Errorf("it says %q", got)
			}
		})
	}
}
