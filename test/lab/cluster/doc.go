// Package cluster starts, repairs, breaks and stops the clusters of a lab. It is
// what tests call:
//
//	lab, err := cluster.Up(ctx, spec.Demo(1), step.Silent{})
//	config, err := lab.Config("rome")
//	err = lab.Load(ctx, []string{"images.tar"}, "rome", "milan")
//	err = lab.CutLink(ctx, "rome", "milan")
//	err = lab.Kill("rome/kube-apiserver")
//	err = lab.Down(ctx, step.Silent{})
//
// Up is idempotent: it does nothing for a healthy lab, starts again what died
// and rebuilds what a reboot took, keeping the clusters' data. A lab outlives the
// process that started it. Components are named <cluster>/<program> and
// <cluster>/<node>/<program>; nobody restarts them but Up, Restart and StartNode.
package cluster
