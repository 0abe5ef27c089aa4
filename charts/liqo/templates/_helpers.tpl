{{/* Start of the names of our Deployments, Services and ConfigMaps. */}}
{{- define "liqo.prefix" -}}
{{- default "liqo" .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels of the objects of the chart that belong to no component. */}}
{{- define "liqo.labels" -}}
{{ include "liqo.commonLabels" . }}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of the objects of a component; takes a list of the root and the component. */}}
{{- define "liqo.componentLabels" -}}
{{ include "liqo.commonLabels" (index . 0) }}
{{ include "liqo.selector" . }}
{{- end -}}

{{- define "liqo.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: liqo
{{- end -}}

{{/* Labels that select the objects of a component, which has the name of Liqo v1's; takes a list of the root and the component. */}}
{{- define "liqo.selector" -}}
{{- $root := index . 0 -}}{{- $component := index . 1 -}}
app.kubernetes.io/name: {{ default $component $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ $component }}
{{- end -}}

{{/* An image with its tag; takes a list of the root and the image's values. Images of Liqo v1 stand for ours, but its releases are not ours. */}}
{{- define "liqo.image" -}}
{{- $root := index . 0 -}}{{- $image := index . 1 -}}
{{- $ours := ($root.Files.Get "files/images.yaml" | fromYaml).images -}}
{{- $name := get $ours $image.name | default $image.name -}}
{{- if and (hasPrefix "ghcr.io/liqotech/" $name) (include "liqo.image.ofV1" .) -}}
{{- fail (printf "image %s:%s is of Liqo v1, whose programs do not run here: take v1's tags out of the values (tag, image.version), then it is %s" $name (include "liqo.image.tag" .) $root.Chart.AppVersion) -}}
{{- end -}}
{{- printf "%s:%s" $name (include "liqo.image.tag" .) -}}
{{- end -}}

{{- define "liqo.image.tag" -}}
{{- $root := index . 0 -}}{{- coalesce (index . 1).version $root.Values.tag $root.Chart.AppVersion -}}
{{- end -}}

{{/* Says something if an image is of a release of Liqo v1, by its tag. Once this Liqo has such releases itself, nothing tells them apart. */}}
{{- define "liqo.image.ofV1" -}}
{{- $root := index . 0 -}}
{{- $releases := ($root.Files.Get "files/images.yaml" | fromYaml).releases -}}
{{- if and (regexMatch $releases (include "liqo.image.tag" .)) (not (regexMatch $releases $root.Chart.AppVersion)) -}}v1{{- end -}}
{{- end -}}

{{/* The cluster's ID: as installed before, else as given, else made of what never changes in a cluster. Refuses to change it. */}}
{{- define "liqo.clusterID" -}}
{{- $given := .Values.discovery.config.clusterID -}}
{{- $installed := "" -}}
{{- with lookup "v1" "ConfigMap" .Release.Namespace "liqo-clusterid-configmap" -}}
{{- $installed = get (default dict .data) "CLUSTER_ID" -}}
{{- end -}}
{{- if and $installed $given (ne $installed $given) -}}
{{- fail (printf "discovery.config.clusterID cannot be changed from %q to %q: peers know this cluster by it; uninstall and install again" $installed $given) -}}
{{- end -}}
{{- $own := "" -}}
{{- with lookup "v1" "Namespace" "" "kube-system" -}}
{{- $own = .metadata.uid -}}
{{- end -}}
{{- required "give discovery.config.clusterID: peers know the cluster by it, and without a cluster ('helm template') there is nothing that it could be made of" (coalesce $installed $given $own) -}}
{{- end -}}

{{- /* Keys of objects of consumers by which nothing acts on them: profile hardened allows no others. */}}
{{- define "liqo.objectKeys" -}}
["app.kubernetes.io/","apps.kubernetes.io/","batch.kubernetes.io/","controller.kubernetes.io/","statefulset.kubernetes.io/","kubectl.kubernetes.io/","helm.sh/","meta.helm.sh/","kubernetes.io/description","kubernetes.io/service-name","endpointslice.kubernetes.io/","endpoints.kubernetes.io/","service.kubernetes.io/headless","app","k8s-app","component","name","instance","part-of","tier","role","version","release","track","chart","heritage","service","environment","env","team","owner"]
{{- end }}
