package namespacemap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/counting"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/placement"
)

// poll is how long to wait for a namespace to go; its deletion event usually comes first.
const poll = 5 * time.Second

// scope is what the phases of one pass learn.
type scope struct {
	// nm is the map as it is in the API server, changed by the phases.
	nm *offloadingv1beta1.NamespaceMap
	// before is the map as it was read.
	before *offloadingv1beta1.NamespaceMap
	// tenant is the consumer that owns the tenant namespace; empty if the namespace is not one.
	tenant corev1beta1.ClusterID
	// condition of the tenant; empty if there is no Tenant.
	condition authv1beta1.TenantCondition
	// limit of the tenant's twins, if its Tenant sets one.
	limit *int32
	// tenants are all that this cluster has.
	tenants []corev1beta1.ClusterID
	// older is the map of the same tenant that gets new twins in place of this one; empty if it is this one.
	older string
	// access says whose certificates have rights; nil if there is no Tenant.
	access *identity.Access
	// twins of this map that exist, by the consumer's name.
	twins map[string]*corev1.Namespace
	// all are the names of the tenant's twins, whatever map they belong to, those that are leaving included.
	all []string
	// retained is what volumes take whose claims are gone, by the namespaces of those claims, and lost are those namespaces that are gone, too.
	retained map[string]taken
	lost     []string
	// answers that the consumer gets, by its name of the namespace.
	answers map[string]offloadingv1beta1.RemoteNamespaceStatus
	// past says that the cache was found to show the past, or that it is not known whether it does; set by drop.
	past bool
	// again is when the map has to be looked at again although nothing failed; 0 for never.
	again time.Duration
}

// gather reads who the tenant is, what it may do and which twins there are.
func gather(ctx context.Context, reader client.Reader, nm *offloadingv1beta1.NamespaceMap) (*scope, error) {
	s := &scope{nm: nm, before: nm.DeepCopy(), twins: map[string]*corev1.Namespace{}, answers: map[string]offloadingv1beta1.RemoteNamespaceStatus{}}
	var tn corev1.Namespace
	if err := reader.Get(ctx, client.ObjectKey{Name: nm.Namespace}, &tn); err != nil {
		return nil, fmt.Errorf("reading Namespace %s: %w", nm.Namespace, err)
	}
	id := tn.Labels[corev1beta1.RemoteClusterIDLabel]
	if tn.Labels[corev1beta1.TenantNamespaceLabel] == "true" && id != "" && tn.Name == corev1beta1.TenantNamespacePrefix+id {
		s.tenant = corev1beta1.ClusterID(id)
	}
	if err := s.know(ctx, reader); err != nil {
		return nil, err
	}
	var namespaces corev1.NamespaceList
	if err := reader.List(ctx, &namespaces, client.MatchingLabels{corev1beta1.ManagedLabel: "true"}); err != nil {
		return nil, fmt.Errorf("listing twin Namespaces: %w", err)
	}
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		if isTwinOf(ns, nm) {
			s.twins[ns.Annotations[offloadingv1beta1.OriginalNameAnnotation]] = ns
		}
		if strings.HasPrefix(ns.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation], nm.Namespace+"/") {
			s.all = append(s.all, ns.Name)
		}
	}
	return s, nil
}

// know reads what the tenant may do, and which other tenants and maps there are.
func (s *scope) know(ctx context.Context, reader client.Reader) error {
	var tenants authv1beta1.TenantList
	if err := reader.List(ctx, &tenants); err != nil {
		return fmt.Errorf("listing Tenants: %w", err)
	}
	for i := range tenants.Items {
		t := &tenants.Items[i]
		s.tenants = append(s.tenants, t.Spec.ClusterID)
		if t.Namespace != s.nm.Namespace || t.Spec.ClusterID != s.tenant || !t.DeletionTimestamp.IsZero() {
			continue
		}
		s.access = ptr.To(identity.AccessOf(&t.Spec))
		s.condition = t.Spec.TenantCondition
		// One that is drained has no rights.
		s.access.Revoked = s.access.Revoked || s.condition == authv1beta1.TenantDrained
		if s.condition == "" {
			s.condition = authv1beta1.TenantActive
		}
		if t.Spec.Limits != nil {
			s.limit = t.Spec.Limits.Namespaces
		}
	}
	var maps offloadingv1beta1.NamespaceMapList
	if err := reader.List(ctx, &maps, client.InNamespace(s.nm.Namespace), client.MatchingLabels{corev1beta1.ReplicatedLabel: "true"}); err != nil {
		return fmt.Errorf("listing NamespaceMaps in %s: %w", s.nm.Namespace, err)
	}
	oldest := s.nm
	for i := range maps.Items {
		if other := &maps.Items[i]; counting.Older(other, oldest) {
			oldest, s.older = other, other.Name
		}
	}
	return nil
}

// owned fails if nobody owns the namespace of the map. Then nothing is done, and nothing undone either.
func (s *scope) owned() error {
	if s.tenant != "" {
		return nil
	}
	return reconcile.Terminate(offloadingv1beta1.ReasonNamespaceNotAllowed,
		fmt.Errorf("namespace %s is not a tenant namespace, so the NamespaceMap %s in it is not served", s.nm.Namespace, s.nm.Name))
}

func keyOf(nm *offloadingv1beta1.NamespaceMap) string { return nm.Namespace + "/" + nm.Name }

// isTwinOf tells whether a namespace was made for this very map.
func isTwinOf(ns *corev1.Namespace, nm *offloadingv1beta1.NamespaceMap) bool {
	return ns.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation] == keyOf(nm) &&
		ns.Annotations[corev1beta1.OriginUIDAnnotation] == string(nm.UID) && nm.UID != "" &&
		ns.Annotations[offloadingv1beta1.OriginalNameAnnotation] != ""
}

