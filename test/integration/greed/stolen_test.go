package greed

import (
	"context"
	"fmt"
	"strings"
	"testing"

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
				MatchingPrecedence: 2, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "liqo-consumers"},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "system:nodes"}}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"}}}}}}}, client.DryRunAll)
		},
	} {
		if err := try(t.Context()); err == nil {
			t.Errorf("the controller manager's credential %s", what)
		} else if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
