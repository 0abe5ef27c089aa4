{{/*
Refuses values that the controller manager would refuse (pkg/config/v1alpha1, Validate), as far as templates can tell: a pod that ends at once
tells its mistake nobody but its log. 'liqoctl install' asks the configuration itself besides.
*/}}
{{- define "liqo.validate" -}}
{{- $ipam := .Values.ipam -}}
{{- range $name := list "podCIDR" "serviceCIDR" "externalCIDR" "internalCIDR" -}}
{{- with get $ipam $name -}}{{- include "liqo.network" (list (printf "ipam.%s" $name) .) -}}{{- end -}}
{{- end -}}
{{- range $name := list "podCIDRs" "reservedSubnets" "pools" -}}
{{- range $i, $network := get $ipam $name -}}{{- include "liqo.network" (list (printf "ipam.%s[%d]" $name $i) $network) -}}{{- end -}}
{{- end -}}
{{- $pods := default (compact (list $ipam.podCIDR)) $ipam.podCIDRs -}}
{{- if and .Values.networking.enabled $pods (not (contains "." (join "," $pods))) -}}
{{- fail "ipam.podCIDRs: the network module carries IPv4 alone: name a range of IPv4, or set networking.enabled=false" -}}
{{- end -}}
{{- $base64 := "^(([A-Za-z0-9+/][\\r\\n]*){4})*(([A-Za-z0-9+/][\\r\\n]*){2}=[\\r\\n]*=|([A-Za-z0-9+/][\\r\\n]*){3}=)?[\\r\\n]*$" -}}
{{- if not (regexMatch $base64 .Values.apiServer.ca) -}}
{{- fail "apiServer.ca: it is no base64: write the PEM bundle as base64, such as 'base64 -w0 ca.crt' does" -}}
{{- end -}}
{{- $address := .Values.apiServer.address -}}
{{- if and $address (not (regexMatch "^https://([a-zA-Z0-9._-]+|\\[[0-9a-fA-F:]+\\])(:[0-9]+)?(/[^ ]*)?$" $address)) -}}
{{- fail (printf "apiServer.address: %q is no address: write a URL such as https://203.0.113.7:6443" $address) -}}
{{- end -}}
{{- if and .Values.metrics.plainHTTP (not .Values.metrics.enabled) -}}
{{- fail "metrics.plainHTTP: nothing serves metrics: set metrics.enabled=true, or leave it out" -}}
{{- end -}}
{{- if and .Values.metrics.plainHTTP (eq .Values.profile "hardened") -}}
{{- fail "metrics.plainHTTP: profile hardened shows metrics to nobody without a token: leave it out, and have Prometheus scrape with one, or choose profile=compatible" -}}
{{- end -}}
{{- $duration := "^([0-9]+h([0-9]+m)?([0-9]+s)?|[0-9]+m([0-9]+s)?|[0-9]+s)$" -}}
{{- range $path, $given := dict "authentication.certificateLifetime" .Values.authentication.certificateLifetime "authentication.consumerSilentAfter" .Values.authentication.consumerSilentAfter "offloading.consumers.maxTerminationGracePeriod" .Values.offloading.consumers.maxTerminationGracePeriod -}}
{{- if not (regexMatch $duration $given) -}}{{- fail (printf "%s: %q is no duration: write it as 24h or 30m" $path $given) -}}{{- end -}}
{{- end -}}
{{- if not (regexMatch "^(0*[1-9][0-9]*h.*|(0+h)?([1-9][0-9]+)m.*|([6-9][0-9]{2}|[1-9][0-9]{3,})s)$" .Values.authentication.certificateLifetime) -}}
{{- fail (printf "authentication.certificateLifetime: %q is too short: it must be at least 10m" .Values.authentication.certificateLifetime) -}}
{{- end -}}
{{- $lifetime := .Values.offloading.serviceAccountTokens.maxLifetime -}}
{{- if and (not (kindIs "invalid" $lifetime)) (not (regexMatch "^(1h(0m)?(0s)?|60m(0s)?|[1-5][0-9]m([0-5]?[0-9]s)?|([6-9][0-9]{2}|[12][0-9]{3}|3[0-5][0-9]{2}|3600)s)$" $lifetime)) -}}
{{- fail (printf "offloading.serviceAccountTokens.maxLifetime: %q is no duration between 10m and 1h" $lifetime) -}}
{{- end -}}
{{- $plugin := .Values.offloading.resourcePlugin -}}
{{- if and $plugin.address (not (hasPrefix "unix://" $plugin.address)) -}}
{{- if not $plugin.tlsSecret -}}
{{- fail "offloading.resourcePlugin.tlsSecret: a resource plugin at host:port is asked over TLS alone: name a Secret with tls.crt, tls.key and ca.crt, or have the plugin listen on a socket (unix:///path)" -}}
{{- end -}}
{{- if gt (int (regexFind "[0-9]+$" $plugin.address)) 65535 -}}{{- fail (printf "offloading.resourcePlugin.address: %q has a port that there is not: it is from 1 to 65535" $plugin.address) -}}{{- end -}}
{{- else if and $plugin.address $plugin.tlsSecret -}}
{{- fail "offloading.resourcePlugin.tlsSecret: a resource plugin on a socket is asked without TLS: leave it out" -}}
{{- end -}}
{{- include "liqo.classes" (list "offloading.reflection.ingress.ingressClasses" .Values.offloading.reflection.ingress.ingressClasses) -}}
{{- include "liqo.classes" (list "offloading.reflection.service.loadBalancerClasses" .Values.offloading.reflection.service.loadBalancerClasses) -}}
{{- $consumers := .Values.offloading.consumers -}}
{{- $isolate := .Values.offloading.twinNamespaces.network.isolate -}}
{{- if kindIs "invalid" $isolate -}}{{- $isolate = eq .Values.profile "hardened" -}}{{- end -}}
{{- if and $consumers.networkPolicies $isolate -}}
{{- fail "offloading.consumers.networkPolicies: policies add up, so those of consumers would lift the isolation of their twin namespaces: leave it out, or set offloading.twinNamespaces.network.isolate=false" -}}
{{- end -}}
{{- $label := "[a-z0-9]([-a-z0-9]*[a-z0-9])?" -}}
{{- range $name := list "runtimeClasses" "serviceAccounts" "csiDrivers" -}}
{{- range $i, $one := get $consumers $name -}}
{{- if not (regexMatch (printf "^([*]|%s([.]%s)*)$" $label $label) $one) -}}{{- fail (printf "offloading.consumers.%s[%d]: %q is no name, nor * for all: write small letters, digits, '-' and '.'" $name $i $one) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $i, $one := $consumers.tolerations -}}
{{- if not (regexMatch (printf "^([*]|(%s([.]%s)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$" $label $label) $one) -}}{{- fail (printf "offloading.consumers.tolerations[%d]: %q is no key of a taint, nor * for all" $i $one) -}}{{- end -}}
{{- end -}}
{{- range $i, $one := $consumers.nodeLabels -}}
{{- if not (regexMatch (printf "^([*]|%[1]s([.]%[1]s)*/|(%[1]s([.]%[1]s)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$" $label) $one) -}}{{- fail (printf "offloading.consumers.nodeLabels[%d]: %q is no key of a label, nor a domain with a slash, nor * for all" $i $one) -}}{{- end -}}
{{- end -}}
{{- range $i, $one := $consumers.capabilities -}}
{{- if or (hasPrefix "CAP_" $one) (eq $one "ALL") (not (regexMatch "^[A-Z][A-Z0-9_]*$" $one)) -}}{{- fail (printf "offloading.consumers.capabilities[%d]: %q: name one Linux capability without CAP_, such as SYS_PTRACE" $i $one) -}}{{- end -}}
{{- end -}}
{{- include "liqo.quantities" (list "offloading.consumers.limits.resources" $consumers.limits.resources) -}}
{{- include "liqo.quantities" (list "offloading.defaultNodeResources" .Values.offloading.defaultNodeResources) -}}
{{- include "liqo.quantities" (list "offloading.twinNamespaces.quota" .Values.offloading.twinNamespaces.quota) -}}
{{- range $kind, $list := .Values.virtualKubelet.extra.resources -}}
{{- if has $kind (list "limits" "requests") -}}{{- include "liqo.quantities" (list (printf "virtualKubelet.extra.resources.%s" $kind) $list) -}}
{{- else if ne $kind "claims" -}}{{- fail (printf "virtualKubelet.extra.resources.%s: write limits and requests" $kind) -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Refuses what is no network, or has bits behind its length; takes a list of where it stands and the text. */}}
{{- define "liqo.network" -}}
{{- $octet := "([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])" -}}{{- $groups := "[0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){0,6}" -}}
{{- $four := printf "^%s([.]%s){3}/([0-9]|[12][0-9]|3[0-2])$" $octet $octet -}}
{{- $six := printf "^([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){7}|(%s)?::(%s)?)/([0-9]|[1-9][0-9]|1[01][0-9]|12[0-8])$" $groups $groups -}}
{{- $where := index . 0 -}}{{- $text := index . 1 -}}
{{- $address := splitList "/" $text | first -}}{{- $bits := splitList "/" $text | last | int -}}
{{- $parts := list -}}{{- $size := 8 -}}
{{- if regexMatch $four $text -}}
{{- $parts = splitList "." $address -}}
{{- else if regexMatch $six $text -}}
{{- $size = 16 -}}
{{- $sides := splitList "::" $address -}}
{{- $parts = splitList ":" (first $sides) | compact -}}
{{- if eq (len $sides) 2 -}}
{{- $right := splitList ":" (last $sides) | compact -}}
{{- range until (max 0 (sub (sub 8 (len $parts)) (len $right)) | int) -}}{{- $parts = append $parts "0" -}}{{- end -}}
{{- $parts = concat $parts $right -}}
{{- end -}}
{{- end -}}
{{- if not (has (len $parts) (list 4 8)) -}}
{{- fail (printf "%s: %q is no network: write it as 10.0.0.0/16" $where $text) -}}
{{- end -}}
{{- range $i, $part := $parts -}}
{{- $free := min $size (max 0 (sub (mul $size (add $i 1)) $bits)) | int -}}
{{- $step := 1 -}}{{- range until $free -}}{{- $step = mul 2 $step -}}{{- end -}}
{{- $number := int64 (ternary (printf "0x%s" $part) $part (eq $size 16)) -}}
{{- if ne (mod $number $step) 0 -}}
{{- fail (printf "%s: %q is no network, because there is more than its first %d bits: write it as 10.0.0.0/16" $where $text $bits) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Refuses classes that cannot be offered together; takes a list of where they stand and the classes. */}}
{{- define "liqo.classes" -}}
{{- $where := index . 0 -}}{{- $names := list -}}{{- $default := "" -}}
{{- range $i, $class := index . 1 -}}
{{- if has $class.name $names -}}{{- fail (printf "%s[%d]: %q is there twice" $where $i $class.name) -}}{{- end -}}
{{- if and $class.default $default -}}{{- fail (printf "%s[%d]: there is another default class, %q" $where $i $default) -}}{{- end -}}
{{- if $class.default -}}{{- $default = $class.name -}}{{- end -}}
{{- $names = append $names $class.name -}}
{{- end -}}
{{- if gt (len $names) 256 -}}{{- fail (printf "%s: there are %d classes, and 256 can be offered" $where (len $names)) -}}{{- end -}}
{{- end -}}

{{/* Refuses what is no quantity; takes a list of where they stand and a map of them. */}}
{{- define "liqo.quantities" -}}
{{- $where := index . 0 -}}
{{- range $name, $quantity := index . 1 -}}
{{- if not (regexMatch "^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$" (toString $quantity)) -}}
{{- fail (printf "%s.%s: %q is no quantity: write a number that is not negative, such as 2 or 500Mi" $where $name (toString $quantity)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
