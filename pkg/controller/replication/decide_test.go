package replication

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/compat"
)

type change func(*authv1beta1.ResourceSlice)

func local(changes ...change) *authv1beta1.ResourceSlice {
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-milan", Name: "s", UID: "u1", Finalizers: []string{authv1beta1.ReplicationFinalizer},
		Labels: map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan"},
	}}
	for _, c := range changes {
		c(slice)
	}
	return slice
}

func remote(changes ...change) *authv1beta1.ResourceSlice {
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-rome", Name: "s", UID: "r1",
		Labels:      map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "rome"},
		Annotations: map[string]string{corev1beta1.OriginUIDAnnotation: "u1"},
	}}
	for _, c := range changes {
		c(slice)
	}
	return slice
}

func deleting(s *authv1beta1.ResourceSlice) {
	s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}
func bare(s *authv1beta1.ResourceSlice) { s.Finalizers = nil }
func unlabelled(s *authv1beta1.ResourceSlice) {
	delete(s.Labels, corev1beta1.ReplicationLabel)
}
func toOther(s *authv1beta1.ResourceSlice) { s.Labels[corev1beta1.RemoteIDLabel] = "turin" }
func foreignCopy(s *authv1beta1.ResourceSlice) {
	s.Labels[corev1beta1.ReplicatedLabel] = "true"
}
func ofOther(s *authv1beta1.ResourceSlice)  { s.Labels[corev1beta1.OriginIDLabel] = "turin" }
func unmarked(s *authv1beta1.ResourceSlice) { s.Annotations = nil }
func ofEarlier(s *authv1beta1.ResourceSlice) {
	s.Annotations[corev1beta1.OriginUIDAnnotation] = "u0"
}

