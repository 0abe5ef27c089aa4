package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// rehearse finds out, by a dry run, whether the provider takes the object that is to stand in for a live one which has to go first.
// What it would not take leaves the live one where it is: an old copy is better than none. A part that the provider refuses is no
// reason, if the live one has to go without that part, too: it may be what is in its way.
func (t *task) rehearse(ctx context.Context, c client.WithWatch, live reflection.Object, why string) error {
	err := t.tryCreate(ctx, c, t.wanted)
	if err != nil && t.kind().Relax != nil {
		relaxed, _ := t.kind().Relax(t.wanted, err.Error())
		if relaxed != nil && decide(t.kind(), t.options().Home, t.options().Remote, relaxed, live).action == replace {
			err = t.tryCreate(ctx, c, relaxed)
		}
	}
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), replaceable(err):
		return nil
	case reconcile.Classify(err) == reconcile.Transient:
		return t.failed("trying to replace", err)
	default:
		return t.failed(fmt.Sprintf("the last copy stays, because %s cannot be changed in place, and what is to replace it is refused: replacing", why), err)
	}
}

// tryCreate creates an object like the wanted one in a dry run. The name is free, unlike that which is meant.
func (t *task) tryCreate(ctx context.Context, c client.WithWatch, wanted reflection.Object) error {
	sum := sha256.Sum256([]byte(t.remoteName))
	object := wanted.DeepCopyObject().(reflection.Object)
	object.SetName("liqo-try-" + hex.EncodeToString(sum[:8]))
	call, cancel := t.call(ctx)
	defer cancel()
	return c.Create(call, object, client.DryRunAll, client.FieldOwner(FieldManager))
}

// replaceable tells whether a refusal says nothing against replacing an object. Quotas count the live one too, and are asked last of
// all; a webhook that knows no dry runs cannot be asked.
func replaceable(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") ||
		apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}
