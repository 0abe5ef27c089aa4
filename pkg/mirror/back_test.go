package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// statusWriter is the status subresource of a cluster: it takes merge patches, nothing but the status of them, and only for
// the version that they were made for.
type statusWriter struct {
	client.SubResourceWriter // only what is overridden is used
	cluster                  *cluster
}

// Status implements client.StatusClient.
func (c *cluster) Status() client.SubResourceWriter { return statusWriter{cluster: c} }

// Patch implements client.SubResourceWriter.
func (s statusWriter) Patch(_ context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(o)
	if err := c.record("status", key); err != nil {
		return err
	}
	live, ok := c.objects[key].(*networkingv1.Ingress)
	if !ok {
		return apierrors.NewNotFound(resource(o), o.GetName())
	}
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	before, err := json.Marshal(live)
	if err != nil {
		return err
	}
	merged, err := jsonpatch.MergePatch(before, data)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var now networkingv1.Ingress
	if err := json.Unmarshal(merged, &now); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if now.ResourceVersion != live.ResourceVersion {
		return apierrors.NewConflict(resource(o), o.GetName(), errors.New("the object has been modified"))
	}
	changed := live.DeepCopy()
	changed.Status = now.Status
	wroteStatus(changed, (&client.SubResourcePatchOptions{}).ApplyOptions(opts).FieldManager)
	into(c.store(key, changed), o)
	return c.done("status", key)
}

// wroteStatus records who wrote the addresses, as API servers do: one who removes them owns nothing.
func wroteStatus(i *networkingv1.Ingress, manager string) {
	i.ManagedFields = nil
	if len(i.Status.LoadBalancer.Ingress) > 0 {
		i.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Subresource: "status", Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:loadBalancer":{"f:ingress":{}}}}`)}}
	}
}

func ingressObject(name string) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: name},
		Spec:       networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "a.example.org"}}},
	}
}

// serve is what an ingress controller does: it tells at which addresses an Ingress is served.
func serve(c *cluster, o *networkingv1.Ingress, addresses ...string) {
	edit(c, o, func(i *networkingv1.Ingress) {
		i.Status.LoadBalancer.Ingress = nil
		for _, address := range addresses {
			i.Status.LoadBalancer.Ingress = append(i.Status.LoadBalancer.Ingress, networkingv1.IngressLoadBalancerIngress{IP: address})
		}
		wroteStatus(i, "nginx-ingress-controller")
	})
}

// served are the addresses that the status at home tells.
func (w *world) served(o *networkingv1.Ingress) []string {
	w.Helper()
	var addresses []string
	for _, address := range w.local.find(o).(*networkingv1.Ingress).Status.LoadBalancer.Ingress {
		addresses = append(addresses, address.IP)
	}
	return addresses
}

func backConfig(on bool) offloadingv1beta1.ReflectorConfig {
	return offloadingv1beta1.ReflectorConfig{NumWorkers: 3, Type: offloadingv1beta1.DenyList, StatusBack: on}
}

func ingressesOnly(on bool) func(*Options) {
	kind, _ := reflection.Lookup("ingress")
	return func(o *Options) {
		o.Kinds = []reflection.Kind{kind}
		o.Wanted.Set(Wanted{Kinds: map[string]offloadingv1beta1.ReflectorConfig{kind.Name: backConfig(on)}})
	}
}

func TestStatusComesBack(t *testing.T) {
	inBubble(t, func(w *world) {
		web := ingressObject("web")
		web = w.local.put(web).(*networkingv1.Ingress)
		w.start(ingressesOnly(false))
		w.wrote("a new one", "create Ingress/"+there+"/web")
		serve(w.remote, at(web), "192.0.2.1")
		w.wrote("nobody wants it back")
		w.setConfig("ingress", backConfig(true))
		w.rest()
		w.equal("addresses", []string{"192.0.2.1"}, w.served(web))
		w.equal("writes at home", []string{"status Ingress/" + here + "/web"}, w.local.took(false))
		w.wrote("nothing changed")
		w.stop()
		w.start(ingressesOnly(true))
		w.wrote("a restart")
		serve(w.remote, at(web), "192.0.2.2", "127.0.0.1")
		w.rest()
		w.equal("addresses without those that mean ourselves", []string{"192.0.2.2"}, w.served(web))
		w.equal("writes at home", []string{"status Ingress/" + here + "/web"}, w.local.took(false))
		w.setConfig("ingress", backConfig(false))
		serve(w.remote, at(web), "192.0.2.3")
		w.wrote("nobody wants it back any more")
		w.equal("addresses", []string{"192.0.2.2"}, w.served(web))
		w.equal("problems", []string(nil), reasons(w.engine))
	})
}

func TestStatusOfOthersStaysThere(t *testing.T) {
	for name, foreign := range map[string]func(local *networkingv1.Ingress) *networkingv1.Ingress{
		"an object of theirs": func(local *networkingv1.Ingress) *networkingv1.Ingress { return at(local) },
		"one from elsewhere": func(local *networkingv1.Ingress) *networkingv1.Ingress {
			o := marked(at(local), string(local.UID))
			o.Labels[offloadingv1beta1.OriginLabel] = "paris"
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				web := w.local.put(ingressObject("web")).(*networkingv1.Ingress)
				serve(w.remote, w.remote.put(foreign(web)).(*networkingv1.Ingress), "192.0.2.1")
				w.start(ingressesOnly(true))
				w.pass(time.Minute)
				w.equal("addresses", []string(nil), w.served(web))
				w.equal("writes at home", []string(nil), w.local.took(false))
				w.equal("problems", []string{offloadingv1beta1.ReasonNameConflict}, reasons(w.engine))
			})
		})
	}
}

