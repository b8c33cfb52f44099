{{/* Parts of power-aware placement. */}}

{{/* Not empty if there is a power extender. */}}
{{- define "temper.powerExtender" -}}
{{- if and .Values.power.enabled .Values.power.extender.enabled }}true{{ end -}}
{{- end -}}

{{/* The power extender as an item of a scheduler's extenders. Scores are 0 to 10, as a scheduler expects. */}}
{{- define "temper.powerExtender.configuration" -}}
{{- if include "temper.powerExtender" . }}
{{- $tls := .Values.power.extender.tls }}
- urlPrefix: {{ ternary "https" "http" (not (empty $tls.existingSecret)) }}://temper-power-extender.{{ .Release.Namespace }}.svc:9876
  filterVerb: filter
  # Otherwise a performance pod would have pods evicted from nodes that do not take it.
  preemptVerb: preempt
  prioritizeVerb: prioritize
  weight: {{ .Values.power.extender.weight }}
  nodeCacheCapable: true
  # Without an answer pods are placed as if there were no extender.
  ignorable: true
  httpTimeout: 1s
  {{- if $tls.existingSecret }}
  enableHTTPS: true
  tlsConfig:
    serverName: temper-power-extender.{{ .Release.Namespace }}.svc
    {{- with $tls.caBundle }}
    caData: {{ b64enc . }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "temper.powerExtender.probes" -}}
{{- $scheme := ternary "HTTPS" "HTTP" (not (empty .Values.power.extender.tls.existingSecret)) -}}
livenessProbe:
  httpGet: {path: /healthz, port: extender, scheme: {{ $scheme }}}
  initialDelaySeconds: 5
  periodSeconds: 20
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: extender, scheme: {{ $scheme }}}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}
