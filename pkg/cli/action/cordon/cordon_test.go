package cordon_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/cordon"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
)

// tenant is a consumer at milan, in the state in which the controllers leave it.
func tenant(name, consumer string, condition authv1beta1.TenantCondition) *authv1beta1.Tenant {
	t := &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1beta1.TenantNamespacePrefix + consumer, Name: name, UID: "u"},
		Spec:       authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(consumer), TenantCondition: condition},
	}
	settle(t)
	return t
}

// settle writes the condition that the controllers give a tenant.
func settle(t *authv1beta1.Tenant) {
	ready := metav1.Condition{Type: "Ready", Status: "True", Reason: authv1beta1.ReasonReady, ObservedGeneration: t.Generation}
	switch t.Spec.TenantCondition {
	case authv1beta1.TenantDrained:
		ready.Status, ready.Reason = "False", authv1beta1.ReasonTenantDrained
	case authv1beta1.TenantCordoned:
		ready.Reason = authv1beta1.ReasonTenantCordoned
	}
	t.Status.Conditions = []metav1.Condition{ready}
}

// slice is one of a consumer at milan, with its Quota.
func slice(name, consumer string, annotations map[string]string, cordoned bool) []client.Object {
	meta := metav1.ObjectMeta{Namespace: corev1beta1.TenantNamespacePrefix + consumer, Name: name, Annotations: annotations,
		Labels: map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: consumer}}
	quota := metav1.ObjectMeta{Namespace: meta.Namespace, Name: consumer + "-" + name,
		Labels: map[string]string{corev1beta1.ManagedLabel: "true", authv1beta1.ResourceSliceNameLabel: name}}
	return []client.Object{&authv1beta1.ResourceSlice{ObjectMeta: meta},
		&offloadingv1beta1.Quota{ObjectMeta: quota, Spec: offloadingv1beta1.QuotaSpec{User: "u", Cordoned: ptr.To(cordoned)}}}
}

// running is a twin of rome's namespace shop, in which a pod runs and a volume has data.
func running() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-rome",
			Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: "rome"},
			Annotations: map[string]string{offloadingv1beta1.OriginalNameAnnotation: "shop",
				offloadingv1beta1.ManagedByNamespaceMapAnnotation: "liqo-tenant-rome/milan"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}},
	}
}

// controllers do at milan what those of a provider do after a change.
func controllers(t *testing.T) func(context.Context, client.Client, client.Object) {
	return func(ctx context.Context, c client.Client, _ client.Object) {
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		tenants, list, quotas := &authv1beta1.TenantList{}, &authv1beta1.ResourceSliceList{}, &offloadingv1beta1.QuotaList{}
		for _, l := range []client.ObjectList{tenants, list, quotas} {
			must(c.List(ctx, l))
		}
		for i := range tenants.Items {
			tenant := &tenants.Items[i]
			settle(tenant)
			must(c.Status().Update(ctx, tenant))
			if tenant.Spec.TenantCondition == authv1beta1.TenantDrained {
				must(c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("shop-"+string(tenant.Spec.ClusterID))))
			}
			for j := range list.Items {
				for k := range quotas.Items {
					slice, quota := &list.Items[j], &quotas.Items[k]
					if slice.Namespace == tenant.Namespace && quota.Namespace == tenant.Namespace && quota.Labels[authv1beta1.ResourceSliceNameLabel] == slice.Name {
						quota.Spec.Cordoned = ptr.To(tenant.Spec.TenantCondition == authv1beta1.TenantCordoned || slice.Annotations[authv1beta1.CordonAnnotation] == "true")
						must(c.Update(ctx, quota))
					}
				}
			}
		}
	}
}

var (
	active, cordoned, drained = authv1beta1.TenantActive, authv1beta1.TenantCordoned, authv1beta1.TenantDrained
	bySlice                   = map[string]string{authv1beta1.CordonAnnotation: "true"}
)

