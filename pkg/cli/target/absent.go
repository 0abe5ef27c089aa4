package target

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
)

// Absent tells whether an error means that the object, or its whole kind, is not in the cluster.
func Absent(err error) bool {
	var undiscovered *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &undiscovered) {
		for _, cause := range undiscovered.Groups {
			if !Absent(cause) {
				return false
			}
		}
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code == http.StatusNotFound {
		return true
	}
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

func gitVersion(body []byte) string {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if json.Unmarshal(body, &version) != nil {
		return ""
	}
	return version.GitVersion
}
