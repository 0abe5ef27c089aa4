package greed

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

func stolenManager(t *testing.T) *fixture.User {
	t.Helper()
	return env.Milan.As(t, "system:serviceaccount:liqo:liqo-controller-manager", "system:serviceaccounts", "system:serviceaccounts:liqo")
}

// T13: pods of DaemonSets that tolerate everything are bound to virtual nodes by default. Whoever stole the identity of a virtual kubelet gets the
// tokens of their accounts, which as a rule may do anything on nodes and in kube-system, although nobody offloaded their namespace.
func TestAStolenNodeGetsNoTokensOfNamespacesThatAreNotOffloaded(t *testing.T) {
	w := env.Peered(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: fixture.Unique("cni")}}
	fixture.Must(t, "creating an account", env.Rome.Client.Create(t.Context(), account))
	set := fixture.DaemonSet(metav1.NamespaceSystem, account.Name)
	set.Spec.Template.Spec.ServiceAccountName = account.Name
	fixture.Must(t, "creating a DaemonSet", env.Rome.Client.Create(t.Context(), set))
	defer func() { _ = env.Rome.Client.Delete(context.WithoutCancel(t.Context()), set) }()
	var victim *corev1.Pod
	fixture.Await(t, fixture.Patience, "the DaemonSet to be everywhere", func(ctx context.Context) (bool, string) {
		pods, live := &corev1.PodList{}, &appsv1.DaemonSet{}
		if err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil {
			return false, err.Error()
		}
		err := env.Rome.Client.List(ctx, pods, client.InNamespace(set.Namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels))
		bound := 0
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" {
				bound++
			}
			if pods.Items[i].Spec.NodeName == w.Node {
				victim = &pods.Items[i]
			}
		}
		return err == nil && live.Status.DesiredNumberScheduled > 0 && bound == int(live.Status.DesiredNumberScheduled), fmt.Sprint(bound, live.Status, err)
	})
	if victim == nil {
		t.Log("no pod of the DaemonSet is on the virtual node")
		return
	}
	thief := env.Rome.As(t, "system:node:"+w.Node, "system:nodes")
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
		Kind: "Pod", APIVersion: "v1", Name: victim.Name, UID: victim.UID}}}
	answer, err := thief.Kube.CoreV1().ServiceAccounts(account.Namespace).CreateToken(t.Context(), account.Name, request, metav1.CreateOptions{})
	if err != nil {
		t.Logf("refused: %v", err)
		return
	}
	config := rest.AnonymousClientConfig(env.Rome.Config)
	config.BearerToken = answer.Status.Token
	as, err := kubernetes.NewForConfig(config)
	fixture.Must(t, "connecting with the token", err)
	who, err := as.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	fixture.Must(t, "asking who the token is", err)
	t.Errorf("the virtual node of milan got a token of %s, whose namespace is not offloaded, by the DaemonSet's pod %s", who.Status.UserInfo.Username, victim.Name)
}

// T31: whoever took the controller manager over makes a twin, and in it pods: these get no node either. Pods of consumers are no reason to let it make
// privileged ones, with the node's file system.
func TestTheManagerMakesNoPrivilegedPods(t *testing.T) {
	manager := env.Milan.As(t, "system:serviceaccount:liqo:liqo-controller-manager", "system:serviceaccounts", "system:serviceaccounts:liqo")
	name := fixture.Unique("loot")
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/managed": "true", "liqo.io/remote-cluster-id": "rome"},
			Annotations: map[string]string{offloadingv1beta1.ManagedByNamespaceMapAnnotation: "liqo-tenant-rome/milan"}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "self"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "liqo-controller-manager-twin"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "liqo", Name: "liqo-controller-manager"}}},
	} {
		if err := manager.Create(t.Context(), o); err != nil {
			t.Logf("refused: %v", err)
			return
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "root"}, Spec: corev1.PodSpec{
		HostPID: true, HostNetwork: true, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Volumes:    []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}},
		Containers: []corev1.Container{{Name: "a", Image: "b", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}, VolumeMounts: []corev1.VolumeMount{{Name: "root", MountPath: "/host"}}}},
	}}
	var err error
	// Its binding takes effect a moment later, and the account of the namespace comes then.
	fixture.Await(t, fixture.Patience, "an answer to a privileged pod", func(ctx context.Context) (bool, string) {
		err = manager.Create(ctx, pod.DeepCopy())
		return err == nil || !strings.Contains(err.Error(), "cannot create resource") && !strings.Contains(err.Error(), "serviceaccount"), fmt.Sprint(err)
	})
	if err == nil {
		t.Errorf("the controller manager made namespace %s, bound its own role there, and runs a privileged pod with the node's file system, on any node", name)
	} else if !strings.Contains(err.Error(), "PodNotAllowed") {
		t.Errorf("a privileged pod is refused with %v", err)
	}
	_ = env.Milan.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// T37: API servers ask webhooks about what the configuration liqo-webhook says, in all namespaces, and do what they answer. Admission does not
