package mirror

import (
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// decideUse translates an object with what is known of its use by pods. known is false if the result depends on a use that
// nobody here can tell: then the object is neither made nor removed.
//
// With several virtual nodes of a provider, this engine works for all of them, but knows the pods of its own only. That its
// own pods do not use an object says nothing then; what stands at the provider already is kept in step, because pods of
// another virtual node may run with it.
func (t *task) decideUse(in *reflection.Input) (result reflection.Result, known bool) {
	known = true
	if references := t.options().References; references != nil {
		in.Referenced, known = references.Referenced(t.namespace, t.kind().Name, t.name)
		if known && !in.Referenced && in.Policy == offloadingv1beta1.Referenced && len(in.Provider.Nodes) > 1 {
			view := t.ready()
			in.Referenced = view != nil && t.represents(view, t.local)
			known = in.Referenced
		}
	}
	result = t.kind().Translate(*in)
	if known || in.Policy != offloadingv1beta1.Referenced {
		return result, true
	}
	// Annotations may decide whatever pods use.
	used := *in
	used.Referenced = true
	other := t.kind().Translate(used)
	same := result.Apply == nil && other.Apply == nil && result.Skip != nil && other.Skip != nil && *result.Skip == *other.Skip
	return result, same || result.Apply != nil
}
