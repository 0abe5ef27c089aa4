package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	utilexec "k8s.io/utils/exec"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// maxMessage bounds in bytes what of a peer's error text reaches the user.
const maxMessage = 1024

// errNoAnswer is the cause when the provider did not accept a stream in time.
var errNoAnswer = errors.New("no answer in time")

// errNoPermission is the cause when the provider did not let logs be read in time.
var errNoPermission = errors.New("it did not permit reading the logs of this pod in time")

// refuse answers with the status that fits the error, in plain text as a kubelet does: the kube-apiserver wraps it.
func refuse(w http.ResponseWriter, err error) {
	http.Error(w, bounded(err.Error()), statusOf(err))
}

// statusOf maps an error to a status. A peer's status passes only where it says something about the caller's request;
// the rest is a failure between the clusters: a 401 of the peer, for one, is about our credentials and not about the
// caller's. That is 502 also where 503 or 504 would say more: of these the kube-apiserver shows a sentence of its own in place of ours
// (NewGenericServerResponse of apimachinery), and the user would not learn what is down.
func statusOf(err error) int {
	if errors.Is(err, ErrNotFound) {
		return http.StatusNotFound
	}
	if errors.Is(err, errNoPermission) {
		return http.StatusForbidden
	}
	if status := peerStatus(err); status != nil {
		switch code := int(status.Code); code {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
			http.StatusUnprocessableEntity, http.StatusTooManyRequests:
			return code
		}
	}
	return http.StatusBadGateway
}

// peerStatus returns the status with which the provider's API server refused, nil when there is none.
func peerStatus(err error) *metav1.Status {
	if upgrade := (*httpstream.UpgradeFailureError)(nil); errors.As(err, &upgrade) {
		err = upgrade.Cause // which it does not unwrap to
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		found := status.Status()
		return &found
	}
	return nil
}

// fromPeer says where an error comes from and bounds it. Exit codes stay what they are: the caller's kubectl exits
// with them.
func fromPeer(doing string, err error) error {
	if exit := utilexec.ExitError(nil); errors.As(err, &exit) && exit.Exited() {
		return exit
	}
	return &peerError{doing: doing, cause: err}
}

// peerError is an error whose text comes from the peer.
type peerError struct {
	doing string
	cause error
}

// Error bounds the text.
func (e *peerError) Error() string {
	if status := peerStatus(e.cause); status != nil && status.Message != "" {
		return bounded(fmt.Sprintf("%s at the provider cluster: %s", e.doing, status.Message))
	}
	return bounded(fmt.Sprintf("%s at the provider cluster: %v", e.doing, e.cause))
}

// Unwrap gives access to the cause.
func (e *peerError) Unwrap() error { return e.cause }

// bounded cuts a text to what a terminal can take and drops what could move its cursor.
func bounded(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if corev1beta1.Unprintable(r) {
			return -1
		}
		return r
	}, text)
}