// look at changes of it, so no policy can hold whoever may patch it: with one webhook of its own, the stolen credential of a controller manager would
// hear of Secrets elsewhere, and change pods of kube-system.
func TestTheManagerHearsOfNoSecretsElsewhere(t *testing.T) {
	env.Peered(t)
	// What it looks like is no secret: whoever installed the same chart knows it.
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	fixture.Must(t, "reading the webhooks", env.Milan.Client.Get(t.Context(), client.ObjectKey{Name: "liqo-webhook"}, configuration))
	before := configuration.DeepCopy()
	configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.MutatingWebhook{
		Name: "thief.mutate.liqo.io", AdmissionReviewVersions: []string{"v1"},
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://thief.example.org")},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets", "pods"}}}},
	})
	// The administrator's may be made: what is refused is not the webhook, but who asks.
	fixture.Must(t, "one more webhook of the administrator's", env.Milan.Client.Patch(t.Context(), configuration.DeepCopy(), client.MergeFrom(before), client.DryRunAll))
	if err := stolenManager(t).Patch(t.Context(), configuration, client.MergeFrom(before), client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("the controller manager's credential has API servers ask a webhook of its own about Secrets and pods of all namespaces: %v", err)
	}
}

// T37: the stolen credential of a controller manager answers Liqo's webhooks, and that is all: it reads, changes, makes and removes no webhook
// configuration, and gets neither the authority's key nor the account of the process that keeps it.
func TestTheManagerHasNoWayToTheWebhooks(t *testing.T) {
	env.Peered(t)
	manager := stolenManager(t)
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "liqo-webhook"}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "liqo-webhook"}}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}}
	}
	served := secret("liqo-webhook-certs")
	fixture.Must(t, "reading what it serves with", manager.Get(t.Context(), client.ObjectKeyFromObject(served), served))
	if _, there := served.Data["ca.key"]; there || len(served.Data["tls.key"]) == 0 {
		t.Errorf("it serves with %v", slices.Sorted(maps.Keys(served.Data)))
	}
	nothing := client.RawPatch(types.MergePatchType, []byte(`{}`))
	for what, try := range map[string]func(ctx context.Context) error{
		"reads mutating webhooks": func(ctx context.Context) error {
			return manager.Get(ctx, client.ObjectKeyFromObject(mutating), mutating.DeepCopy())
		},
		"reads validating webhooks": func(ctx context.Context) error {
			return manager.Get(ctx, client.ObjectKeyFromObject(validating), validating.DeepCopy())
		},
		"patches validating webhooks": func(ctx context.Context) error {
			return manager.Patch(ctx, validating.DeepCopy(), nothing, client.DryRunAll)
		},
		"updates mutating webhooks":   func(ctx context.Context) error { return manager.Update(ctx, mutating.DeepCopy(), client.DryRunAll) },
		"deletes mutating webhooks":   func(ctx context.Context) error { return manager.Delete(ctx, mutating.DeepCopy(), client.DryRunAll) },
		"deletes validating webhooks": func(ctx context.Context) error { return manager.Delete(ctx, validating.DeepCopy(), client.DryRunAll) },
		"makes webhooks of its own": func(ctx context.Context) error {
			return manager.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}, client.DryRunAll)
		},
		"reads the authority's key": func(ctx context.Context) error {
			return manager.Get(ctx, client.ObjectKeyFromObject(secret("liqo-webhook-authority")), secret(""))
		},
		"lists Secrets beside its own": func(ctx context.Context) error {
			return manager.List(ctx, &corev1.SecretList{}, client.InNamespace(fixture.Namespace))
		},
		"changes the certificate": func(ctx context.Context) error {
			return manager.Patch(ctx, secret("liqo-webhook-certs"), nothing, client.DryRunAll)
		},
		"makes a Secret for the keeper's token": func(ctx context.Context) error {
			token := secret("thief")
			token.Type, token.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "liqo-certificates"}
			return manager.Create(ctx, token, client.DryRunAll)
		},
		"asks for the keeper's token": func(ctx context.Context) error {
			_, err := manager.Kube.CoreV1().ServiceAccounts(fixture.Namespace).CreateToken(ctx, "liqo-certificates", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			return err
		},
		"gives itself the keeper's role": func(ctx context.Context) error {
			return manager.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("thief")},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "liqo-certificates"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: fixture.Namespace, Name: "liqo-controller-manager"}}}, client.DryRunAll)
		},
		"runs a pod as the keeper": func(ctx context.Context) error {
			return manager.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "thief"}, Spec: corev1.PodSpec{
				ServiceAccountName: "liqo-certificates", Containers: []corev1.Container{{Name: "a", Image: "b"}}}}, client.DryRunAll)
		},
	} {
		if err := try(t.Context()); err == nil {
			t.Errorf("the controller manager's credential %s", what)
		} else if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// T37: who keeps the certificate of the webhooks may do that, and nothing else: other Secrets, other webhooks and other objects are none of its.
func TestTheKeeperOfCertificatesKeepsNothingElse(t *testing.T) {
	env.Peered(t)
	keeper := env.Milan.As(t, "system:serviceaccount:liqo:liqo-certificates", "system:serviceaccounts", "system:serviceaccounts:liqo")
	others := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("others")}}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: fixture.Unique("theirs")}}
	for _, o := range []client.Object{others, theirs} {
		fixture.Must(t, "preparing the provider", env.Milan.Client.Create(t.Context(), o))
		defer func() { _ = env.Milan.Client.Delete(context.WithoutCancel(t.Context()), o) }()
	}
	nothing := client.RawPatch(types.MergePatchType, []byte(`{}`))
	secret := func(name string, kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "liqo-controller-manager"}}, Type: kind}
	}
	for what, try := range map[string]func(ctx context.Context) error{
		"patches the webhooks of others": func(ctx context.Context) error {
			return keeper.Patch(ctx, others.DeepCopy(), nothing, client.DryRunAll)
		},
		"lists the webhooks of others": func(ctx context.Context) error {
			return keeper.List(ctx, &admissionregistrationv1.MutatingWebhookConfigurationList{})
		},
		"removes Liqo's webhooks": func(ctx context.Context) error {
			return keeper.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "liqo-webhook"}}, client.DryRunAll)
		},
		"makes webhooks": func(ctx context.Context) error {
			return keeper.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "more"}}, client.DryRunAll)
		},
		"reads a Secret of Liqo": func(ctx context.Context) error {
			return keeper.Get(ctx, client.ObjectKeyFromObject(theirs), theirs.DeepCopy())
		},
		"changes a Secret of Liqo": func(ctx context.Context) error { return keeper.Update(ctx, theirs.DeepCopy(), client.DryRunAll) },
		"lists the Secrets elsewhere": func(ctx context.Context) error {
			return keeper.List(ctx, &corev1.SecretList{}, client.InNamespace("kube-system"))
		},
		"makes a Secret for a token": func(ctx context.Context) error {
			return keeper.Create(ctx, secret("thief", corev1.SecretTypeServiceAccountToken), client.DryRunAll)
		},
		"makes a Secret for a token by the name of its own": func(ctx context.Context) error {
			return keeper.Create(ctx, secret("liqo-webhook-certs", corev1.SecretTypeServiceAccountToken), client.DryRunAll)
		},
		"reads a ConfigMap of Liqo": func(ctx context.Context) error {
			return keeper.Get(ctx, client.ObjectKey{Namespace: fixture.Namespace, Name: "liqo-clusterid-configmap"}, &corev1.ConfigMap{})
		},
		"lists pods": func(ctx context.Context) error { return keeper.List(ctx, &corev1.PodList{}) },
	} {
		if err := try(t.Context()); err == nil {
			t.Errorf("the keeper's credential %s", what)
		} else if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// What both serve with is back at once when somebody removes it, and API servers trust it.
	served := secret("liqo-webhook-certs", "")
	fixture.Must(t, "reading the certificate", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(served), served))
	fixture.Must(t, "removing the certificate", env.Milan.Client.Delete(t.Context(), served.DeepCopy()))
	fixture.Await(t, fixture.Patience, "the certificate to be back", func(ctx context.Context) (bool, string) {
		live := &corev1.Secret{}
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(served), live)
		return err == nil && maps.EqualFunc(served.Data, live.Data, bytes.Equal), fmt.Sprint(err)
	})
}

