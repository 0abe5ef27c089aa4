package caller

import (
	"crypto/tls"
	"testing"
)

// Metrics are for everybody only where that is asked for: without it there is TLS, and a filter.
func TestServing(t *testing.T) {
	set := func(*tls.Config) {}
	if o := Serving(":8082", false, set); o.BindAddress != ":8082" || !o.SecureServing || o.FilterProvider == nil || len(o.TLSOpts) != 1 {
		t.Errorf("guarded: %+v", o)
	}
	if o := Serving(":8082", true, set); o.BindAddress != ":8082" || o.SecureServing || o.FilterProvider != nil || len(o.TLSOpts) != 0 {
		t.Errorf("plain: %+v", o)
	}
}