// What an ingress controller of this cluster, or another provider, says of an Ingress is not written over.
func TestStatusThatOthersWrite(t *testing.T) {
	inBubble(t, func(w *world) {
		web := w.local.put(ingressObject("web")).(*networkingv1.Ingress)
		serve(w.local, web, "198.51.100.1")
		w.start(ingressesOnly(true))
		serve(w.remote, at(web), "192.0.2.1")
		w.pass(time.Hour)
		w.equal("addresses", []string{"198.51.100.1"}, w.served(web))
		w.equal("writes at home", []string(nil), w.local.took(false))
		w.equal("problems", []string{offloadingv1beta1.ReasonStatusOfOthers}, reasons(w.engine))
		serve(w.local, web)
		w.rest()
		w.equal("nobody says anything any more", []string{"192.0.2.1"}, w.served(web))
		w.equal("problems", []string(nil), reasons(w.engine))
		edit(w.local, web, func(i *networkingv1.Ingress) { wroteStatus(i, FieldManager+"/paris") })
		serve(w.remote, at(web), "192.0.2.2")
		w.pass(time.Hour)
		w.equal("another provider's", []string{"192.0.2.1"}, w.served(web))
		edit(w.local, web, func(i *networkingv1.Ingress) {
			wroteStatus(i, FieldManager+"/"+provider)
			i.ManagedFields = append(i.ManagedFields, metav1.ManagedFieldsEntry{FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"i:no number":{}}`)})
		})
		w.pass(time.Hour)
		w.equal("a record that cannot be read", []string{"192.0.2.1"}, w.served(web))
	})
}

// What came back goes with what it came from, unless somebody else said it.
func TestStatusGoesWithTheRemoteObject(t *testing.T) {
	for name, tc := range map[string]struct {
		manager string
		want    []string
	}{
		"ours":            {FieldManager + "/" + provider, nil},
		"somebody else's": {"nginx-ingress-controller", []string{"192.0.2.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				web := w.local.put(ingressObject("web")).(*networkingv1.Ingress)
				w.start(ingressesOnly(true))
				serve(w.remote, at(web), "192.0.2.1")
				w.rest()
				edit(w.local, web, func(i *networkingv1.Ingress) {
					wroteStatus(i, tc.manager)
					i.Annotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
				})
				w.pass(time.Minute)
				w.equal("at the provider", true, w.remote.find(at(web)) == nil)
				w.equal("addresses", tc.want, w.served(web))
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}

// What came back goes also if the virtual kubelet was away when its object was kept at home and removed at the provider.
func TestStatusGoesAfterARestart(t *testing.T) {
	inBubble(t, func(w *world) {
		web := w.local.put(ingressObject("web")).(*networkingv1.Ingress)
		w.start(ingressesOnly(true))
		serve(w.remote, at(web), "192.0.2.1")
		w.rest()
		w.equal("addresses", []string{"192.0.2.1"}, w.served(web))
		w.stop()
		edit(w.local, web, func(i *networkingv1.Ingress) {
			i.Annotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
		})
		w.remote.drop(at(web))
		w.local.took(false)
		w.start(ingressesOnly(true))
		w.pass(time.Minute)
		w.equal("addresses", []string(nil), w.served(web))
		w.equal("writes at home", []string{"status Ingress/" + here + "/web"}, w.local.took(false))
	})
}

// Whoever keeps changing what comes back causes few writes, and the last word arrives in the end.
func TestStatusThatKeepsChanging(t *testing.T) {
	for name, change := range map[string]func(w *world, web *networkingv1.Ingress, i int){
		"at the provider": func(w *world, web *networkingv1.Ingress, i int) {
			serve(w.remote, at(web), fmt.Sprintf("192.0.2.%d", i))
		},
		"undone at home": func(w *world, web *networkingv1.Ingress, _ int) { serve(w.local, web) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				web := w.local.put(ingressObject("web")).(*networkingv1.Ingress)
				w.start(ingressesOnly(true))
				serve(w.remote, at(web), "192.0.2.200")
				w.rest()
				const minutes = 5
				for i := range minutes*30 - 10 { // It ends amid a wait.
					change(w, web, i+1)
					w.pass(2 * time.Second)
				}
				if writes := len(w.local.took(false)); writes > 2*(minutes+1) || writes < minutes {
					t.Errorf("%d writes in %d minutes", writes, minutes)
				}
				w.equal("problems", []string{offloadingv1beta1.ReasonContended}, reasons(w.engine))
				w.equal("Events", true, slices.Contains(w.events.took(), "web Warning "+offloadingv1beta1.ReasonContended))
				serve(w.remote, at(web), "192.0.2.201")
				w.pass(2 * time.Minute)
				w.equal("addresses", []string{"192.0.2.201"}, w.served(web))
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}

func TestStatusThatCannotBeWritten(t *testing.T) {
	forbidden := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no right"}}
	for name, tc := range map[string]struct {
		intercept, after func(string, string) error
		want             []string
	}{
		"a lost answer": {after: once("status", errors.New("connection reset by peer"))},
		"another write in between": {intercept: once("status", apierrors.NewConflict(resource(&networkingv1.Ingress{}), "web",
			errors.New("the object has been modified")))},
		"no right to": {intercept: func(verb, _ string) error {
			if verb == "status" {
				return forbidden
			}
			return nil
		}, want: []string{"Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				web := w.local.put(ingressObject("web")).(*networkingv1.Ingress)
				w.local.intercept, w.local.after = tc.intercept, tc.after
				w.start(ingressesOnly(true))
				serve(w.remote, at(web), "192.0.2.1")
				w.pass(30 * time.Second)
				w.equal("problems", tc.want, reasons(w.engine))
				if tc.want == nil {
					w.equal("addresses", []string{"192.0.2.1"}, w.served(web))
				}
			})
		})
	}
}