// Each change from each state: what the tenant becomes, what is said, and that nothing is written where nothing changes.
func TestTenant(t *testing.T) {
	const (
		activeWords   = "active: it gets what it was granted"
		cordonedWords = "cordoned: it keeps what it has and gets nothing new"
		drainedWords  = "drained: it has no rights and no pods here, and its data is kept"
	)
	for sentence, test := range map[string]struct {
		change   cordon.Change
		from, to authv1beta1.TenantCondition
		said     string
		refused  string
	}{
		"cordon an active one":             {change: cordon.Cordon, from: active, to: cordoned, said: "is " + cordonedWords},
		"cordon one of before the default": {change: cordon.Cordon, from: "", to: cordoned, said: "is " + cordonedWords},
		"cordon a cordoned one":            {change: cordon.Cordon, from: cordoned, to: cordoned, said: "is already " + cordonedWords},
		"cordon a drained one":             {change: cordon.Cordon, from: drained, to: drained, refused: "tenant rome is " + drainedWords},
		"uncordon a cordoned one":          {change: cordon.Uncordon, from: cordoned, to: active, said: "is " + activeWords},
		"uncordon an active one":           {change: cordon.Uncordon, from: active, to: active, said: "is already " + activeWords},
		"uncordon a drained one":           {change: cordon.Uncordon, from: drained, to: drained, refused: "liqoctl activate tenant rome --context milan"},
		"drain an active one":              {change: cordon.Drain, from: active, to: drained, said: "is " + drainedWords},
		"drain a cordoned one":             {change: cordon.Drain, from: cordoned, to: drained, said: "is " + drainedWords},
		"drain a drained one":              {change: cordon.Drain, from: drained, to: drained, said: "is already " + drainedWords},
		"activate a drained one":           {change: cordon.Activate, from: drained, to: active, said: "is " + activeWords},
		"activate a cordoned one":          {change: cordon.Activate, from: cordoned, to: active, said: "is " + activeWords},
		"activate an active one":           {change: cordon.Activate, from: active, to: active, said: "is already " + activeWords},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := append(slice("milan", "rome", nil, test.from == cordoned), slice("gpus", "rome", bySlice, true)...)
			objects = append(objects, tenant("rome", "rome", test.from), tenant("turin", "turin", active))
			objects = append(objects, slice("milan", "turin", nil, false)...)
			if test.from != drained {
				objects = append(objects, running()...)
			}
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: objects, React: controllers(t)})
			said := &progress.Recorder{}
			err := cordon.Tenant(t.Context(), cordon.Options{Cluster: milan.Cluster, Name: "rome", Timeout: 20 * time.Second, Observer: said}, test.change)
			if test.refused != "" {
				if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %v", err)
				}
			} else if err != nil {
				t.Fatal(err)
			} else if diff := cmp.Diff([]string{"milan: done: Tenant rome " + test.said}, said.Lines()); diff != "" {
				t.Error(diff)
			}
			got := &authv1beta1.Tenant{}
			if err := milan.Client.Get(t.Context(), client.ObjectKey{Namespace: "liqo-tenant-rome", Name: "rome"}, got); err != nil || got.Spec.TenantCondition != test.to {
				t.Errorf("it is %s, %v", got.Spec.TenantCondition, err)
			}
			var writes []string
			if test.from != test.to {
				writes = []string{"patch Tenant liqo-tenant-rome/rome (cluster milan)"}
			}
			if diff := cmp.Diff(writes, milan.Writes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whoever drains is told what stops and what stays; who says no changes nothing.
func TestDrainingIsConfirmed(t *testing.T) {
	no := errors.New("no")
	for sentence, test := range map[string]struct {
		change  cordon.Change
		from    authv1beta1.TenantCondition
		objects []client.Object
		asked   string
	}{
		"with pods": {cordon.Drain, active, running(), "Tenant rome loses its rights in milan, and its ResourceSlices there. " +
			"What stops there: 1 pod (shop-rome/web). The data of its volumes stays, and so do its namespaces."},
		"without pods": {cordon.Drain, cordoned, nil, "Tenant rome loses its rights in milan, and its ResourceSlices there. " +
			"It runs no pods there. The data of its volumes stays, and so do its namespaces."},
		"that is drained":        {cordon.Drain, drained, nil, ""},
		"that is only cordoned":  {cordon.Cordon, active, nil, ""},
		"that is only activated": {cordon.Activate, drained, nil, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: append(test.objects, tenant("rome", "rome", test.from)), React: controllers(t)})
			asked := ""
			err := cordon.Tenant(t.Context(), cordon.Options{Cluster: milan.Cluster, Name: "rome", Timeout: 20 * time.Second,
				Confirm: func(_ context.Context, question string) error { asked = question; return no }}, test.change)
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Error(diff)
			}
			if asked != "" && (!errors.Is(err, no) || len(milan.Writes()) > 0) || asked == "" && err != nil {
				t.Errorf("got %v, wrote %v", err, milan.Writes())
			}
		})
	}
}

