{{/*
Refuses to upgrade Liqo v1 in place, or to install beside it: two controllers would work on each object. Its chart has the same name as ours, and
so have parts of it. It is looked for in the release's own namespace alone, and only where there is a cluster ('helm template' has none);
'liqoctl install' looks in the others, too.
*/}}
{{- define "liqo.alone" -}}
{{- $way := "end its peerings and uninstall it with the liqoctl of Liqo v1, then run the same command again (docs/guide/migration.md)" -}}
{{- if lookup "apps/v1" "Deployment" .Release.Namespace "liqo-crd-replicator" -}}
{{- fail (printf "Deployment %s/liqo-crd-replicator is of Liqo v1, and two controllers must not work on the same objects: %s" .Release.Namespace $way) -}}
{{- end -}}
{{- with lookup "apps/v1" "Deployment" .Release.Namespace "liqo-controller-manager" -}}
{{- if not (contains "--config=" (toJson .spec.template.spec.containers)) -}}
{{- fail (printf "Deployment %s/liqo-controller-manager is of Liqo v1, and two controllers must not work on the same objects: %s" $.Release.Namespace $way) -}}
{{- end -}}
{{- end -}}
{{- end -}}
