package resourceslice

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/identity"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices,verbs=get;list;watch
// +kubebuilder:webhook:path=/validate/resourceslices,mutating=false,failurePolicy=fail,sideEffects=None,groups=authentication.liqo.io,resources=resourceslices,verbs=create;update,versions=v1beta1,name=resourceslice.validate.liqo.io,admissionReviewVersions=v1

// ValidatePath is what the API server calls.
const ValidatePath = "/validate/resourceslices"

const maxName = 63

// Options of the webhook.
type Options struct{}

// Register serves the webhook.
func Register(mgr ctrl.Manager, _ Options) error {
	mgr.GetWebhookServer().Register(ValidatePath, admission.WithValidator(mgr.GetScheme(), validator{reader: mgr.GetClient()}))
	return nil
}

type validator struct{ reader client.Reader }

// ValidateCreate implements admission.Validator.
func (v validator) ValidateCreate(ctx context.Context, slice *authv1beta1.ResourceSlice) (admission.Warnings, error) {
	list := &authv1beta1.ResourceSliceList{}
	if err := v.reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing ResourceSlices: %w", err)
	}
	if why := WhyNotCreated(slice, list.Items); why != "" {
		return nil, refuse(slice, why)
	}
	user, err := requester(ctx)
	if err != nil {
		return nil, err
	}
	if why := WhyNotChanged(user, &authv1beta1.ResourceSlice{}, slice, true); why != "" {
		return nil, refuse(slice, why)
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (v validator) ValidateUpdate(ctx context.Context, before, after *authv1beta1.ResourceSlice) (admission.Warnings, error) {
	user, err := requester(ctx)
	if err != nil {
		return nil, err
	}
	why := WhyNotChanged(user, before, after, false)
	if asked := after.Spec.Resources; why == "" && !replicated(after) && !equality.Semantic.DeepEqual(before.Spec.Resources, asked) {
		why = capacity.WhyNotWhole(asked)
	}
	if why != "" {
		return nil, refuse(after, why)
	}
	return nil, nil
}

// ValidateDelete implements admission.Validator.
func (validator) ValidateDelete(context.Context, *authv1beta1.ResourceSlice) (admission.Warnings, error) {
	return nil, nil
}

func requester(ctx context.Context) (authenticationv1.UserInfo, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("reading who asks: %w", err)
	}
	return request.UserInfo, nil
}

func refuse(slice *authv1beta1.ResourceSlice, why string) error {
	return apierrors.NewForbidden(authv1beta1.GroupVersion.WithResource("resourceslices").GroupResource(), slice.Name, errors.New(why))
}

// WhyNotCreated returns why a slice cannot be created, empty if it can.
func WhyNotCreated(slice *authv1beta1.ResourceSlice, all []authv1beta1.ResourceSlice) string {
	if replicated(slice) {
		return ""
	}
	if why := capacity.WhyNotWhole(slice.Spec.Resources); why != "" {
		return why
	}
	if len(slice.Name) > maxName || len(content.IsDNS1123Subdomain(slice.Name)) != 0 {
		return fmt.Sprintf("the name must be that of a node and have at most %d characters, because the virtual node is named after it", maxName)
	}
	for i := range all {
		other := &all[i]
		if other.Name == slice.Name && other.Namespace != slice.Namespace && !replicated(other) {
			return fmt.Sprintf("there is a ResourceSlice named %s in namespace %s already: "+
				"choose another name, because the virtual node is named after it", other.Name, other.Namespace)
		}
	}
	return ""
}

func replicated(slice *authv1beta1.ResourceSlice) bool {
	return slice.Labels[corev1beta1.ReplicatedLabel] == "true"
}

// WhyNotChanged returns why a user may not make a change, empty if it may. It is about peers only.
func WhyNotChanged(user authenticationv1.UserInfo, before, after *authv1beta1.ResourceSlice, created bool) string {
	if !slices.Contains(user.Groups, identity.TenantsGroup) {
		return ""
	}
	if !created && before.Labels[corev1beta1.RemoteClusterIDLabel] != after.Labels[corev1beta1.RemoteClusterIDLabel] {
		return fmt.Sprintf("only the provider may change the label %s", corev1beta1.RemoteClusterIDLabel)
	}
	for _, key := range []string{authv1beta1.CordonAnnotation, authv1beta1.CordonTenantAnnotation} {
		was, had := before.Annotations[key]
		is, has := after.Annotations[key]
		if was != is || had != has {
			return fmt.Sprintf("only the provider may set or remove the annotation %s", key)
		}
	}
	return ""
}