// The command does not end before what was asked for is in effect, and says what is missing.
func TestWhatIsNotInEffectIsNamed(t *testing.T) {
	unseen := tenant("rome", "rome", active)
	unseen.Status.Conditions = nil
	certificate := tenant("rome", "rome", active)
	certificate.Status.Conditions[0].Status, certificate.Status.Conditions[0].Reason, certificate.Status.Conditions[0].Message = "False", "CertificatePending", "soon"
	for sentence, test := range map[string]struct {
		change  cordon.Change
		objects []client.Object
		want    string
	}{
		"nobody looks":                {cordon.Cordon, []client.Object{unseen}, "the controller manager has not looked at it yet"},
		"the grant takes pods":        {cordon.Cordon, append(slice("milan", "rome", nil, false), tenant("rome", "rome", active)), "Quota liqo-tenant-rome/rome-milan does not say so yet"},
		"the grant takes none":        {cordon.Activate, append(slice("milan", "rome", nil, true), tenant("rome", "rome", active)), "Quota liqo-tenant-rome/rome-milan does not say so yet"},
		"it has no certificate":       {cordon.Activate, []client.Object{certificate}, "CertificatePending: soon"},
		"rights are there":            {cordon.Drain, []client.Object{tenant("rome", "rome", active)}, "Ready: "},
		"pods of a drained one run":   {cordon.Drain, append(running(), tenant("rome", "rome", drained)), "1 pod (shop-rome/web) did not end yet"},
		"a condition of what was":     {cordon.Cordon, []client.Object{func() client.Object { old := tenant("rome", "rome", active); old.Generation = 2; return old }()}, "has not looked at it yet"},
		"a slice's grant of the same": {cordon.Cordon, append(slice("gpus", "rome", bySlice, false), tenant("rome", "rome", cordoned)), "rome-gpus does not say so yet"},
	} {
		t.Run(sentence, func(t *testing.T) {
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: test.objects})
			err := cordon.Tenant(t.Context(), cordon.Options{Cluster: milan.Cluster, Name: "rome", Timeout: time.Second / 2}, test.change)
			if failure.CodeOf(err) != failure.Timeout || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A tenant whose certificates were revoked has no rights whatever it is: that is told, and nothing waited for.
func TestARevokedTenantIsPeeredAgain(t *testing.T) {
	revoked := tenant("rome", "rome", drained)
	revoked.Spec.RevokedPeering = "0123456789abcdef"
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: []client.Object{revoked}})
	said := &progress.Recorder{}
	err := cordon.Tenant(t.Context(), cordon.Options{Cluster: milan.Cluster, Name: "rome", Timeout: 20 * time.Second, Observer: said}, cordon.Activate)
	if diff := cmp.Diff([]string{"milan: warned: Tenant rome is active: it gets what it was granted, once it is peered again: its certificates were revoked"}, said.Lines()); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestSlice(t *testing.T) {
	open, closed := "open: it gets new pods", "cordoned: it keeps what it has and gets no new pods"
	for sentence, test := range map[string]struct {
		cordon      bool
		annotations map[string]string
		tenant      authv1beta1.TenantCondition
		said        string
		want        map[string]string
		writes      int
	}{
		"cordon":                            {true, nil, active, "done: ResourceSlice milan is " + closed, bySlice, 1},
		"cordon beside another annotation":  {true, map[string]string{"a": "b"}, active, "done: ResourceSlice milan is " + closed, map[string]string{"a": "b", authv1beta1.CordonAnnotation: "true"}, 1},
		"cordon where a false one is":       {true, map[string]string{authv1beta1.CordonAnnotation: "false"}, active, "done: ResourceSlice milan is " + closed, bySlice, 1},
		"cordon twice":                      {true, bySlice, active, "done: ResourceSlice milan is already " + closed, bySlice, 0},
		"uncordon":                          {false, bySlice, active, "done: ResourceSlice milan is " + open, nil, 1},
		"uncordon what is open":             {false, nil, active, "done: ResourceSlice milan is already " + open, nil, 0},
		"uncordon while the tenant is so":   {false, bySlice, cordoned, "warned: ResourceSlice milan has no cordon of its own, and gets no new pods: its whole tenant is cordoned, until 'liqoctl uncordon tenant rome --context milan'", nil, 1},
		"cordon while the whole tenant was": {true, nil, cordoned, "done: ResourceSlice milan is " + closed, bySlice, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			before := test.annotations[authv1beta1.CordonAnnotation] == "true" || test.tenant == cordoned
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", React: controllers(t),
				Objects: append(slice("milan", "rome", test.annotations, before), tenant("rome", "rome", test.tenant))})
			said := &progress.Recorder{}
			if err := cordon.Slice(t.Context(), cordon.Options{Cluster: milan.Cluster, Name: "milan", Timeout: 20 * time.Second, Observer: said}, test.cordon); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"milan: " + test.said}, said.Lines()); diff != "" {
				t.Error(diff)
			}
			got := &authv1beta1.ResourceSlice{}
			if err := milan.Client.Get(t.Context(), client.ObjectKey{Namespace: "liqo-tenant-rome", Name: "milan"}, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Annotations); diff != "" || len(milan.Writes()) != test.writes {
				t.Error(diff, milan.Writes())
			}
		})
	}
}

