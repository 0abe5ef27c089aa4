package greed

import (
	"testing"

	"liqo.io/liqo/test/integration/world"
)

// env is what tests of this folder have, one after the other.
var env world.World

func TestMain(m *testing.M) { world.OneByOne(m, &env) }
