package install

import (
	"fmt"
	"math/rand/v2"
)

var (
	adjectives = []string{
		"amber", "bold", "brave", "bright", "calm", "clever", "crisp", "eager", "fair", "gentle", "golden", "happy", "honest", "jolly",
		"keen", "kind", "lively", "lucky", "merry", "mild", "noble", "proud", "quick", "quiet", "rapid", "silver", "smart", "steady",
		"sunny", "swift", "warm", "wise",
	}
	animals = []string{
		"badger", "beaver", "bison", "crane", "deer", "dolphin", "eagle", "falcon", "finch", "fox", "gecko", "hare", "heron", "ibex",
		"jay", "koala", "lark", "lemur", "lynx", "marten", "mole", "moose", "otter", "owl", "panda", "puffin", "robin", "seal",
		"stork", "swan", "tapir", "wren",
	}
)

// RandomID makes up a cluster ID that people can say, and that no two clusters share by accident.
func RandomID() string {
	return fmt.Sprintf("%s-%s-%06x", adjectives[rand.IntN(len(adjectives))], animals[rand.IntN(len(animals))], rand.IntN(1<<24))
}
