package credential

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/utils/clock"
)

// lookSoon is how often the answer to a request is looked for at first: approving and signing takes a fraction of a second where programs do it.
// lookEvery is how often after as many looks as manySoon.
const (
	lookSoon  = 200 * time.Millisecond
	manySoon  = 25
	lookEvery = time.Second
)

// byName is a client of the cluster that waits for the answer to a request by reading that one request. client-go's certificate manager
// lists and watches requests, which RBAC can grant for all of the cluster only, because their names are not known before.
type byName struct {
	kubernetes.Interface
	clock clock.WithTicker
}

// CertificatesV1 is the only API that the certificate manager uses.
func (c byName) CertificatesV1() certificatesclient.CertificatesV1Interface {
	return certificates{c.Interface.CertificatesV1(), c.clock}
}

// IsWatchListSemanticsUnSupported tells client-go to list before it watches.
func (byName) IsWatchListSemanticsUnSupported() bool { return true }

type certificates struct {
	certificatesclient.CertificatesV1Interface
	clock clock.WithTicker
}

func (c certificates) CertificateSigningRequests() certificatesclient.CertificateSigningRequestInterface {
	return requests{c.CertificatesV1Interface.CertificateSigningRequests(), c.clock}
}

type requests struct {
	certificatesclient.CertificateSigningRequestInterface
	clock clock.WithTicker
}

// named is the request that a selector is for.
func named(o metav1.ListOptions) (string, error) {
	selector, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return "", fmt.Errorf("reading the selector %q: %w", o.FieldSelector, err)
	}
	name, found := selector.RequiresExactMatch("metadata.name")
	if !found {
		return "", fmt.Errorf("the selector %q names no CertificateSigningRequest", o.FieldSelector)
	}
	return name, nil
}

// List returns the one request that is asked for, if it is there.
func (r requests) List(ctx context.Context, o metav1.ListOptions) (*certificatesv1.CertificateSigningRequestList, error) {
	name, err := named(o)
	if err != nil {
		return nil, err
	}
	list := &certificatesv1.CertificateSigningRequestList{ListMeta: metav1.ListMeta{ResourceVersion: "0"}}
	request, err := r.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		list.Items, list.ResourceVersion = []certificatesv1.CertificateSigningRequest{*request}, request.ResourceVersion
	case !apierrors.IsNotFound(err):
		return nil, err //nolint:wrapcheck // the caller is client-go, which looks at the error's kind
	}
	return list, nil
}

// Watch tells of changes of the one request that is asked for, until it is gone.
func (r requests) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	name, err := named(o)
	if err != nil {
		return nil, err
	}
	events := make(chan watch.Event)
	watcher := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		ticker := r.clock.NewTicker(lookSoon)
		defer func() { ticker.Stop() }()
		last := o.ResourceVersion
		for looks := 0; ; looks++ {
			if looks == manySoon {
				ticker.Stop()
				ticker = r.clock.NewTicker(lookEvery)
			}
			select {
			case <-ctx.Done():
				return
			case <-watcher.StopChan():
				return
			case <-ticker.C():
			}
			event := watch.Event{Type: watch.Modified}
			request, err := r.Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				event = watch.Event{Type: watch.Deleted, Object: &certificatesv1.CertificateSigningRequest{
					ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: last}}}
			case err != nil || request.ResourceVersion == last:
				continue
			default:
				event.Object, last = request, request.ResourceVersion
			}
			select {
			case events <- event:
			case <-watcher.StopChan():
				return
			}
			if event.Type == watch.Deleted {
				return
			}
		}
	}()
	return watcher, nil
}