func TestASliceWhoseGrantDoesNotFollow(t *testing.T) {
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: append(slice("milan", "rome", nil, false), tenant("rome", "rome", active))})
	err := cordon.Slice(t.Context(), cordon.Options{Cluster: milan.Cluster, Name: "milan", Timeout: time.Second / 2}, true)
	if failure.CodeOf(err) != failure.Timeout || !strings.Contains(err.Error(), "Quota liqo-tenant-rome/rome-milan does not say so yet") {
		t.Errorf("got %v", err)
	}
}

// Each mistake is one sentence with the way out, and nothing is written.
func TestRefusals(t *testing.T) {
	leaving := tenant("oslo", "oslo", active)
	leaving.DeletionTimestamp, leaving.Finalizers = ptr.To(metav1.Now()), []string{authv1beta1.TenantFinalizer}
	own := slice("paris", "paris", nil, false)[0]
	own.SetLabels(nil)
	objects := append(slice("milan", "rome", nil, false), slice("milan", "turin", nil, false)...)
	objects = append(objects, tenant("rome", "rome", active), tenant("bank", "rome", active), tenant("bank", "turin", active), leaving, own)
	onTenant := func(ctx context.Context, o cordon.Options) error { return cordon.Tenant(ctx, o, cordon.Cordon) }
	onSlice := func(ctx context.Context, o cordon.Options) error { return cordon.Slice(ctx, o, true) }
	for sentence, test := range map[string]struct {
		run      func(context.Context, cordon.Options) error
		name     string
		consumer string
		missing  string
		want     string
	}{
		"a misspelt tenant":           {run: onTenant, name: "rom", want: "milan has no tenant rom: did you mean rome?"},
		"a tenant that is nowhere":    {run: onTenant, name: "singapore", want: "milan has no tenant singapore: list them with 'kubectl get tenants -A --context milan'"},
		"a tenant of another":         {run: onTenant, name: "rome", consumer: "turin", want: "milan has no tenant rome of consumer turin: list them with 'kubectl get tenants -A --context milan'"},
		"a name of two tenants":       {run: onTenant, name: "bank", want: "milan has several tenants of the name bank: that of rome in namespace liqo-tenant-rome, that of turin in namespace liqo-tenant-turin: say whose is meant with --remote-cluster-id"},
		"a tenant that leaves":        {run: onTenant, name: "oslo", want: "Tenant liqo-tenant-oslo/oslo (cluster milan) is being deleted: it needs nothing any more"},
		"no right to list tenants":    {run: onTenant, name: "rome", missing: "list tenants.authentication.liqo.io", want: "you are not allowed to: list tenants"},
		"no right to change it":       {run: onTenant, name: "rome", missing: "patch tenants.authentication.liqo.io in namespace liqo-tenant-rome", want: "you are not allowed to: patch tenants"},
		"a slice that is nowhere":     {run: onSlice, name: "singapore", want: "milan has no resourceslice singapore: list them with 'liqoctl get resourceslice --context milan'"},
		"a name of two slices":        {run: onSlice, name: "milan", want: "that of rome in namespace liqo-tenant-rome, that of turin in namespace liqo-tenant-turin: say whose is meant with --remote-cluster-id"},
		"a slice of this cluster":     {run: onSlice, name: "paris", want: "milan asks with ResourceSlice paris itself: only the provider cordons it: run it at the provider, or cordon the virtual node with 'kubectl cordon paris'"},
		"no right to change a slice":  {run: onSlice, name: "milan", consumer: "rome", missing: "patch resourceslices.authentication.liqo.io in namespace liqo-tenant-rome", want: "you are not allowed to: patch resourceslices"},
		"no right to see what it has": {run: onSlice, name: "milan", consumer: "rome", missing: "list quotas.offloading.liqo.io in namespace liqo-tenant-rome", want: "you are not allowed to: list quotas"},
	} {
		t.Run(sentence, func(t *testing.T) {
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: objects, Missing: []string{test.missing}})
			err := test.run(t.Context(), cordon.Options{Cluster: milan.Cluster, Name: test.name, ConsumerID: test.consumer, Timeout: 20 * time.Second})
			if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), test.want) || len(milan.Writes()) > 0 {
				t.Errorf("got %v, wrote %v", err, milan.Writes())
			}
		})
	}
}

// The name of a consumer tells its slice from another one's.
func TestTheConsumerIsNamed(t *testing.T) {
	objects := append(slice("milan", "rome", nil, false), slice("milan", "turin", nil, false)...)
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", React: controllers(t),
		Objects: append(objects, tenant("rome", "rome", active), tenant("turin", "turin", active))})
	if err := cordon.Slice(t.Context(), cordon.Options{Cluster: milan.Cluster, Name: "milan", ConsumerID: "turin", Timeout: 20 * time.Second}, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"patch ResourceSlice liqo-tenant-turin/milan (cluster milan)"}, milan.Writes()); diff != "" {
		t.Error(diff)
	}
}
