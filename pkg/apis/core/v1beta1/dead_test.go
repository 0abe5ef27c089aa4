package v1beta1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestADeadPeerIsMarkedAndSilent(t *testing.T) {
	cluster := func(annotation, status string) *ForeignCluster {
		c := &ForeignCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{PermanentlyUnreachableAnnotation: annotation}}}
		if status != "" {
			c.Status.Conditions = []Condition{{Type: APIServerStatus, Status: status}}
		}
		return c
	}
	for name, tc := range map[string]struct {
		cluster *ForeignCluster
		want    bool
	}{
		"marked and not answering":   {cluster("true", StatusError), true},
		"marked and never asked":     {cluster("true", ""), true},
		"marked but it answers":      {cluster("true", StatusEstablished), false},
		"not marked":                 {cluster("", StatusError), false},
		"marked with something else": {cluster("yes", StatusError), false},
		"cut off although it answers": {&ForeignCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{CutOffAnnotation: "true"}},
			Status: ForeignClusterStatus{Conditions: []Condition{{Type: APIServerStatus, Status: StatusEstablished}}}}, true},
		"no annotations at all, no more": {&ForeignCluster{}, false},
	} {
		if got := tc.cluster.IsDead(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAPeerThatTookOurRightsIsRevoked(t *testing.T) {
	cluster := func(status, reason string) *ForeignCluster {
		c := &ForeignCluster{}
		c.Status.Modules.Authentication.Conditions = []Condition{{Type: AuthIdentityControlPlaneStatus, Status: status, Reason: reason}}
		return c
	}
	for name, tc := range map[string]struct {
		cluster *ForeignCluster
		want    bool
	}{
		"its rights are gone":     {cluster(StatusError, ReasonRightsRevoked), true},
		"they are back":           {cluster(StatusEstablished, ReasonIdentityReady), false},
		"something else is wrong": {cluster(StatusError, ReasonIdentityMissing), false},
		"nothing is known":        {&ForeignCluster{}, false},
		"there is none":           {nil, false},
	} {
		if got := tc.cluster.IsRevoked(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhyAProviderIsLost(t *testing.T) {
	cluster := func(annotation string, conditions ...Condition) *ForeignCluster {
		c := &ForeignCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{PermanentlyUnreachableAnnotation: annotation}}}
		c.Status.Conditions = conditions[:1]
		c.Status.Modules.Authentication.Conditions = conditions[1:]
		return c
	}
	answers := Condition{Type: APIServerStatus, Status: StatusEstablished, Message: "it answers"}
	silent := Condition{Type: APIServerStatus, Status: StatusError, Message: "it does not answer"}
	accepted := Condition{Type: AuthIdentityControlPlaneStatus, Status: StatusEstablished, Message: "in place"}
	revoked := Condition{Type: AuthIdentityControlPlaneStatus, Status: StatusError, Reason: ReasonRightsRevoked, Message: "rights gone"}
	for name, tc := range map[string]struct {
		cluster *ForeignCluster
		why     string
		dead    bool
	}{
		"it answers":                               {cluster("", answers, accepted), "", false},
		"it does not answer":                       {cluster("", silent, accepted), "it does not answer", false},
		"it took our rights back":                  {cluster("", answers, revoked), "rights gone", false},
		"it was not asked yet":                     {cluster("", Condition{Type: APIServerStatus, Status: StatusNone, Message: "not yet"}), "", false},
		"there is none":                            {nil, "", false},
		"it answers, whatever the mark says":       {cluster("true", answers, accepted), "", false},
		"it does not answer and is marked":         {cluster("true", silent, accepted), "it does not answer", true},
		"it took our rights back and is marked":    {cluster("true", answers, revoked), "rights gone", true},
		"its rights were gone before it went, too": {cluster("true", silent, revoked), "rights gone", true},
	} {
		if why, dead := tc.cluster.WhyLost(), tc.cluster.IsDead(); why != tc.why || dead != tc.dead {
			t.Errorf("%s: %q, dead %v", name, why, dead)
		}
	}
}

// What is said of a revocation is read where this version writes it, and where earlier ones do, whose CustomResourceDefinition has no summary.
func TestARevocationIsReadOfEachVersion(t *testing.T) {
	said := []Condition{{Type: APIServerStatus, Status: StatusEstablished}, {Type: CutOffCondition, Status: "True", Message: "it was revoked"}}
	for name, tc := range map[string]struct {
		status ForeignClusterStatus
		want   string
	}{
		"this version":       {ForeignClusterStatus{Conditions: said[:1], Summary: said[1:]}, "it was revoked"},
		"an earlier version": {ForeignClusterStatus{Conditions: said}, "it was revoked"},
		"nothing is revoked": {ForeignClusterStatus{Conditions: said[:1]}, ""},
	} {
		if got := (&ForeignCluster{Status: tc.status}).WhyCutOff(); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
