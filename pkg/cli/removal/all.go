package removal

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// Waiter waits until an object whose deletion has begun is gone.
type Waiter func(ctx context.Context, task progress.Task, object client.Object) error

// All is which objects DeleteAll deletes, and how.
type All struct {
	// List of their kind, empty, and the Options to fill it with.
	List    client.ObjectList
	Options []client.ListOption
	// Include says which of the list are meant; nil means all.
	Include func(client.Object) bool
	// NoWait returns once the deletions have begun.
	NoWait bool
	// Wait replaces Gone; nil means Gone.
	Wait Waiter
}

// DeleteAll deletes objects of one kind, all at once, and waits until they are gone.
func DeleteAll(ctx context.Context, observer progress.Observer, cluster *target.Cluster, all All) error {
	if err := cluster.List(ctx, all.List, all.Options...); err != nil {
		return err
	}
	var objects []client.Object
	err := meta.EachListItem(all.List, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok && (all.Include == nil || all.Include(object)) {
			objects = append(objects, object)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the list (cluster %s): %w", cluster.Name, err)
	}
	for _, object := range objects {
		if err := Begin(ctx, progress.Discard.Begin(cluster.Name, ""), cluster, object); err != nil {
			return err
		}
	}
	for _, object := range objects {
		name := target.Name(object)
		err := progress.Run(ctx, observer, cluster.Name, "Deleting "+name, func(ctx context.Context, task progress.Task) (string, error) {
			switch {
			case all.NoWait:
				return fmt.Sprintf("Deletion of %s begun", name), nil
			case all.Wait != nil:
				return "Deleted " + name, all.Wait(ctx, task, object)
			default:
				return "Deleted " + name, Gone(ctx, task, cluster, object)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
