// Package moving holds the commands that move something to another place: move volume. They are glue around pkg/cli/action.
package moving

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"liqo.io/liqo/pkg/cli/action/move"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/session"
)

const volumeLong = `Move a volume to another node.

The data is copied to a new volume on the target node, physical or virtual, and both are
compared by checksums. Then the claim is taken away, so that nobody can write to the old
volume, and that is compared once more. If nothing was written since, the claim is made
again with the new volume and the old one is given up as its reclaim policy says, else the
claim gets the old one back. No pod may use the volume meanwhile.

Interrupted before the last comparison, the claim gets its old volume back, at once or when
the same command is run again, which then copies anew. Interrupted after it, the same
command ends the move.`

const volumeExample = `  # Move the volume of a database to the provider milan
  {{ .Executable }} move volume data-db-0 --namespace shop --target-node milan

  # Back to a node of this cluster
  {{ .Executable }} move volume data-db-0 --namespace shop --target-node worker-1`

type volumeFlags struct {
	namespace, node, image, format                   string
	cpuRequest, cpuLimit, memoryRequest, memoryLimit string
	timeout                                          time.Duration
}

// Commands returns the family's commands.
func Commands(s *session.Session) []*cobra.Command {
	parent := &cobra.Command{Use: "move", Short: "Move something to another place", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		return failure.Misuse("liqoctl move volume NAME --target-node NODE", "say what to move")
	}}
	f := &volumeFlags{}
	command := &cobra.Command{
		Use: "volume PVC", Aliases: []string{"pvc"}, Short: "Move a volume to another node", Long: volumeLong, Example: volumeExample, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return f.run(s, command, args[0]) },
	}
	set := command.Flags()
	set.StringVarP(&f.namespace, "namespace", "n", corev1.NamespaceDefault, "Namespace of the claim")
	set.StringVar(&f.node, "target-node", "", "Node that the volume moves to, physical or virtual (required)")
	set.StringVar(&f.image, "image", "", "Image of the helper pods (default: the installation's value storage.mover.image)")
	set.StringVar(&f.cpuRequest, "containers-cpu-requests", "", "CPU that the helper pods ask for")
	set.StringVar(&f.cpuLimit, "containers-cpu-limits", "", "CPU that the helper pods may use")
	set.StringVar(&f.memoryRequest, "containers-ram-requests", "", "Memory that the helper pods ask for")
	set.StringVar(&f.memoryLimit, "containers-ram-limits", "", "Memory that the helper pods may use")
	session.OfV1(set, "restic-image", "", "volumes are moved without restic, by the pods of --image")
	session.OfV1(set, "restic-server-image", "", "volumes are moved without restic, by the pods of --image")
	s.TimeoutFlag(set, &f.timeout, move.DefaultTimeout)
	s.OutputFlag(command, &f.format, "Write what was moved to standard output")
	parent.AddCommand(command)
	return []*cobra.Command{parent}
}

func (f *volumeFlags) run(s *session.Session, command *cobra.Command, claim string) error {
	if err := session.Positive(f.timeout); err != nil {
		return err
	}
	if f.node == "" {
		return failure.Misuse("add --target-node NODE", "the target node is missing")
	}
	resources, err := f.resources()
	if err != nil {
		return err
	}
	cluster, err := s.Cluster()
	if err != nil {
		return err
	}
	report, err := move.Volume(command.Context(), move.Options{
		Cluster: cluster, Namespace: f.namespace, Claim: claim, TargetNode: f.node, Image: f.image, Resources: resources,
		Timeout: f.timeout, Observer: s.Observer(),
	})
	if err != nil {
		return err
	}
	return s.Show(f.format, report, func() { s.Say(fmt.Sprintf("The volume of %s is now on node %s.", report.Claim, f.node)) })
}

func (f *volumeFlags) resources() (corev1.ResourceRequirements, error) {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, flag := range []struct {
		name, text string
		list       corev1.ResourceList
		resource   corev1.ResourceName
	}{
		{"cpu-requests", f.cpuRequest, r.Requests, corev1.ResourceCPU}, {"cpu-limits", f.cpuLimit, r.Limits, corev1.ResourceCPU},
		{"ram-requests", f.memoryRequest, r.Requests, corev1.ResourceMemory}, {"ram-limits", f.memoryLimit, r.Limits, corev1.ResourceMemory},
	} {
		if flag.text == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(flag.text)
		if err != nil {
			return r, failure.Misuse("write it as Kubernetes does, for example 500m or 128Mi", "--containers-%s %s: %w", flag.name, flag.text, err)
		}
		flag.list[flag.resource] = quantity
	}
	return r, nil
}
