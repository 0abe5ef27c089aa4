package api

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

var update = flag.Bool("update", false, "write the golden file")

// The cluster of the walk: a peering with one cluster in both directions, and one with a stranger.
const (
	walker      = "walker"
	stranger    = "stranger"
	walkerNode  = "system:node:" + walker
	walkerHome  = corev1beta1.TenantNamespacePrefix + walker
	nothing     = "nothing-of-this-name"
	walkWorkers = 8
)

// places are the classes of namespaces.
var places = map[string]string{
	"kube-system": "kube-system", "Liqo's own namespace": fixture.Namespace, "a namespace of others": "walk-payroll",
	"an offloaded namespace": "walk-shop", "the tenant namespace": walkerHome, "the stranger's tenant namespace": corev1beta1.TenantNamespacePrefix + stranger,
	"the twin": "walk-twin", "the stranger's twin": "walk-strangers-twin",
}

// kind is a resource or subresource of the API server.
type kind struct {
	schema.GroupVersion
	name       string
	namespaced bool
	verbs      []string
	// body is the kind of what is sent to it.
	body schema.GroupVersionKind
}

// String is what kubectl calls it.
func (k kind) String() string {
	name, sub, found := strings.Cut(k.name, "/")
	text := schema.GroupResource{Group: k.Group, Resource: name}.String()
	if found {
		text += "/" + sub
	}
	return text
}

// inPlaces tells whether requests for it name a namespace: it is in one, or is one.
func (k kind) inPlaces() bool {
	return k.namespaced || k.Group == "" && strings.HasPrefix(k.name, "namespaces")
}

