package v1beta1

import (
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterID identifies a cluster among its peers. It is a DNS label, short enough to be the suffix of a namespace name.
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=51
type ClusterID string

// ConditionReady is the type of the condition that sums an object up, with the statuses True, False and Unknown.
const ConditionReady = "Ready"

// Condition is one observation of an object. It has the shape of metav1.Condition, but Liqo v1 gave some condition types
// statuses of their own (such as Accepted or Established), which stand in the same list as the standard Ready condition.
type Condition struct {
	// type of the condition.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`
	// status of the condition; which ones are allowed depends on the type.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:MinLength=1
	Status string `json:"status"`
	// observedGeneration is the object's generation that this condition was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is a machine-readable word for the status.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// message says in plain words what was observed and what to do next.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// MaxMessage bounds what we write as the message of a condition, in bytes: a peer's words may become part of one.
const MaxMessage = 1024

// Printable returns a text as valid UTF-8 with a space in place of each character that commands a terminal or changes the order in which others are
// shown: control characters but new lines and tabs, separators of lines, and what only formats, without the joiners that scripts need.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if Unprintable(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// Unprintable tells of which characters Printable leaves a space.
func Unprintable(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// BoundMessage makes a message printable and cuts it to MaxMessage bytes without splitting a character.
func BoundMessage(message string) string {
	// Cut first: the text may be megabytes long.
	if len(message) > 2*MaxMessage {
		message = message[:2*MaxMessage]
	}
	message = Printable(message)
	if len(message) <= MaxMessage {
		return message
	}
	cut := MaxMessage - len("…")
	for cut > 0 && message[cut]&0xC0 == 0x80 {
		cut--
	}
	return message[:cut] + "…"
}
