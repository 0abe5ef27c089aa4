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
		"marked and not answering":       {cluster("true", StatusError), true},
		"marked and never asked":         {cluster("true", ""), true},
		"marked but it answers":          {cluster("true", StatusEstablished), false},
		"not marked":                     {cluster("", StatusError), false},
		"marked with something else":     {cluster("yes", StatusError), false},
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
