{{/*
What users who bring values of Liqo v1 have to know, one line for each reason, which liqoctl reads too. Values themselves are never told: there
are secrets among them. files/compat.yaml and files/images.yaml say what is known.
*/}}
{{- define "liqo.compat" -}}
{{- $compat := .Files.Get "files/compat.yaml" | fromYaml -}}
{{- $images := (.Files.Get "files/images.yaml" | fromYaml).images -}}
{{- range $compat.withoutEffect -}}
{{- $why := .why -}}
{{- with include "liqo.compat.given" (dict "given" $.Values "known" .values "always" .always "path" "") | trim | splitList " " | compact }}
  * no effect of {{ join ", " . }}: {{ $why }}
{{- end -}}
{{- end -}}
{{- $gateway := .Values.networking.gatewayTemplates.container.gateway -}}
{{- range $path, $image := dict "controllerManager.image" .Values.controllerManager.image "networking.fabric.image" .Values.networking.fabric.image "networking.gatewayTemplates.container.gateway.image" $gateway.image "virtualKubelet.image" .Values.virtualKubelet.image -}}
{{- /* What a mirror of v1's is called, where ours is called otherwise. */ -}}
{{- $programs := list -}}{{- range $theirs, $_ := $images -}}{{- $programs = append $programs (splitList "/" $theirs | last) -}}{{- end -}}
{{- $named := and (not (hasKey $images $image.name)) (has (splitList "/" $image.name | last) $programs) -}}
{{- if or $named (include "liqo.image.ofV1" (list $ $image)) }}
  * maybe of Liqo v1 {{ $path }}: Its {{ ternary "name" "tag" $named }} is that of a program of v1, which does not run here; if it is one, give an image of this Liqo.
{{- end -}}
{{- end -}}
{{- range $compat.deprecated -}}
{{- if include "liqo.compat.deprecated" (list $ .path) }}
  * deprecated {{ .path }}: it is {{ .now }} now, which takes it.
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The paths of values that are given, and not as they were by default. */}}
{{- define "liqo.compat.given" -}}
{{- range $key, $known := .known -}}
{{- if hasKey $.given $key -}}
{{- $given := get $.given $key -}}{{- $path := printf "%s.%s" $.path $key | trimPrefix "." -}}
{{- if and (kindIs "map" $known) $known (kindIs "map" $given) -}}
{{- include "liqo.compat.given" (dict "given" $given "known" $known "always" $.always "path" $path) -}}
{{- else if or $.always (ne (toJson $given) (toJson $known)) -}}
{{- printf "%s " $path -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What stands at a deprecated path, as text; takes a list of the root and the path. */}}
{{- define "liqo.compat.deprecated" -}}
{{- $at := (index . 0).Values -}}
{{- range splitList "." (index . 1) -}}
{{- $at = get (default dict $at) . -}}
{{- end -}}
{{- $at -}}
{{- end -}}
