package greed

import (
	"os"
	"testing"

	"liqo.io/liqo/test/integration/world"
)

// env is what tests of this folder have, one after the other.
var env world.World

// TestMain has what it starts collect as ever: these tests measure memory.
func TestMain(m *testing.M) {
	if err := os.Unsetenv("GOGC"); err != nil {
		panic(err)
	}
	world.OneByOne(m, &env)
}
