package cordon

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/identity"
)

// DefaultTimeout of Tenant and Slice.
const DefaultTimeout = 2 * time.Minute

// Options of Tenant and Slice.
type Options struct {
	// Cluster is the provider.
	Cluster *target.Cluster
	// Name of the Tenant or ResourceSlice.
	Name string
	// ConsumerID is the cluster ID of the consumer whose it is; empty means whoever has something of the name.
	ConsumerID string
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Confirm asks whether to drain a tenant; the question says what stops and what stays. An error ends the command. nil means that nobody is
	// asked.
	Confirm func(ctx context.Context, question string) error
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// Change is what becomes of a tenant.
type Change struct {
	// To is the condition that the tenant gets.
	To authv1beta1.TenantCondition
	// EvenDrained says that it is made of a drained tenant too.
	EvenDrained bool
}

// The changes.
var (
	// Cordon: the tenant keeps what it has, and gets nothing new.
	Cordon = Change{authv1beta1.TenantCordoned, false}
	// Uncordon: the tenant gets what is new again.
	Uncordon = Change{authv1beta1.TenantActive, false}
	// Drain: the tenant loses its rights and its pods, and no data.
	Drain = Change{authv1beta1.TenantDrained, true}
	// Activate: the tenant may do everything that was granted, whatever it was.
	Activate = Change{authv1beta1.TenantActive, true}
)

// words say what a tenant of a condition is.
var words = map[authv1beta1.TenantCondition]string{
	authv1beta1.TenantActive:   "active: it gets what it was granted",
	authv1beta1.TenantCordoned: "cordoned: it keeps what it has and gets nothing new",
	authv1beta1.TenantDrained:  "drained: it has no rights and no pods here, and its data is kept",
}

// conditionOf is the condition of a tenant; one of before the schema had a default is active.
func conditionOf(tenant *authv1beta1.Tenant) authv1beta1.TenantCondition {
	return cmp.Or(tenant.Spec.TenantCondition, authv1beta1.TenantActive)
}

// Tenant makes a change of a tenant, and waits until it is in effect.
func Tenant(ctx context.Context, o Options, change Change) error {
	o.complete()
	tenant, err := o.tenant(ctx)
	if err != nil {
		return err
	}
	if err := o.allowed(ctx, tenant, change); err != nil {
		return err
	}
	if change == Drain && conditionOf(tenant) != change.To && o.Confirm != nil {
		hosted, err := offloaded.Hosts(ctx, o.Cluster, string(tenant.Spec.ClusterID))
		if err != nil {
			return err
		}
		if err := o.Confirm(ctx, Question(o.Cluster.Name, tenant, hosted)); err != nil {
			return err
		}
	}
	// Whoever is asked may take their time.
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	title := fmt.Sprintf("Making tenant %s %s", tenant.Name, change.To)
	return progress.Run(ctx, o.Observer, o.Cluster.Name, title, func(ctx context.Context, task progress.Task) (string, error) {
		is, err := o.set(ctx, tenant, change)
		if err != nil {
			return "", err
		}
		if change.To != authv1beta1.TenantDrained && identity.AccessOf(&tenant.Spec).Revoked {
			return "", progress.Warned(fmt.Sprintf("Tenant %s %s %s, once it is peered again: its certificates were revoked",
				tenant.Name, is, words[change.To]))
		}
		return "Tenant " + tenant.Name + " " + is + " " + words[change.To], await.Until(ctx, task, o.Cluster.Describe(tenant)+" to be "+string(change.To),
			func(ctx context.Context) (bool, string, error) { return o.inEffect(ctx, tenant, change) })
	})
}

// allowed refuses what the user may not do, and what cannot be made of the tenant.
func (o *Options) allowed(ctx context.Context, tenant *authv1beta1.Tenant, change Change) error {
	if err := change.refuse(o.Cluster, tenant); err != nil {
		return err
	}
	rights := target.Rights(authv1beta1.GroupVersion.Group, "tenants", tenant.Namespace, "get", "patch")
	if change == Drain {
		rights = append(rights, offloaded.HostedRights()...)
	} else {
		rights = append(rights, effectRights(tenant.Namespace)...)
	}
	return o.Cluster.RequireRights(ctx, rights)
}

// effectRights are those for seeing what the grants in a tenant namespace say.
func effectRights(namespace string) []target.Right {
	return append(target.Rights(authv1beta1.GroupVersion.Group, "resourceslices", namespace, "list"),
		target.Rights(offloadingv1beta1.GroupVersion.Group, "quotas", namespace, "list")...)
}

// refuse says that a drained tenant has to be activated first, if it has.
func (c Change) refuse(cluster *target.Cluster, tenant *authv1beta1.Tenant) error {
	if conditionOf(tenant) != authv1beta1.TenantDrained || c.EvenDrained {
		return nil
	}
	return failure.Unmet("give it its rights again with '"+cluster.Command("liqoctl activate tenant "+tenant.Name)+"'",
		"tenant %s is %s (cluster %s)", tenant.Name, words[authv1beta1.TenantDrained], cluster.Name)
}

// Question says what goes with a tenant's rights, and what stays.
func Question(provider string, tenant *authv1beta1.Tenant, hosted *offloaded.Hosted) string {
	stops := "It runs no pods there."
	if len(hosted.Pods) > 0 {
		stops = "What stops there: " + offloaded.Counted("pod", hosted.Pods) + "."
	}
	return fmt.Sprintf("Tenant %s loses its rights in %s, and its ResourceSlices there. %s The data of its volumes stays, and so do its namespaces.",
		tenant.Name, provider, stops)
}

// set writes the condition, unless the tenant has it. What is decided is decided about what is there now: a tenant that somebody drains
// meanwhile is not given its rights back. It returns how the tenant is what it is: as it was asked for, or already.
func (o *Options) set(ctx context.Context, tenant *authv1beta1.Tenant, change Change) (is string, err error) {
	uid := tenant.UID
	is = stands
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, err := o.Cluster.Get(ctx, tenant)
		switch {
		case err != nil:
			return err
		case !found || tenant.UID != uid:
			return gone(o.Cluster, tenant)
		case conditionOf(tenant) == change.To:
			is = stood
			return nil
		}
		if err := change.refuse(o.Cluster, tenant); err != nil {
			return err
		}
		before := tenant.DeepCopy()
		tenant.Spec.TenantCondition = change.To
		return o.Cluster.Client.Patch(ctx, tenant, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return "", fmt.Errorf("changing %s: %w", o.Cluster.Describe(tenant), err)
	}
	return is, nil
}

// How an object is what was asked for: now, or since earlier.
const stands, stood = "is", "is already"

func gone(cluster *target.Cluster, object client.Object) error {
	return failure.Unmet("see with '"+cluster.Command("liqoctl info")+"' what is there now", "%s was deleted meanwhile", cluster.Describe(object))
}

// Slice cordons a ResourceSlice or lifts its cordon, and waits until that is in effect.
func Slice(ctx context.Context, o Options, cordoned bool) error {
	o.complete()
	slice, err := o.slice(ctx)
	if err != nil {
		return err
	}
	rights := target.Rights(authv1beta1.GroupVersion.Group, "resourceslices", slice.Namespace, "patch")
	rights = append(rights, target.Rights(authv1beta1.GroupVersion.Group, "tenants", slice.Namespace, "list")...)
	if err := o.Cluster.RequireRights(ctx, append(rights, effectRights(slice.Namespace)...)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	title, done := "Cordoning resourceslice "+slice.Name, "cordoned: it keeps what it has and gets no new pods"
	if !cordoned {
		title, done = "Uncordoning resourceslice "+slice.Name, "open: it gets new pods"
	}
	return progress.Run(ctx, o.Observer, o.Cluster.Name, title, func(ctx context.Context, task progress.Task) (string, error) {
		is, err := o.mark(ctx, slice, cordoned)
		if err != nil {
			return "", err
		}
		byTenant := ""
		err = await.Until(ctx, task, "the grant of "+o.Cluster.Describe(slice)+" to follow", func(ctx context.Context) (bool, string, error) {
			tenants := &authv1beta1.TenantList{}
			if err := o.Cluster.List(ctx, tenants, client.InNamespace(slice.Namespace)); err != nil {
				return false, "", err
			}
			byTenant = ""
			for i := range tenants.Items {
				if conditionOf(&tenants.Items[i]) == authv1beta1.TenantCordoned {
					byTenant = tenants.Items[i].Name
				}
			}
			missing, err := o.behind(ctx, slice.Namespace, slice.Name, byTenant != "")
			return err == nil && missing == "", missing, err
		})
		if err == nil && byTenant != "" && !cordoned {
			return "", progress.Warned(fmt.Sprintf("ResourceSlice %s has no cordon of its own, and gets no new pods: its whole tenant is cordoned, until '%s'",
				slice.Name, o.Cluster.Command("liqoctl uncordon tenant "+byTenant)))
		}
		return "ResourceSlice " + slice.Name + " " + is + " " + done, err
	})
}

// mark puts the annotation that cordons on a slice, or takes it off, unless it is so already.
func (o *Options) mark(ctx context.Context, slice *authv1beta1.ResourceSlice, cordoned bool) (is string, err error) {
	if authv1beta1.IsSet(slice.Annotations, authv1beta1.CordonAnnotation) == cordoned {
		return stood, nil
	}
	before := slice.DeepCopy()
	if slice.Annotations == nil {
		slice.Annotations = map[string]string{}
	}
	if slice.Annotations[authv1beta1.CordonAnnotation] = "true"; !cordoned {
		delete(slice.Annotations, authv1beta1.CordonAnnotation)
	}
	err = o.Cluster.Client.Patch(ctx, slice, client.MergeFrom(before))
	if target.Absent(err) {
		return "", gone(o.Cluster, slice)
	}
	if err != nil {
		return "", fmt.Errorf("changing %s: %w", o.Cluster.Describe(slice), err)
	}
	return stands, nil
}

func (o *Options) complete() {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
}
