package upstream

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed testdata
var testdata embed.FS

// Sets of tests.
const (
	// Conformance is what every cluster has to pass, as far as it is about pods.
	Conformance = "conformance"
	// Node is what tells more about pods: sidecars, hooks, probes.
	Node = "node"
)

// Test is one of Kubernetes' tests.
type Test struct {
	// Name is its full name.
	Name string
	// Set is Conformance or Node.
	Set string
	// Quick says that it is one of the few that are fast and speak for the others.
	Quick bool
	// Fails says why it is expected to fail on a virtual node; empty when it has to pass.
	Fails string
	// FailsEverywhere says that it fails in the lab's clusters, with or without a virtual node.
	FailsEverywhere bool
}

// expectation is one expected failure, as it is written down.
type expectation struct {
	Test       string `json:"test"`
	Reason     string `json:"reason"`
	Everywhere bool   `json:"everywhere,omitempty"`
}

// Tests returns the tests that are run, by set and name.
func Tests() []Test {
	expected, quick := expectations(), lines("quick.txt")
	var tests []Test
	for _, set := range []string{Conformance, Node} {
		for _, name := range lines(set + ".txt") {
			t := Test{Name: name, Set: set, Quick: slices.Contains(quick, name)}
			for _, e := range expected {
				if e.Test == name {
					t.Fails, t.FailsEverywhere = e.Reason, e.Everywhere
				}
			}
			tests = append(tests, t)
		}
	}
	return tests
}

// expectations are the expected failures.
func expectations() []expectation {
	var expected []expectation
	if err := yaml.UnmarshalStrict(read("expected.yaml"), &expected); err != nil {
		panic(fmt.Sprintf("the list of expected failures cannot be read: %v", err)) // it is part of the program
	}
	return expected
}

// lines returns the lines of a list that are neither empty nor comments.
func lines(file string) []string {
	var list []string
	for line := range strings.Lines(string(read(file))) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

func read(file string) []byte {
	data, err := testdata.ReadFile("testdata/" + file)
	if err != nil {
		panic(err.Error()) // it is part of the program
	}
	return data
}
