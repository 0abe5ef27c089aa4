package replica

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// perEntry is what an entry of a map takes besides its key and value, in bytes, with the room that a map keeps free.
const perEntry = 16

var location = reflect.TypeFor[*time.Location]()

// heap is about how many bytes of memory a value takes with all that it refers to: not what it has on the wire, of which each byte may
// become hundreds.
func heap(v reflect.Value) int64 {
	if !v.IsValid() {
		return 0
	}
	return int64(v.Type().Size()) + behind(v)
}

// behind is what a value refers to.
func behind(v reflect.Value) int64 {
	if v.Type() == location {
		return 0 // All times share theirs.
	}
	var all int64
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			all = heap(v.Elem())
		}
	case reflect.Slice:
		all = int64(v.Cap()) * int64(v.Type().Elem().Size())
		fallthrough
	case reflect.Array:
		if !scalar(v.Type().Elem().Kind()) {
			for i := range v.Len() {
				all += behind(v.Index(i))
			}
		}
	case reflect.Map:
		each := int64(v.Type().Key().Size()+v.Type().Elem().Size()) + perEntry
		all = int64(v.Len()) * each
		for entries := v.MapRange(); entries.Next(); {
			all += behind(entries.Key()) + behind(entries.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !scalar(v.Field(i).Kind()) {
				all += behind(v.Field(i))
			}
		}
	}
	return all
}

func scalar(kind reflect.Kind) bool { return kind < reflect.Array && kind != reflect.Invalid }

// boxed is what is held of an object on its way through client-go, which takes objects only.
type boxed struct{ held any }

// box makes an object of what is held.
func box(held any) runtime.Object {
	if object, is := held.(runtime.Object); is {
		return object
	}
	return &boxed{held}
}

// unbox undoes box.
func unbox(item any) any {
	if b, is := item.(*boxed); is {
		return b.held
	}
	return item
}

// GetObjectKind implements runtime.Object.
func (b *boxed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Nobody may change what is held, so that nobody needs a copy.
func (b *boxed) DeepCopyObject() runtime.Object { return b }
