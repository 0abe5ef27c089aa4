package servingcert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,resourceNames=liqo-webhook,verbs=get;list;watch;patch

// configuration is what both kinds of webhook configuration have in common.
type configuration struct {
	kind    string
	object  client.Object
	clients func() []*admissionregistrationv1.WebhookClientConfig
}

func configurations() []configuration {
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	return []configuration{
		{"ValidatingWebhookConfiguration", validating, func() (out []*admissionregistrationv1.WebhookClientConfig) {
			for i := range validating.Webhooks {
				out = append(out, &validating.Webhooks[i].ClientConfig)
			}
			return out
		}},
		{"MutatingWebhookConfiguration", mutating, func() (out []*admissionregistrationv1.WebhookClientConfig) {
			for i := range mutating.Webhooks {
				out = append(out, &mutating.Webhooks[i].ClientConfig)
			}
			return out
		}},
	}
}

// inject gives the bundle, and the token to those with secret paths, to all named configurations. One that fails does not keep the others from getting it.
func (k *Keeper) inject(ctx context.Context, bundle []byte, token string) error {
	var errs []error
	for _, name := range k.options.WebhookConfigurations {
		found := false
		for _, config := range configurations() {
			err := k.injectOne(ctx, config, name, bundle, token)
			if apierrors.IsNotFound(err) {
				continue
			}
			found = true
			if err != nil {
				errs = append(errs, err)
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("there is no webhook configuration %q: install Liqo's chart again", name))
		}
	}
	return errors.Join(errs...)
}

func (k *Keeper) injectOne(ctx context.Context, config configuration, name string, bundle []byte, token string) error {
	if err := k.options.Client.Get(ctx, client.ObjectKey{Name: name}, config.object); err != nil {
		return fmt.Errorf("reading %s %q: %w", config.kind, name, err)
	}
	if !labels.SelectorFromSet(k.options.WebhookSelector).Matches(labels.Set(config.object.GetLabels())) {
		return fmt.Errorf("the %s %q does not carry the labels %s and so is left alone: give it another name, or the labels if it is Liqo's",
			config.kind, name, k.options.WebhookSelector)
	}
	before, ok := config.object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copying %s %q: not an API object", config.kind, name)
	}
	changed := false
	for _, target := range config.clients() {
		if target.Service == nil || target.Service.Namespace != k.options.Namespace {
			continue
		}
		path := k.path(ptr.Deref(target.Service.Path, ""), token)
		if bytes.Equal(target.CABundle, bundle) && path == ptr.Deref(target.Service.Path, "") {
			continue
		}
		if path != "" {
			target.Service.Path = &path
		}
		target.CABundle, changed = bundle, true
	}
	if !changed {
		return nil
	}
	// The patch repeats the whole list of webhooks, so it must not be applied to a newer one.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.options.Client.Patch(ctx, config.object, patch, fieldManager); err != nil {
		return fmt.Errorf("giving the CA bundle to %s %q: %w", config.kind, name, err)
	}
	return nil
}

// path is where a webhook is called, given where it is called now.
func (k *Keeper) path(now, token string) string {
	for _, secret := range k.options.SecretPaths {
		if token != "" && (now == secret || strings.HasPrefix(now, secret+"/")) {
			return secret + "/" + token
		}
	}
	return now
}
