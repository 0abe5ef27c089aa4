// Command tiny is the smallest binary an image can hold: tests assemble it instead of the real ones.
package main

import (
	"os"

	"liqo.io/liqo/pkg/version"
)

func main() {
	_, _ = os.Stdout.WriteString(version.Version + " " + version.Commit + "\n")
}
