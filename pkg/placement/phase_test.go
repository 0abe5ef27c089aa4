package placement

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestTwinConditions(t *testing.T) {
	type answer = offloadingv1beta1.RemoteNamespaceStatus
	for name, tc := range map[string]struct {
		required bool
		answer   *answer
		want     []string
	}{
		"not selected":                    {false, nil, []string{"OffloadingRequired=False ClusterNotSelected"}},
		"selected, no answer":             {true, nil, []string{"OffloadingRequired=True ClusterSelected", "Ready=False RemoteNamespacePending"}},
		"accepted":                        {true, &answer{RemoteNamespace: "t", Phase: "Accepted"}, []string{"OffloadingRequired=True ClusterSelected", "Ready=True RemoteNamespaceReady"}},
		"an answer about another name":    {true, &answer{RemoteNamespace: "u", Phase: "Accepted"}, []string{"OffloadingRequired=True ClusterSelected", "Ready=False RemoteNamespacePending"}},
		"going":                           {true, &answer{RemoteNamespace: "t", Phase: "Terminating"}, []string{"OffloadingRequired=True ClusterSelected", "Ready=False RemoteNamespaceTerminating"}},
		"still there though not selected": {false, &answer{RemoteNamespace: "t", Phase: "Accepted"}, []string{"OffloadingRequired=False ClusterNotSelected", "Ready=False RemoteNamespaceTerminating"}},
		"refused with a known reason":     {true, &answer{RemoteNamespace: "t", Phase: "CreationLoopBackOff", Reason: "NamespaceConflict"}, []string{"OffloadingRequired=True ClusterSelected", "Ready=False NamespaceConflict"}},
		"still being made":                {true, &answer{RemoteNamespace: "t", Phase: "CreationLoopBackOff", Reason: "RemoteNamespacePending"}, []string{"OffloadingRequired=True ClusterSelected", "Ready=False RemoteNamespacePending"}},
		"refused with an invented reason": {true, &answer{RemoteNamespace: "t", Phase: "CreationLoopBackOff", Reason: "<script>"}, []string{"OffloadingRequired=True ClusterSelected", "Ready=False RemoteNamespaceFailed"}},
		"a phase that nobody knows":       {true, &answer{RemoteNamespace: "t", Phase: "Perfect"}, []string{"OffloadingRequired=True ClusterSelected", "Ready=False RemoteNamespaceFailed"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range TwinConditions(tc.required, "t", tc.answer) {
				got = append(got, c.Type+"="+string(c.Status)+" "+c.Reason)
				if c.Message == "" {
					t.Errorf("condition %s says nothing", c.Type)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPeersWordsAreBounded(t *testing.T) {
	hostile := strings.Repeat("\x1b[31mé\n\xff", 10000)
	list := TwinConditions(true, "t", &offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: "t", Phase: "CreationLoopBackOff", Message: hostile})
	message := list[1].Message
	if len(message) > 1024 || !utf8.ValidString(message) || strings.ContainsAny(message, "\n\x1b") {
		t.Errorf("%d bytes, valid %v: %.60q", len(message), utf8.ValidString(message), message)
	}
}

func TestPhase(t *testing.T) {
	twin := func(required bool, phase offloadingv1beta1.MappingPhase) offloadingv1beta1.RemoteNamespaceConditions {
		if phase == "" {
			return TwinConditions(required, "t", nil)
		}
		return TwinConditions(required, "t", &offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: "t", Phase: phase})
	}
	type twins = map[corev1beta1.ClusterID]offloadingv1beta1.RemoteNamespaceConditions
	for name, tc := range map[string]struct {
		deleting bool
		twins    twins
		want     offloadingv1beta1.OffloadingPhaseType
		blockers []string
	}{
		"deleting wins":                     {true, twins{"a": twin(true, "Accepted")}, "Terminating", nil},
		"no clusters":                       {false, nil, "NoClusterSelected", nil},
		"none selected":                     {false, twins{"a": twin(false, "")}, "NoClusterSelected", nil},
		"all ready":                         {false, twins{"a": twin(true, "Accepted"), "b": twin(false, "")}, "Ready", nil},
		"one is awaited":                    {false, twins{"a": twin(true, "Accepted"), "b": twin(true, "")}, "InProgress", []string{`b: waiting for the provider to create namespace "t"`}},
		"one refused":                       {false, twins{"a": twin(true, "Accepted"), "b": twin(true, "CreationLoopBackOff")}, "SomeFailed", []string{`b: the provider did not create namespace "t"`}},
		"all refused":                       {false, twins{"a": twin(true, "CreationLoopBackOff")}, "AllFailed", []string{`a: the provider did not create namespace "t"`}},
		"one refused, the other is awaited": {false, twins{"a": twin(true, ""), "b": twin(true, "CreationLoopBackOff")}, "SomeFailed", []string{`a: waiting for the provider to create namespace "t"`, `b: the provider did not create namespace "t"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Phase(tc.deleting, tc.twins); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if diff := cmp.Diff(tc.blockers, Blockers(tc.twins)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
