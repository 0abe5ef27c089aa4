{{/*
Refuses arguments that a program would not start with; takes a list of the root, the program, the value that has the arguments, and these.
files/flags has what the programs take: a program that ends at once tells its mistake nobody but its log.
*/}}
{{- define "liqo.args" -}}
{{- $program := index . 1 -}}{{- $value := index . 2 -}}
{{- $flags := (index . 0).Files.Get (printf "files/flags/%s.yaml" $program) | fromYaml -}}
{{- $waiting := "" -}}
{{- range $i, $arg := index . 3 -}}
{{- $where := printf "%s[%d]" $value $i -}}{{- $arg = toString $arg -}}
{{- if $waiting -}}
{{- include "liqo.args.value" (list $where $waiting (get $flags $waiting) $arg) -}}
{{- $waiting = "" -}}
{{- else if not (regexMatch "^(--[a-zA-Z]|-[a-zA-Z])" $arg) -}}
{{- fail (printf "%s: %q is no flag: write --NAME=VALUE" $where $arg) -}}
{{- else -}}
{{- $parts := regexSplit "=" $arg 2 -}}{{- $name := first $parts | trimPrefix "--" -}}
{{- /* One letter may have its value right behind it. */ -}}
{{- if not (hasPrefix "--" $arg) -}}{{- $name = substr 1 2 $arg -}}{{- $parts = ternary (list $name) (list $name (substr 2 -1 $arg | trimPrefix "=")) (eq (len $arg) 2) -}}{{- end -}}
{{- if not (hasKey $flags $name) -}}
{{- fail (printf "%s: %s has no flag --%s: correct it or leave it out" $where $program $name) -}}
{{- else if eq (len $parts) 2 -}}
{{- include "liqo.args.value" (list $where $name (get $flags $name) (last $parts)) -}}
{{- else if ne (get $flags $name) "bool" -}}
{{- $waiting = $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $waiting -}}
{{- fail (printf "%s: --%s needs a value: write --%s=VALUE" $value $waiting $waiting) -}}
{{- end -}}
{{- end -}}

{{/* Refuses what a flag does not take; takes a list of where it stands, the flag, what it takes, and what is given. */}}
{{- define "liqo.args.value" -}}
{{- $bounds := splitList " " (index . 2) | rest -}}{{- $takes := splitList " " (index . 2) | first -}}{{- $given := index . 3 -}}
{{- $sorts := include "liqo.args.sorts" . | fromYaml -}}
{{- if contains "|" $takes -}}
{{- if not (has $given (splitList "|" $takes)) -}}
{{- fail (printf "%s: --%s takes %s, not %q" (index . 0) (index . 1) (splitList "|" $takes | join " or ") $given) -}}
{{- end -}}
{{- else if and (hasKey $sorts $takes) (not (regexMatch (get $sorts $takes).pattern $given)) -}}
{{- fail (printf "%s: --%s takes %s, not %q" (index . 0) (index . 1) (get $sorts $takes).example $given) -}}
{{- else if and $bounds (or (lt (int64 $given) (int64 (first $bounds))) (gt (int64 $given) (int64 (last $bounds)))) -}}
{{- fail (printf "%s: --%s takes a number from %s to %s, not %s" (index . 0) (index . 1) (first $bounds) (last $bounds) $given) -}}
{{- end -}}
{{- end -}}

{{/* What values of a type look like, in a pattern and in words. */}}
{{- define "liqo.args.sorts" -}}
int: {pattern: "^-?[0-9]+$", example: a number}
int32: {pattern: "^-?[0-9]+$", example: a number}
Level: {pattern: "^[0-9]+$", example: a number}
bool: {pattern: "^(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)$", example: true or false}
duration: {pattern: "^([-+]?([0-9]+([.][0-9]*)?(ns|us|ms|s|m|h))+|0)$", example: a duration such as 30s}
{{- end -}}
