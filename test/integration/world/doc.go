// Package world gives tests of whole systems two clusters with our binaries at work, with exactly the rights that the chart and the
// controllers give them: rome is the consumer and milan the provider, each with simulated nodes, and rome is peered with milan once.
// Deployments of ours are played by kwok; controller managers and virtual kubelets run as processes.
//
// Contract:
//   - A folder of tests is of one of two kinds, which its TestMain says. Tests of a folder of SideBySide all begin with t.Parallel. They
//     are handed Shared, which has no way to stop, freeze or reconfigure a process or to cut a link. They touch their own namespaces,
//     tenants and objects, and count what is written there alone. Who breaks this fails the run: before it, if a test does not call
//     t.Parallel; after it, if a process ended or was started, or if settings that all share are not what they were.
//   - Tests of a folder of OneByOne run one after the other and are handed World, which can do all of that. They leave the peering as they
//     found it.
//   - The first test that asks for the peering makes it.
//   - Functions of this package fail the test with what was waited for. None of them has state, but for Shared and World.
package world
