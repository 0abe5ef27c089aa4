package v1alpha1

// IPTypeLabel says what is behind an IP that Liqo makes itself, such as IPTypeAPIServer.
const IPTypeLabel = "ipam.liqo.io/ip-type"

// IPTypeAPIServer is the API server of this cluster.
const IPTypeAPIServer = "api-server"

// IPPortAnnotation is the port at which an API server answers at its IP; without it that is 443.
const IPPortAnnotation = "ipam.liqo.io/port"