// S15: what a thief of each of our accounts may do, for every verb, resource and class of namespace: as the API server says when it is
// asked for the rules, and as it answers to real requests, which must agree. The golden file is to be read: whatever is in it, a thief has.
// What is marked as refused the authorizer allows, and admission does not.
func TestWhatAThiefMayDo(t *testing.T) {
	t.Parallel()
	prepareWalk(t)
	kinds := allKinds(t)
	ordinary := walk(t, env.Milan.As(t, "somebody"), kinds)
	accounts := map[string]*fixture.User{
		"the controller manager":            env.Milan.As(t, managerAccount, "system:serviceaccounts", "system:serviceaccounts:"+fixture.Namespace),
		"the keeper of certificates":        env.Milan.As(t, certificatesAccount, "system:serviceaccounts", "system:serviceaccounts:"+fixture.Namespace),
		"a virtual kubelet, for reflection": env.Milan.As(t, "system:serviceaccount:"+walkerHome+":"+walker, "system:serviceaccounts", "system:serviceaccounts:"+walkerHome),
		"a virtual kubelet, as a node":      env.Milan.As(t, walkerNode, "system:nodes"),
		"a consumer":                        env.Milan.Tenant(t, walker),
		"a consumer's virtual kubelet":      env.Milan.Slice(t, walker, sliceName),
	}
	var golden strings.Builder
	for _, who := range slices.Sorted(maps.Keys(accounts)) {
		found := walk(t, accounts[who], kinds)
		for place := range found {
			maps.DeleteFunc(found[place], func(right string, _ bool) bool { return ordinary[place][right] })
		}
		forbidden(t, who, found)
		write(&golden, who, found)
	}
	path := filepath.Join("testdata", "rights.txt")
	if *update {
		fixture.Must(t, "writing the golden file", os.WriteFile(path, []byte(golden.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	fixture.Must(t, "reading the golden file", err)
	if diff := cmp.Diff(string(want), golden.String()); diff != "" {
		t.Errorf("our accounts may do something else than %s says (go test ./test/integration/api -run TestWhatAThiefMayDo -update writes it):\n%s", path, diff)
	}
}

const (
	managerAccount      = "system:serviceaccount:" + fixture.Namespace + ":liqo-controller-manager"
	certificatesAccount = "system:serviceaccount:" + fixture.Namespace + ":liqo-certificates"
)

// forbidden checks what no account of ours may do in namespaces that are nobody's business, whatever the golden file says.
func forbidden(t *testing.T, who string, found map[string]map[string]bool) {
	t.Helper()
	for _, place := range []string{"kube-system", "Liqo's own namespace", "a namespace of others", "the stranger's tenant namespace"} {
		for _, right := range []string{"get secrets", "list secrets", "watch secrets", "create secrets", "create pods", "create pods/exec", "get pods/exec",
			"create serviceaccounts/token", "create pods/ephemeralcontainers", "patch pods", "create deployments.apps", "escalate roles.rbac.authorization.k8s.io"} {
			manager := who == "the controller manager" && place == "the stranger's tenant namespace"
			if found[place][right] && !manager {
				t.Errorf("%s may %s in %s", who, right, place)
			}
		}
	}
}

// write writes the rights of an account: those that it has everywhere, and what it has besides in places.
func write(golden *strings.Builder, who string, found map[string]map[string]bool) {
	everywhere := maps.Clone(found[slices.Sorted(maps.Keys(places))[0]])
	for _, rights := range found {
		maps.DeleteFunc(everywhere, func(right string, _ bool) bool { return !rights[right] })
	}
	list := func(title string, rights map[string]bool) {
		verbs := map[string][]string{}
		for _, right := range slices.Sorted(maps.Keys(rights)) {
			verb, resource, _ := strings.Cut(right, " ")
			verbs[resource] = append(verbs[resource], verb)
		}
		if len(verbs) > 0 {
			fmt.Fprintf(golden, "%s, %s:\n", who, title)
		}
		for _, resource := range slices.Sorted(maps.Keys(verbs)) {
			fmt.Fprintf(golden, "  %s: %s\n", resource, strings.Join(verbs[resource], " "))
		}
	}
	list("everywhere", everywhere)
	for _, place := range slices.Sorted(maps.Keys(found)) {
		rights := maps.Clone(found[place])
		maps.DeleteFunc(rights, func(right string, _ bool) bool { return everywhere[right] })
		list("in "+place, rights)
	}
}

// walk tries every verb of every kind in every place, and returns by place what the user may, as "verb resource".
func walk(t *testing.T, user *fixture.User, kinds []kind) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	type answer struct{ right, admission bool }
	var elsewhere sync.Map // what was answered to requests that are the same in other places
	// Where the rules are all that there is, one request that they and the API server deny stands for those in other places that they deny, too:
	// who denies it looks at nothing but the rules. What they allow is tried everywhere, because admission knows places.
	ask := func(k kind, verb, namespace string, denied bool) answer {
		if known, there := elsewhere.Load(verb + " " + k.String()); there && (denied || !k.inPlaces()) {
			return known.(answer)
		}
		right, admission := try(t, user, k, verb, namespace)
		if !k.inPlaces() || denied && !right {
			elsewhere.Store(verb+" "+k.String(), answer{right, admission})
		}
		return answer{right, admission}
	}
	for place, namespace := range places {
		found[place] = map[string]bool{}
		rules, err := user.Kube.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
		fixture.Must(t, "asking for the rules of "+user.Name, err)
		var lock sync.Mutex
		var all sync.WaitGroup
		next := make(chan kind)
		for range walkWorkers {
			all.Go(func() {
				for k := range next {
					for _, verb := range k.verbs {
						told := ruled(rules.Status.ResourceRules, k, verb)
						got := ask(k, verb, namespace, !told && !rules.Status.Incomplete)
						if told != got.right && !rules.Status.Incomplete {
							t.Errorf("%s, %s: the rules say %v of %s %s, the answer says %v", user.Name, place, told, verb, k, got.right)
						}
						if got.admission {
							verb += "(refused)"
						}
						if got.right {
							lock.Lock()
							found[place][verb+" "+k.String()] = true
							lock.Unlock()
						}
					}
				}
			})
		}
		for _, k := range kinds {
			next <- k
		}
		close(next)
		all.Wait()
		for _, rule := range rules.Status.ResourceRules {
			for _, name := range rule.ResourceNames {
				for _, verb := range rule.Verbs {
					found[place][fmt.Sprintf("%s %s named %s", verb, strings.Join(rule.Resources, ","), name)] = true
				}
			}
		}
	}
	return found
}

// ruled tells whether rules without names allow it.
func ruled(rules []authorizationv1.ResourceRule, k kind, verb string) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, one) || slices.Contains(list, "*") }
	return slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool {
		return len(r.ResourceNames) == 0 && has(r.Verbs, verb) && has(r.APIGroups, k.Group) && has(r.Resources, k.name)
	})
}

// try makes one request that changes nothing. It tells whether the user has the right, and whether admission refused what it then did.
func try(t *testing.T, user *fixture.User, k kind, verb, namespace string) (right, admission bool) {
	path := []string{"/apis", k.Group, k.Version}
	if k.Group == "" {
		path = []string{"/api", k.Version}
	}
	object := nothing
	switch {
	case k.namespaced:
		path = append(path, "namespaces", namespace)
	case k.inPlaces():
		object = namespace
	}
	name, sub, _ := strings.Cut(k.name, "/")
	path = append(path, name)
	if sub != "" || !slices.Contains([]string{"list", "watch", "create", "deletecollection"}, verb) {
		path = append(path, object)
	}
	if sub != "" {
		path = append(path, sub)
	}
	err := request(t.Context(), user.Kube.Discovery().RESTClient(), verb, k, strings.Join(path, "/"), object, namespace)
	if !apierrors.IsForbidden(err) {
		return true, false
	}
	// The words of the authorizers; admission has others.
	if strings.Contains(err.Error(), fmt.Sprintf("User %q cannot %s ", user.Name, verb)) {
		return false, false
	}
	return true, true
}

