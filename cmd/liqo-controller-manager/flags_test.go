package main

import (
	"testing"

	chartflags "liqo.io/liqo/test/flags"
)

func TestTheChartKnowsTheFlags(t *testing.T) {
	chartflags.Fresh(t, "liqo-controller-manager", newCommand().LocalFlags())
	chartflags.Fresh(t, "liqo-certificates", newCertificatesCommand().LocalFlags())
}
