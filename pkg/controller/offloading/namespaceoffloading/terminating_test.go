package namespaceoffloading

import (
	"testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestATwinThatRemainsIsToldWithoutEmptyParentheses(t *testing.T) {
	for message, want := range map[string]string{
		"":                     `waiting for cluster milan to remove namespace "shop-rome"; if that cluster will not come back, use liqoctl unpeer --force`,
		"a finalizer holds it": `waiting for cluster milan to remove namespace "shop-rome" (a finalizer holds it); if that cluster will not come back, use liqoctl unpeer --force`,
	} {
		if got := terminating("milan", offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: "shop-rome", Message: message}); got != want {
			t.Errorf("got %q", got)
		}
	}
}
