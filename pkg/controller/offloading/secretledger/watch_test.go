package secretledger

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type watchInterface = watch.Interface

// selected lets only events of selected objects through.
func selected(w watch.Interface, o *client.ListOptions) watch.Interface {
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		object, ok := e.Object.(client.Object)
		return e, ok && (o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(object.GetLabels())))
	})
}
