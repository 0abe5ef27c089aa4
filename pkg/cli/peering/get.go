package peering

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/info"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/complete"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
	"liqo.io/liqo/pkg/cli/target"
)

const getSliceLong = `Show the ResourceSlices by which this cluster asks its providers for resources (Consuming), and
those by which consumers ask this cluster (Providing), with what was granted. With -o they are
written as kubectl does. '{{ .Executable }} info peer' shows what does not work, and why.`

const getNodeLong = `Show the virtual nodes of this cluster, with what they offer and the ResourceSlice that each was
made of. With -o they are written as kubectl does. '{{ .Executable }} info peer' shows what does not
work, and why.`

func newGet(s *session.Session) *cobra.Command {
	where := &place{}
	slice, node := newGetSlice(s, where), newGetNode(s, where)
	slice.Aliases, slice.Short, slice.Long = aliasesOfSlice, "Show what providers were asked for, and granted", getSliceLong
	node.Aliases, node.Short, node.Long = aliasesOfNode, "Show virtual nodes", getNodeLong
	parent := verb("get", "Show ResourceSlices or virtual nodes", "resourceslice|virtualnode", slice, node)
	where.addNamespace(s, parent)
	return parent
}

// table is what a command that gets shows: the objects, and the rows that stand for them.
type table struct {
	kinds   string
	header  []string
	rows    [][]string
	objects []client.Object
}

func newGetSlice(s *session.Session, where *place) *cobra.Command {
	return getting(s, where, complete.Slices, "resourceslice", func(ctx context.Context, o share.GetOptions) (*table, error) {
		list, err := share.Slices(ctx, o)
		return slicesTable(s, list), err
	})
}

func slicesTable(s *session.Session, list []authv1beta1.ResourceSlice) *table {
	t := &table{kinds: "ResourceSlices", header: []string{"NAME", "CLUSTER ID", "ACTION", "CLASS", "STATUS", "RESOURCES", "AGE"}}
	for i := range list {
		slice, action := &list[i], info.Consuming
		if slice.Labels[corev1beta1.ReplicatedLabel] == "true" {
			action = info.Providing
		}
		t.add(s, slice, action, string(cmp.Or(slice.Spec.Class, authv1beta1.DefaultResourceSliceClass)), share.StateOf(slice), amounts(slice.Status.Resources))
	}
	return t
}

func newGetNode(s *session.Session, where *place) *cobra.Command {
	return getting(s, where, complete.VirtualNodes, "virtualnode", func(ctx context.Context, o share.GetOptions) (*table, error) {
		list, err := share.Nodes(ctx, o)
		return nodesTable(s, list), err
	})
}

func nodesTable(s *session.Session, list []offloadingv1beta1.VirtualNode) *table {
	t := &table{kinds: "virtual nodes", header: []string{"NAME", "CLUSTER ID", "STATUS", "RESOURCE SLICE", "RESOURCES", "AGE"}}
	for i := range list {
		node := &list[i]
		t.add(s, node, share.NodeStateOf(node), cmp.Or(node.Labels[authv1beta1.ResourceSliceNameLabel], "-"), amounts(node.Spec.ResourceQuota.Hard))
	}
	return t
}

// add adds an object, with what its row says between its peer and its age.
func (t *table) add(s *session.Session, object client.Object, cells ...string) {
	t.objects = append(t.objects, object)
	row := append([]string{object.GetName(), strings.TrimPrefix(object.GetNamespace(), corev1beta1.TenantNamespacePrefix)}, cells...)
	t.rows = append(t.rows, append(row, age(s, object.GetCreationTimestamp())))
}

func amounts(resources corev1.ResourceList) string {
	if len(resources) == 0 {
		return "-"
	}
	return share.Amounts(resources)
}

// age of an object, as kubectl says it.
func age(s *session.Session, since metav1.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(s.Clock.Since(since.Time).Truncate(time.Second))
}

// getting is what the commands that get have in common.
func getting(s *session.Session, where *place, source complete.Source, kind string,
	get func(context.Context, share.GetOptions) (*table, error),
) *cobra.Command {
	var format string
	command := &cobra.Command{
		Use: kind + " [NAME]", Args: cobra.MaximumNArgs(1), ValidArgsFunction: complete.Arguments(s.Local, source, 1),
		Example: "  {{ .Executable }} get " + kind + "\n" +
			"  {{ .Executable }} get " + kind + " --remote-cluster-id milan\n  {{ .Executable }} get " + kind + " gpus -o yaml",
		RunE: func(command *cobra.Command, args []string) error {
			if _, err := output.ParseFormat(format); err != nil {
				return err
			}
			options := share.GetOptions{}
			var err error
			if options.PeerID, err = where.peer(); err != nil {
				return err
			}
			if len(args) > 0 {
				options.Name = args[0]
			}
			if options.Cluster, err = s.Cluster(); err != nil {
				return err
			}
			found, err := get(command.Context(), options)
			if err != nil {
				return err
			}
			return found.show(s, format, options)
		},
	}
	where.addPeer(s, command, "Cluster ID of the peer that they are of; without it, those of all")
	s.OutputFlag(command, &format, "Write the objects to standard output")
	return command
}

// show writes what was found: one object by itself if it was named, else a list, as kubectl does.
func (t *table) show(s *session.Session, format string, o share.GetOptions) error {
	items := make([]any, 0, len(t.objects))
	for _, object := range t.objects {
		manifest, err := target.Manifest(object)
		if err != nil {
			return err
		}
		items = append(items, manifest)
	}
	var value any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 && o.Name != "" {
		value = items[0]
	}
	return s.Show(format, value, func() {
		if len(t.rows) == 0 {
			of := ""
			if o.PeerID != "" {
				of = " of " + o.PeerID
			}
			s.Say("There are no " + t.kinds + of + ".")
			return
		}
		output.Table(s.Streams.Out, t.header, t.rows)
	})
}
