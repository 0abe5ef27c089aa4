package api

import (
	"flag"
	"testing"

	"liqo.io/liqo/test/integration/fixture"
)

var env fixture.Environment

// sideBySide is how many tests run at a time, unless -parallel says otherwise: they wait for API servers, whatever the processors.
const sideBySide = "8"

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", sideBySide)
	fixture.Main(m, &env, fixture.Options{})
}
