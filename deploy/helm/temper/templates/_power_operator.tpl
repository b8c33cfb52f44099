{{/* Not empty if there is a power operator. */}}
{{- define "temper.powerOperator" -}}
{{- if and .Values.power.enabled .Values.power.operator.enabled }}true{{ end -}}
{{- end -}}

{{/* Not empty if the settings let the operator label nodes. */}}
{{- define "temper.powerOperator.labels" -}}
{{- if not (dig "plugins" "power" "operator" "dry_run" true (.Values.agent.settings | default dict)) }}true{{ end -}}
{{- end -}}

{{/* Not empty if the settings let the operator evict pods. */}}
{{- define "temper.powerOperator.evicts" -}}
{{- if dig "plugins" "power" "operator" "rescheduler" "enabled" false (.Values.agent.settings | default dict) }}true{{ end -}}
{{- end -}}
