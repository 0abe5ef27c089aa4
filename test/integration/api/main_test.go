package api

import (
	"testing"

	"liqo.io/liqo/test/integration/fixture"
)

var env fixture.Environment

func TestMain(m *testing.M) { fixture.Main(m, &env, fixture.Options{}) }
