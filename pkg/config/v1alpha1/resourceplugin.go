package v1alpha1

import (
	"net"
	"path"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSocket is how long the path of a socket may be, in bytes.
const maxSocket = 107

// validate refuses what no plugin can be asked at.
func (r ResourcePlugin) validate(at *field.Path) (errs field.ErrorList) {
	address, secret := at.Child("address"), at.Child("tlsSecret")
	if r.TLSSecret != "" {
		for _, problem := range validation.IsDNS1123Subdomain(r.TLSSecret) {
			errs = append(errs, field.Invalid(secret, r.TLSSecret, problem))
		}
	}
	if r.Address == "" {
		return errs
	}
	if socket, is := strings.CutPrefix(r.Address, "unix://"); is {
		if !path.IsAbs(socket) || socket == "/" || len(socket) > maxSocket {
			errs = append(errs, field.Invalid(address, r.Address, "must be a path from the root of at most 107 characters, such as unix:///run/plugin/liqo.sock"))
		}
		if r.TLSSecret != "" {
			errs = append(errs, field.Forbidden(secret, "a resource plugin on a socket is asked without TLS: leave it out"))
		}
		return errs
	}
	host, port, err := net.SplitHostPort(r.Address)
	number, portErr := strconv.ParseUint(port, 10, 16)
	isHost := net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(strings.ToLower(host))) == 0
	if err != nil || portErr != nil || number == 0 || !isHost {
		errs = append(errs, field.Invalid(address, r.Address, "must be unix:///path, or host:port such as plugin.capacity.svc:8443"))
	}
	if r.TLSSecret == "" {
		errs = append(errs, field.Required(secret, "a resource plugin at host:port is asked over TLS alone: name a Secret with tls.crt, tls.key and ca.crt, "+
			"or have the plugin listen on a socket (unix:///path)"))
	}
	return errs
}