func request(ctx context.Context, c rest.Interface, verb string, k kind, path, name, namespace string) error {
	methods := map[string]string{"create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete}
	method := methods[verb]
	if method == "" {
		r := c.Get().AbsPath(path)
		if verb == "watch" {
			r = r.Param("watch", "true").Param("timeoutSeconds", "1")
		}
		body, err := r.Stream(ctx)
		if err != nil {
			return err
		}
		return body.Close()
	}
	r := c.Verb(method).AbsPath(path).Param("dryRun", metav1.DryRunAll)
	switch verb {
	case "create", "update":
		metadata := fmt.Sprintf(`{"name":%q}`, name)
		if k.namespaced {
			metadata = fmt.Sprintf(`{"name":%q,"namespace":%q}`, name, namespace)
		}
		r = r.SetHeader("Content-Type", "application/json").
			Body(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":%s}`, k.body.GroupVersion(), k.body.Kind, metadata))
	case "patch":
		r = r.SetHeader("Content-Type", string(types.MergePatchType)).Body([]byte(`{}`))
	case "deletecollection":
		r = r.Param("fieldSelector", "metadata.name="+nothing)
	}
	return r.Do(ctx).Error()
}

// allKinds asks the API server for what it serves.
func allKinds(t *testing.T) []kind {
	t.Helper()
	_, lists, err := env.Milan.Kube.Discovery().ServerGroupsAndResources()
	fixture.Must(t, "reading what the API server serves", err)
	var kinds []kind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		fixture.Must(t, "reading a version", err)
		for i := range list.APIResources {
			r := &list.APIResources[i]
			k := kind{GroupVersion: gv, name: r.Name, namespaced: r.Namespaced, verbs: r.Verbs, body: gv.WithKind(r.Kind)}
			if r.Version != "" { // that of a subresource may be of another group
				k.body.Group, k.body.Version = r.Group, r.Version
			}
			// A group's first version is the preferred one.
			if !slices.ContainsFunc(kinds, func(other kind) bool { return other.String() == k.String() }) {
				kinds = append(kinds, k)
			}
		}
	}
	return kinds
}

// prepareWalk gives the accounts the rights that our controllers give them.
func prepareWalk(t *testing.T) {
	t.Helper()
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: walkerHome, Name: walker}
	manager := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: fixture.Namespace, Name: "liqo-controller-manager"}
	var objects []client.Object
	for _, name := range []string{"walk-payroll", "walk-shop"} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for consumer, twin := range map[string]string{walker: "walk-twin", stranger: "walk-strangers-twin"} {
		objects = append(objects, append(fixture.TenantNamespace(consumer), fixture.TwinNamespace(twin, consumer)...)...)
		objects = append(objects, bound(corev1beta1.TenantNamespacePrefix+consumer, offloadingv1beta1.ManagerTenantClusterRole, manager),
			bound(twin, offloadingv1beta1.ManagerTwinClusterRole, manager))
	}
	objects = append(objects, bound(walkerHome, offloadingv1beta1.VirtualKubeletTenantClusterRole, account),
		bound("walk-shop", offloadingv1beta1.LocalClusterRole, account),
		bound("", offloadingv1beta1.VirtualKubeletClusterRole, account), bound("", offloadingv1beta1.VirtualKubeletBootstrapClusterRole, account))
	for _, object := range objects {
		fixture.Must(t, "creating "+object.GetName(), env.Milan.Client.Create(t.Context(), object))
	}
	list := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: offloadingv1beta1.VirtualNodesPolicy}}
	fixture.Must(t, "naming the virtual node", env.Milan.Client.Patch(t.Context(), list, client.RawPatch(types.MergePatchType,
		[]byte(`{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"`+walkerNode+`"}]}`))))
	thief, kubelet := env.Milan.As(t, walkerNode, "system:nodes"), env.Milan.As(t, "system:serviceaccount:"+walkerHome+":"+walker)
	fixture.Await(t, fixture.Patience, "the rights of the accounts", func(ctx context.Context) (bool, string) {
		node := thief.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: walker}}, client.DryRunAll)
		secrets := kubelet.List(ctx, &corev1.SecretList{}, client.InNamespace("walk-shop"))
		certificate := kubelet.Get(ctx, client.ObjectKey{Name: nothing}, &certificatesv1.CertificateSigningRequest{})
		return strings.Contains(fmt.Sprint(node), "NotForVirtualNodes") && secrets == nil && apierrors.IsNotFound(certificate), fmt.Sprint(node, secrets, certificate)
	})
}

// bound is the binding of a ClusterRole in a namespace, or in all of them.
func bound(namespace, role string, subject rbacv1.Subject) client.Object {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	if namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "walk-" + role}, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}
	}
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "walk-" + role}, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}
}