func TestDecide(t *testing.T) {
	up := view{connected: true, synced: true}
	down := view{}
	for name, tc := range map[string]struct {
		view          view
		local, remote *authv1beta1.ResourceSlice
		want          action
	}{
		"nothing anywhere": {view: up, want: nothing},
		"a new object gets its finalizer before its copy":        {view: up, local: local(bare), want: addFinalizer},
		"then the copy is made":                                  {view: up, local: local(), want: create},
		"never from an empty view: the copies are not known":     {view: view{connected: true}, local: local(), want: await},
		"nor while the peer is away":                             {view: down, local: local(), want: await},
		"a copy in step: its status is pulled":                   {view: up, local: local(), remote: remote(), want: pull},
		"a copy that differs is updated":                         {view: view{connected: true, synced: true, differs: true}, local: local(), remote: remote(), want: update},
		"an object that is not ours is a conflict":               {view: up, local: local(), remote: remote(ofOther), want: conflict},
		"a copy without the UID mark is not ours":                {view: up, local: local(), remote: remote(unmarked), want: conflict},
		"the copy of an earlier object goes first":               {view: up, local: local(), remote: remote(ofEarlier), want: replace},
		"a copy that is going is awaited":                        {view: up, local: local(), remote: remote(deleting), want: await},
		"a deleted object takes its copy along":                  {view: up, local: local(deleting), remote: remote(), want: removeCopy},
		"even if the copies cannot be listed any more":           {view: view{connected: true}, local: local(deleting), want: removeCopy},
		"a deleted object waits for a peer that is away":         {view: down, local: local(deleting), want: await},
		"unless the peer will not come back":                     {view: view{gone: true}, local: local(deleting), want: removeFinalizer},
		"a deleted object without our finalizer is not ours":     {view: up, local: local(deleting, bare), want: nothing},
		"taking the label off removes the copy":                  {view: up, local: local(unlabelled), remote: remote(), want: removeCopy},
		"so does sending it to another cluster":                  {view: up, local: local(toOther), remote: remote(), want: removeCopy},
		"an object for another cluster is not looked at":         {view: up, local: local(toOther, bare), want: nothing},
		"a peer's copy here is the other direction's business":   {view: up, local: local(foreignCopy, bare), remote: remote(), want: nothing},
		"a copy without original is an orphan":                   {view: up, remote: remote(), want: removeOrphan},
		"unless twins would go with it":                          {view: view{connected: true, synced: true, twins: true}, remote: remote(), want: nothing},
		"the copy of an earlier object with twins is taken over": {view: view{connected: true, synced: true, twins: true, differs: true}, local: local(), remote: remote(ofEarlier), want: update},
		"an orphan that is going is left":                        {view: up, remote: remote(deleting), want: nothing},
		"an orphan of another cluster is left":                   {view: up, remote: remote(ofOther), want: nothing},
		"no orphan is seen while the copies are not known":       {view: view{connected: true}, remote: remote(), want: nothing},
		"an object that lives keeps its finalizer without peer":  {view: view{gone: true}, local: local(), want: await},
	} {
		t.Run(name, func(t *testing.T) {
			v := tc.view
			v.home, v.peer = "rome", "milan"
			if tc.local != nil {
				v.local = tc.local
			}
			if tc.remote != nil {
				v.remote = tc.remote
			}
			if got := decide(v); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestShape(t *testing.T) {
	k := kinds()[0]
	source := local(func(s *authv1beta1.ResourceSlice) {
		s.Labels["tier"] = "gold"
		s.Labels["app.kubernetes.io/instance"] = "argo"
		s.Annotations = map[string]string{
			authv1beta1.ReplicatedAnnotationPrefix + "a": "1", authv1beta1.CordonAnnotation: "true",
			authv1beta1.CreateVirtualNodeAnnotation: "true", "kubectl.kubernetes.io/last-applied-configuration": "{}",
		}
		s.Spec.Resources = corev1.ResourceList{"cpu": resource.MustParse("1000m")}
	})
	fresh, _ := k.fresh(source, "liqo-tenant-rome", origin{"rome", "p1"}).(*authv1beta1.ResourceSlice)
	want := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "liqo-tenant-rome", Name: "s",
			Labels: map[string]string{
				corev1beta1.ReplicationLabel: "false", corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "rome",
				corev1beta1.RemoteClusterIDLabel: "rome", corev1beta1.RemoteIDLabel: "milan", "tier": "gold",
			},
			Annotations: map[string]string{authv1beta1.ReplicatedAnnotationPrefix + "a": "1", corev1beta1.OriginUIDAnnotation: "u1", corev1beta1.OriginPeeringAnnotation: "p1"},
		},
		Spec: source.Spec,
	}
	if diff := cmp.Diff(want, fresh); diff != "" {
		t.Fatal(diff)
	}
	// What the provider adds and defaults that mean the same are no difference.
	fresh.Annotations[authv1beta1.CordonAnnotation] = "true"
	fresh.Labels["theirs"] = "x"
	fresh.Spec.Resources["cpu"] = resource.MustParse("1")
	if k.shape(fresh, source, origin{"rome", "p1"}) {
		t.Error("a copy in step is changed")
	}
	if fresh.Annotations[authv1beta1.CordonAnnotation] != "true" {
		t.Error("the provider's cordon was lifted")
	}
	delete(source.Annotations, authv1beta1.ReplicatedAnnotationPrefix+"a")
	if !k.shape(fresh, source, origin{"rome", "p1"}) || fresh.Annotations[authv1beta1.ReplicatedAnnotationPrefix+"a"] != "" {
		t.Error("an annotation that was taken away stays on the copy")
	}
}

func TestHugeAnnotationsDoNotTravel(t *testing.T) {
	source := local(func(s *authv1beta1.ResourceSlice) {
		s.Annotations = map[string]string{authv1beta1.ReplicatedAnnotationPrefix + "a": strings.Repeat("x", maxAnnotations+1)}
	})
	if got := wantedAnnotations(source, ""); len(got) != 1 {
		t.Errorf("%d annotations travel", len(got))
	}
}

func TestEveryKindCanBeReplicated(t *testing.T) {
	m := mapper()
	for _, k := range kinds() {
		mapping, err := m.RESTMapping(k.gvk.GroupKind(), k.gvk.Version)
		if err != nil || mapping.Resource.Resource != k.resource {
			t.Errorf("%s maps to %v, %v", k.gvk.Kind, mapping, err)
		}
		a, b := k.object(), k.object()
		if k.copySpec(a, b, false) {
			t.Errorf("two empty %s differ", k.gvk.Kind)
		}
		now := time.Unix(100, 0)
		k.unsent(a, authv1beta1.ReasonNameConflict, "taken", now)
		k.pull(a, b, now)
	}
}

func TestPullSliceTakesOnlyWhatIsValid(t *testing.T) {
	now := time.Unix(100, 0)
	mine := local(func(s *authv1beta1.ResourceSlice) {
		s.Generation = 3
		s.Status.Summary = []corev1beta1.Condition{{Type: authv1beta1.IdentityCondition, Status: "True"}}
		s.Status.Conditions = []corev1beta1.Condition{{Type: "Ready", Status: "False", Message: "of an earlier version"}}
	})
	theirs := remote(func(s *authv1beta1.ResourceSlice) {
		s.Status = authv1beta1.ResourceSliceStatus{
			AuthParams: &authv1beta1.AuthParams{APIServer: "https://milan:6443", SignedCRT: []byte("crt")},
			Conditions: []corev1beta1.Condition{
				{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted, Reason: "bad reason!", Message: strings.Repeat("x", 5000)},
				{Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Accepted, Reason: "Fine"},
				{Type: authv1beta1.IdentityCondition, Status: authv1beta1.Denied, Reason: "Forged"},
				{Type: "Ready", Status: "True", Reason: "Forged"},
				{Type: "Own", Status: authv1beta1.Accepted},
			},
			Summary:        []corev1beta1.Condition{{Type: authv1beta1.IdentityCondition, Status: "False", Reason: "Forged"}, {Type: "Own", Status: "True"}},
			Resources:      corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("-1"), "not valid": resource.MustParse("1")},
			StorageClasses: []authv1beta1.StorageType{{StorageClassName: "fast"}, {StorageClassName: "Not Valid"}},
			NodeLabels:     map[string]string{"a": "b", "c": strings.Repeat("x", 64), "d d": "e"},
			NodeSelector:   map[string]string{"n": "m"},
			PodCIDRs:       []string{"10.0.0.1/8", "x"},
			ProviderNodes: &authv1beta1.ProviderNodes{LargestPod: corev1.ResourceList{"cpu": resource.MustParse("3800m"), "memory": resource.MustParse("-1"), "not valid": resource.MustParse("1")},
				OperatingSystem: "linux", Architecture: "not valid!"},
		}
	})
	pullSlice(mine, theirs, now)
	at := metav1.NewTime(now)
	want := authv1beta1.ResourceSliceStatus{
		AuthParams: &authv1beta1.AuthParams{APIServer: "https://milan:6443", SignedCRT: []byte("crt")},
		Conditions: []corev1beta1.Condition{
			{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted, Message: conditions.Bound(strings.Repeat("x", 5000)), ObservedGeneration: 3, LastTransitionTime: at},
			{Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Accepted, Reason: "Fine", ObservedGeneration: 3, LastTransitionTime: at},
		},
		Summary: []corev1beta1.Condition{
			{Type: authv1beta1.IdentityCondition, Status: "True"},
			{Type: "Ready", Status: "True", Reason: authv1beta1.ReasonReady, Message: "the slice has its certificate and its resources", ObservedGeneration: 3, LastTransitionTime: at},
		},
		Resources:      corev1.ResourceList{"cpu": resource.MustParse("2")},
		StorageClasses: []authv1beta1.StorageType{{StorageClassName: "fast"}},
		NodeLabels:     map[string]string{"a": "b"},
		NodeSelector:   map[string]string{"n": "m"},
		PodCIDRs:       []string{"10.0.0.0/8"},
		ProviderNodes:  &authv1beta1.ProviderNodes{LargestPod: corev1.ResourceList{"cpu": resource.MustParse("3800m")}, OperatingSystem: "linux"},
	}
	if diff := cmp.Diff(want, mine.Status); diff != "" {
		t.Error(diff)
	}
	if faults := compat.Faults(mine); len(faults) > 0 {
		t.Errorf("programs of Liqo v1 find wrong: %q", faults)
	}
	again := mine.DeepCopy()
	pullSlice(again, theirs, now.Add(time.Hour))
	if diff := cmp.Diff(mine.Status, again.Status); diff != "" {
		t.Errorf("the same answer again changes the status: %s", diff)
	}
}

// Ten thousand resources of a provider are cut to what there is room for, and what every pod needs is among that.
func TestOfManyResourcesTheBasicOnesCross(t *testing.T) {
	many := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
	for i := range 10_000 {
		many[corev1.ResourceName(fmt.Sprintf("a.example.org/x-%d", i))] = resource.MustParse("1")
	}
	mine, theirs := local(func(*authv1beta1.ResourceSlice) {}), remote(func(s *authv1beta1.ResourceSlice) {
		s.Status.Resources, s.Status.ProviderNodes = many, &authv1beta1.ProviderNodes{LargestPod: many}
	})
	pullSlice(mine, theirs, time.Unix(100, 0))
	for what, list := range map[string]corev1.ResourceList{"granted": mine.Status.Resources, "for the largest pod": mine.Status.ProviderNodes.LargestPod} {
		if list.Cpu().IsZero() || list.Memory().IsZero() || list.Pods().IsZero() || len(list) != maxQuantities {
			t.Errorf("%s are %d resources, with %s cores, %s of memory and %s pods", what, len(list), list.Cpu(), list.Memory(), list.Pods())
		}
	}
}

// The consumer learns that the provider takes no new pods, and that it does again.
func TestACordonComesHomeAndGoes(t *testing.T) {
	mine, theirs := &authv1beta1.ResourceSlice{}, &authv1beta1.ResourceSlice{}
	for _, step := range []struct {
		sentence, want string
		conditions     []corev1beta1.Condition
	}{
		{"nothing is said", "", nil},
		{"it is cordoned", "the provider takes no new pods of ResourceSlice : TenantCordoned: nothing new", []corev1beta1.Condition{
			{Type: authv1beta1.CordonedCondition, Status: "True", Reason: authv1beta1.ReasonTenantCordoned, Message: "nothing new"}}},
		{"a status that means nothing", "", []corev1beta1.Condition{{Type: authv1beta1.CordonedCondition, Status: "Accepted"}}},
		{"it is cordoned with no word", "the provider takes no new pods of ResourceSlice : : x", []corev1beta1.Condition{
			{Type: authv1beta1.CordonedCondition, Status: "True", Reason: "no word!", Message: "x"}}},
		{"it takes pods again", "", nil},
	} {
		// A provider of an earlier version says so among the conditions.
		for _, said := range []authv1beta1.ResourceSliceStatus{{Summary: step.conditions}, {Conditions: step.conditions}} {
			theirs.Status = said
			pullSlice(mine, theirs, time.Unix(1000, 0))
			if got := mine.WhyCordoned(); got != step.want || len(mine.Status.Conditions) > 0 {
				t.Errorf("%s: %q, want %q, and the conditions %v", step.sentence, got, step.want, mine.Status.Conditions)
			}
		}
	}
}

// So does what is said of pods that take more than is offered.
func TestOverCommitmentComesHomeAndGoes(t *testing.T) {
	mine, theirs := &authv1beta1.ResourceSlice{}, &authv1beta1.ResourceSlice{}
	for _, said := range []string{"", "by cpu 1", "by cpu 2", ""} {
		theirs.Status.Summary = nil
		if said != "" {
			theirs.Status.Summary = []corev1beta1.Condition{
				{Type: authv1beta1.OverCommittedCondition, Status: "True", Reason: authv1beta1.ReasonMoreRunsThanIsOffered, Message: said}}
		}
		pullSlice(mine, theirs, time.Unix(1000, 0))
		got := ""
		if c := conditions.Find(mine.Status.Summary, authv1beta1.OverCommittedCondition); c != nil {
			got = c.Message
		}
		if got != said {
			t.Errorf("told is %q, want %q", got, said)
		}
	}
}

// Who asks for more must not take the answer to an earlier request for the present one.
func TestAnAnswerIsAboutTheRequestThatTheProviderHasSeen(t *testing.T) {
	of := func(s *authv1beta1.ResourceSlice) int64 {
		return conditions.Find(s.Status.Conditions, authv1beta1.ResourcesCondition).ObservedGeneration
	}
	mine, theirs := &authv1beta1.ResourceSlice{}, &authv1beta1.ResourceSlice{}
	for _, step := range []struct {
		sentence                        string
		local, remote, answered, wanted int64
	}{
		{"the first request is answered", 1, 1, 1, 1},
		{"the second has arrived, and is not answered yet", 2, 2, 1, 1},
		{"it is answered", 2, 2, 2, 2},
		{"a provider that does not say what it answers", 3, 3, 0, 3},
	} {
		mine.Generation, theirs.Generation = step.local, step.remote
		theirs.Status.Conditions = []corev1beta1.Condition{{Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Accepted, ObservedGeneration: step.answered}}
		pullSlice(mine, theirs, time.Unix(1000, 0))
		if got := of(mine); got != step.wanted {
			t.Errorf("%s: the answer is about generation %d, want %d", step.sentence, got, step.wanted)
		}
	}
}

func TestAuthParamsAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxURL+1)
	for name, params := range map[string]*authv1beta1.AuthParams{
		"none": nil, "an enormous CA": {CA: make([]byte, 70000)}, "an enormous certificate": {SignedCRT: make([]byte, 70000)},
		"an enormous URL": {APIServer: long}, "an enormous proxy": {ProxyURL: &long},
	} {
		if got := authParams(params); got != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPullMapIsIntentAndAcknowledgement(t *testing.T) {
	accepted := offloadingv1beta1.MappingAccepted
	mine := &offloadingv1beta1.NamespaceMap{
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"demo": "demo-rome", "late": "late-rome", "lied": "lied-rome", "odd": "odd-rome"}},
		Status: offloadingv1beta1.NamespaceMapStatus{CurrentMapping: map[string]offloadingv1beta1.RemoteNamespaceStatus{
			"leaving": {RemoteNamespace: "leaving-rome", Phase: accepted},
		}},
	}
	theirs := &offloadingv1beta1.NamespaceMap{Status: offloadingv1beta1.NamespaceMapStatus{
		CurrentMapping: map[string]offloadingv1beta1.RemoteNamespaceStatus{
			"demo":        {RemoteNamespace: "demo-rome", Phase: accepted},
			"late":        {RemoteNamespace: "late-rome", Phase: offloadingv1beta1.MappingCreationLoopBackOff, Reason: "NamespaceConflict", Message: "exists"},
			"lied":        {RemoteNamespace: "kube-system", Phase: accepted},
			"odd":         {RemoteNamespace: "odd-rome", Phase: "Whatever"},
			"kube-system": {RemoteNamespace: "kube-system", Phase: accepted},
			"leaving":     {RemoteNamespace: "elsewhere", Phase: accepted},
		},
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Forged"}},
	}}
	pullMap(mine, theirs, time.Time{})
	want := map[string]offloadingv1beta1.RemoteNamespaceStatus{
		"demo":    {RemoteNamespace: "demo-rome", Phase: accepted},
		"late":    {RemoteNamespace: "late-rome", Phase: offloadingv1beta1.MappingCreationLoopBackOff, Reason: "NamespaceConflict", Message: "exists"},
		"leaving": {RemoteNamespace: "leaving-rome", Phase: offloadingv1beta1.MappingTerminating},
	}
	if diff := cmp.Diff(want, mine.Status.CurrentMapping); diff != "" {
		t.Error(diff)
	}
	if c := mine.Status.Conditions[0]; c.Status != metav1.ConditionFalse || c.Reason != offloadingv1beta1.ReasonTwinFailed {
		t.Errorf("ready is %+v", c)
	}
}

func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"Fine": "Fine", "F1_a": "F1_a", "": "", "1st": "", "_a": "", "a b": "", "é": "", "a\n": "", strings.Repeat("x", maxWord+1): "",
	} {
		if got := word(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzPullSlice(f *testing.F) {
	f.Add("reason", "message", "10.0.0.0/8", "key", "value")
	f.Fuzz(func(t *testing.T, reason, message, prefix, key, value string) {
		mine := local()
		pullSlice(mine, remote(func(s *authv1beta1.ResourceSlice) {
			s.Status.Conditions = []corev1beta1.Condition{{Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Denied, Reason: reason, Message: message}}
			s.Status.PodCIDRs, s.Status.NodeLabels = []string{prefix}, map[string]string{key: value}
		}), time.Unix(1, 0))
		for _, c := range slices.Concat(mine.Status.Conditions, mine.Status.Summary) {
			if len(c.Message) > conditions.MaxMessage || len(c.Reason) > maxWord {
				t.Fatalf("an unbounded condition: %+v", c)
			}
		}
	})
}