// admit decides about all that the map asks for. What is new is decided on live knowledge: the cache may not show yet what was made
// a moment ago, for this map or another one of the tenant.
func (r *reconciler) admit(ctx context.Context, s *scope) (admitted map[string]string, refused map[string]*placement.Refusal, err error) {
	admitted, refused = s.admit(r.Rules)
	for local, twin := range admitted {
		if ns := s.twins[local]; ns != nil && ns.Name == twin {
			continue
		}
		now, err := gather(ctx, r.Live, s.nm)
		if err != nil {
			return nil, nil, err
		}
		now.lost = s.lost
		s.limit, s.tenants, s.older, s.all = now.limit, now.tenants, now.older, now.all
		admitted, refused = now.admit(r.Rules)
		break
	}
	return admitted, refused, nil
}

func (s *scope) admit(rules placement.TwinRules) (admitted map[string]string, refused map[string]*placement.Refusal) {
	existing, wanted := map[string]string{}, 0
	for local, ns := range s.twins {
		existing[local] = ns.Name
		if s.nm.Spec.DesiredMapping[local] == ns.Name {
			wanted++
		}
	}
	rules.Tenants = s.tenants
	if s.limit != nil {
		rules.MaxNamespaces = int(*s.limit)
	}
	return rules.Admit(s.tenant, s.nm.Spec.DesiredMapping, existing, len(s.all)-wanted+s.outlivedTwins(rules))
}

// ensure makes the wanted twins. The problem of one does not keep the others from being made.
func (r *reconciler) ensure(ctx context.Context, s *scope) error {
	admitted, refused, err := r.admit(ctx, s)
	if err != nil {
		return err
	}
	for local, refusal := range refused {
		s.answer(local, refusal.Reason, refusal.Message)
	}
	var problems []error
	for _, local := range slices.Sorted(maps.Keys(admitted)) {
		if _, leaving := s.answers[local]; leaving {
			continue
		}
		err := r.ensureTwin(ctx, s, local, admitted[local])
		if err == nil {
			s.answers[local] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: admitted[local], Phase: offloadingv1beta1.MappingAccepted}
			continue
		}
		problems = append(problems, err)
		switch before := s.before.Status.CurrentMapping[local]; {
		case s.answers[local].Phase != "":
		case passes(err) && s.twins[local] != nil && before.Phase == offloadingv1beta1.MappingAccepted && before.RemoteNamespace == admitted[local]:
			s.answers[local] = before
		default:
			s.answer(local, reconcile.ReasonOf(err), reconcile.MessageOf(err))
		}
	}
	return worst(problems)
}

// passes tells of a problem that says nothing about the twin: the API server failed, or our own rights are away for a moment, as in an
// upgrade. A twin that was accepted stays so meanwhile, because its consumer stops all work in one that is not.
func passes(err error) bool {
	return reconcile.Classify(err) == reconcile.Transient || apierrors.IsForbidden(err)
}

// worst returns a transient problem if there is one, because it is retried soonest, else the first one. Those that are nil are none.
func worst(problems []error) error {
	for _, class := range []reconcile.Class{reconcile.Transient, reconcile.Waiting} {
		for _, err := range problems {
			if err != nil && reconcile.Classify(err) == class {
				return err
			}
		}
	}
	for _, err := range problems {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scope) answer(local, reason, message string) {
	s.answers[local] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: s.nm.Spec.DesiredMapping[local],
		Phase: offloadingv1beta1.MappingCreationLoopBackOff, Reason: reason, Message: message}
}

// ensureTwin makes one namespace and what belongs into it.
func (r *reconciler) ensureTwin(ctx context.Context, s *scope, local, twin string) error {
	var ns corev1.Namespace
	err := r.Get(ctx, client.ObjectKey{Name: twin}, &ns)
	switch {
	case apierrors.IsNotFound(err):
		created, err := r.create(ctx, s, local, twin)
		if err != nil {
			return err
		}
		ns = *created
	case err != nil:
		return fmt.Errorf("reading Namespace %s: %w", twin, err)
	case !isTwinOf(&ns, s.nm) || ns.Annotations[offloadingv1beta1.OriginalNameAnnotation] != local:
		return conflict(&ns, s.nm)
	case !ns.DeletionTimestamp.IsZero():
		s.answers[local] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: twin, Phase: offloadingv1beta1.MappingTerminating,
			Reason: offloadingv1beta1.ReasonTwinTerminating, Message: blockers(&ns)}
		return reconcile.Wait(offloadingv1beta1.ReasonTwinTerminating, fmt.Sprintf("waiting for Namespace %s to go", twin), poll)
	default:
		if err := r.relabel(ctx, s, &ns, local); err != nil {
			return err
		}
	}
	return r.furnish(ctx, s, &ns)
}

// conflict says that a namespace of the wanted name is not ours.
func conflict(ns *corev1.Namespace, nm *offloadingv1beta1.NamespaceMap) error {
	if ns.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation] == keyOf(nm) {
		return reconcile.Refuse(offloadingv1beta1.ReasonNamespaceConflict,
			fmt.Errorf("namespace %s: it is left over from an earlier offloading; to lose it, run: liqoctl peer --delete-volumes, or delete it there", ns.Name))
	}
	return reconcile.NotOurs(offloadingv1beta1.ReasonNamespaceConflict, "Namespace", client.ObjectKeyFromObject(ns))
}
