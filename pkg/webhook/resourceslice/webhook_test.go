package resourceslice

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
)

func slice(namespace, name string, labels, annotations map[string]string) *authv1beta1.ResourceSlice {
	return &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations}}
}

var fromPeer = map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.RemoteClusterIDLabel: "rome"}

func TestWhyNotCreated(t *testing.T) {
	for name, tc := range map[string]struct {
		slice *authv1beta1.ResourceSlice
		all   []authv1beta1.ResourceSlice
		want  string
	}{
		"the first of its name":                       {slice: slice("a", "s", nil, nil)},
		"a name that is taken in another namespace":   {slice: slice("a", "s", nil, nil), all: []authv1beta1.ResourceSlice{*slice("b", "s", nil, nil)}, want: "choose another name"},
		"a peer's copy takes no name":                 {slice: slice("a", "s", nil, nil), all: []authv1beta1.ResourceSlice{*slice("b", "s", fromPeer, nil)}},
		"a peer's copy may have any name":             {slice: slice("a", "s", fromPeer, nil), all: []authv1beta1.ResourceSlice{*slice("b", "s", nil, nil)}},
		"a name that is too long for a label's value": {slice: slice("a", strings.Repeat("x", 64), nil, nil), want: "at most 63"},
	} {
		t.Run(name, func(t *testing.T) {
			got := WhyNotCreated(tc.slice, tc.all)
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhyNotChanged(t *testing.T) {
	peer := authenticationv1.UserInfo{Username: identity.TenantUser("rome"), Groups: []string{identity.TenantsGroup, "system:authenticated"}}
	admin := authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}}
	cordoned := map[string]string{authv1beta1.CordonAnnotation: "true"}
	tenantCordoned := map[string]string{authv1beta1.CordonTenantAnnotation: "true"}
	other := map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.RemoteClusterIDLabel: "milan"}
	for name, tc := range map[string]struct {
		user          authenticationv1.UserInfo
		before, after *authv1beta1.ResourceSlice
		created       bool
		want          string
	}{
		"a peer changes its spec":             {user: peer, before: slice("a", "s", fromPeer, cordoned), after: slice("a", "s", fromPeer, cordoned)},
		"a peer lifts a cordon":               {user: peer, before: slice("a", "s", fromPeer, cordoned), after: slice("a", "s", fromPeer, nil), want: "only the provider"},
		"a peer weakens a cordon":             {user: peer, before: slice("a", "s", fromPeer, cordoned), after: slice("a", "s", fromPeer, map[string]string{authv1beta1.CordonAnnotation: "false"}), want: "only the provider"},
		"a peer lifts its tenant's cordon":    {user: peer, before: slice("a", "s", fromPeer, tenantCordoned), after: slice("a", "s", fromPeer, nil), want: "only the provider"},
		"a peer sets a cordon":                {user: peer, before: slice("a", "s", fromPeer, nil), after: slice("a", "s", fromPeer, cordoned), want: "only the provider"},
		"a peer says no cordon from birth":    {user: peer, before: slice("", "", nil, nil), after: slice("a", "s", fromPeer, map[string]string{authv1beta1.CordonAnnotation: "false"}), created: true, want: "only the provider"},
		"a peer creates a slice":              {user: peer, before: slice("", "", nil, nil), after: slice("a", "s", fromPeer, nil), created: true},
		"a peer gives its slice to another":   {user: peer, before: slice("a", "s", fromPeer, nil), after: slice("a", "s", other, nil), want: "only the provider"},
		"a peer takes the label off":          {user: peer, before: slice("a", "s", fromPeer, nil), after: slice("a", "s", nil, nil), want: "only the provider"},
		"the administrator lifts a cordon":    {user: admin, before: slice("a", "s", fromPeer, cordoned), after: slice("a", "s", fromPeer, nil)},
		"the administrator changes the label": {user: admin, before: slice("a", "s", fromPeer, nil), after: slice("a", "s", other, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			got := WhyNotChanged(tc.user, tc.before, tc.after, tc.created)
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWebhook(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := authv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	v := validator{reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(slice("b", "taken", nil, nil)).Build()}
	as := func(groups ...string) context.Context {
		return admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			UserInfo: authenticationv1.UserInfo{Groups: groups},
		}})
	}
	if _, err := v.ValidateCreate(as(), slice("a", "free", nil, nil)); err != nil {
		t.Error(err)
	}
	if _, err := v.ValidateCreate(as(), slice("a", "taken", nil, nil)); err == nil {
		t.Error("a taken name was admitted")
	}
	cordoned := slice("a", "s", fromPeer, map[string]string{authv1beta1.CordonAnnotation: "true"})
	if _, err := v.ValidateUpdate(as(identity.TenantsGroup), cordoned, slice("a", "s", fromPeer, nil)); err == nil {
		t.Error("a peer lifted a cordon")
	}
	if _, err := v.ValidateUpdate(t.Context(), cordoned, cordoned); err == nil {
		t.Error("admitted without knowing who asks")
	}
	half, relabeled := slice("a", "half", nil, nil), slice("a", "half", map[string]string{"a": "b"}, nil)
	half.Spec.Resources = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1.5")}
	relabeled.Spec = half.Spec
	if _, err := v.ValidateCreate(as(), half); err == nil {
		t.Error("half a pod was admitted")
	}
	if _, err := v.ValidateUpdate(as(), slice("a", "half", nil, nil), half); err == nil {
		t.Error("half a pod was admitted by a change")
	}
	if _, err := v.ValidateUpdate(as(), half, relabeled); err != nil {
		t.Errorf("what was asked for earlier cannot be changed otherwise: %v", err)
	}
	if _, err := v.ValidateDelete(as(), cordoned); err != nil {
		t.Error(err)
	}
}
