package offloading

import (
	"testing"

	"liqo.io/liqo/test/integration/world"
)

// env is what tests of this folder share.
var env world.Shared

func TestMain(m *testing.M) { world.SideBySide(m, &env) }