// T38: a stolen controller manager changes and removes nothing that is not Liqo's: no volumes, no bindings, no order of who is served first.
func TestTheManagerTouchesNothingThatIsNotLiqos(t *testing.T) {
	manager := stolenManager(t)
	path := corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
	volume := func(name string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{Capacity: world.Quantities("storage", "1Gi"),
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, PersistentVolumeSource: path,
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "payroll", Name: "salaries"}}}
	}
	theirs := volume(fixture.Unique("salaries"))
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("nodes-of-payroll")},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "paula"}}}
	for _, o := range []client.Object{theirs, binding} {
		fixture.Must(t, "preparing the provider", env.Milan.Client.Create(t.Context(), o))
		defer func() { _ = env.Milan.Client.Delete(context.WithoutCancel(t.Context()), o) }()
	}
	for what, try := range map[string]func(ctx context.Context) error{
		"makes a volume of a node's file system, which no Pod Security Standard looks at": func(ctx context.Context) error {
			own := volume(fixture.Unique("loot"))
			own.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "shop-rome", Name: "data"}
			return manager.Create(ctx, own, client.DryRunAll)
		},
		"has a volume of payroll bound to a claim in a twin": func(ctx context.Context) error {
			return manager.Patch(ctx, theirs.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"claimRef":{"namespace":"shop-rome","name":"data","uid":null}}}`)), client.DryRunAll)
		},
		"deletes a volume of payroll": func(ctx context.Context) error { return manager.Delete(ctx, theirs.DeepCopy(), client.DryRunAll) },
		"deletes what lets payroll's nodes work": func(ctx context.Context) error {
			return manager.Delete(ctx, binding.DeepCopy(), client.DryRunAll)
		},
		"has the requests of everybody but itself served last": func(ctx context.Context) error {
			return manager.Create(ctx, &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("last")}, Spec: flowcontrolv1.FlowSchemaSpec{
				MatchingPrecedence: 2, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "catch-all"},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "system:nodes"}}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"}}}}}}}, client.DryRunAll)
		},
		"gives a consumer more places than all others have": func(ctx context.Context) error {
			return manager.Create(ctx, &flowcontrolv1.PriorityLevelConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("liqo-consumer-greedy"), Labels: map[string]string{"liqo.io/managed": "true"}},
				Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
					NominalConcurrencyShares: ptr.To[int32](10000), LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}}}}, client.DryRunAll)
		},
	} {
		if err := try(t.Context()); err == nil {
			t.Errorf("the controller manager's credential %s", what)
		} else if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
