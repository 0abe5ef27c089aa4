package gateway

import (
	"bytes"
	"strings"
	"testing"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

func TestNewKeysAreThoseOfWireGuard(t *testing.T) {
	keys, err := NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckKeys(keys); err != nil {
		t.Error(err)
	}
	private := keys[networkingv1beta1.PrivateKeyKey]
	if private[0]&7 != 0 || private[31]>>6 != 1 {
		t.Errorf("bits of the private key are not as WireGuard keeps them: %08b … %08b", private[0], private[31])
	}
	if bytes.Equal(private, other[networkingv1beta1.PrivateKeyKey]) {
		t.Error("two gateways have the same key")
	}
}

func TestCheckKeys(t *testing.T) {
	keys, err := NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	private, public := keys[networkingv1beta1.PrivateKeyKey], keys[networkingv1beta1.PublicKeyKey]
	for name, tc := range map[string]struct {
		private, public []byte
		want            string
	}{
		"none":                {nil, nil, "has 0 bytes"},
		"as text":             {[]byte("yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="), public, "privateKey has 44 bytes"},
		"no public one":       {private, nil, "publicKey has 0 bytes"},
		"of different owners": {private, private, "does not belong"},
		"both":                {private, public, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := CheckKeys(map[string][]byte{networkingv1beta1.PrivateKeyKey: tc.private, networkingv1beta1.PublicKeyKey: tc.public})
			if (got != nil) != (tc.want != "") || got != nil && !strings.Contains(got.Error(), tc.want) {
				t.Errorf("got %v, want %q", got, tc.want)
			}
		})
	}
}
