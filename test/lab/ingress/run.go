package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// Controller is the name by which an IngressClass names this controller.
	Controller = "lab.liqo.io/ingress"

	plainPort, securePort = ":80", ":443"
	headerTimeout         = 10 * time.Second
)

// Run serves the Ingresses of a class until the context ends. The address is that of this machine, for their status.
func Run(ctx context.Context, client kubernetes.Interface, class, address string) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	s := &server{
		class: class, client: client, ingresses: factory.Networking().V1().Ingresses().Lister(),
		services: factory.Core().V1().Services().Lister(), slices: factory.Discovery().V1().EndpointSlices().Lister(),
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	add := func(object any) {
		if key, err := cache.ObjectToName(object); err == nil {
			queue.Add(key)
		}
	}
	_, err := factory.Networking().V1().Ingresses().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, updated any) { add(updated) },
	})
	if err != nil {
		return fmt.Errorf("watching Ingresses: %w", err)
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("listing %s: %w", kind, ctx.Err())
		}
	}
	go func() {
		for s.publishNext(ctx, queue, address) {
		}
	}()
	plain := &http.Server{Addr: plainPort, Handler: s, ReadHeaderTimeout: headerTimeout}
	secure := &http.Server{
		Addr: securePort, Handler: s, ReadHeaderTimeout: headerTimeout,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate},
	}
	ended := make(chan error, 2)
	go func() { ended <- plain.ListenAndServe() }()
	go func() { ended <- secure.ListenAndServeTLS("", "") }()
	select {
	case <-ctx.Done():
		err = nil
	case err = <-ended:
	}
	queue.ShutDown()
	return errors.Join(err, plain.Close(), secure.Close())
}

// publishNext handles one Ingress of the queue; false once the queue is shut down.
func (s *server) publishNext(ctx context.Context, queue workqueue.TypedRateLimitingInterface[cache.ObjectName], address string) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	if err := s.publish(ctx, key, address); err != nil {
		klog.FromContext(ctx).Error(err, "An Ingress does not have the address of this controller yet", "ingress", key)
		queue.AddRateLimited(key)
		return true
	}
	queue.Forget(key)
	return true
}

// publish writes the address into the status of an Ingress of the class.
func (s *server) publish(ctx context.Context, key cache.ObjectName, address string) error {
	ingress, err := s.ingresses.Ingresses(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	wanted := []networkingv1.IngressLoadBalancerIngress{{IP: address}}
	if !isOf(s.class, ingress) || apiequality.Semantic.DeepEqual(ingress.Status.LoadBalancer.Ingress, wanted) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ingress = ingress.DeepCopy()
	ingress.Status.LoadBalancer.Ingress = wanted
	_, err = s.client.NetworkingV1().Ingresses(key.Namespace).UpdateStatus(ctx, ingress, metav1.UpdateOptions{FieldManager: Controller})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
