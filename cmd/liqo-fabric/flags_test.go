package main

import (
	"testing"

	chartflags "liqo.io/liqo/test/flags"
)

func TestTheChartKnowsTheFlags(t *testing.T) {
	chartflags.Fresh(t, "liqo-fabric", newCommand().LocalFlags())
}
