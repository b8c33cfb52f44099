{{/* Parts of the page of the cluster. */}}

{{/* Its own image if one is set, else that of the release. */}}
{{- define "temper.dashboardImage" -}}
{{- $own := .Values.dashboard.image -}}
{{- if or $own.repository $own.tag -}}
{{ printf "%s:%s" ($own.repository | default .Values.image.repository) ($own.tag | default .Values.image.tag | default .Chart.AppVersion) }}
{{- else -}}
{{ include "temper.mainImage" . }}
{{- end -}}
{{- end -}}

{{/* Not empty if the page shows anything of pods from the API server. */}}
{{- define "temper.dashboardReadsPods" -}}
{{- $parts := .Values.dashboard.podDetails -}}
{{- if and .Values.dashboard.enabled (or $parts.events $parts.manifest $parts.revisions $parts.logs) }}yes{{ end -}}
{{- end -}}

{{- define "temper.dashboardProbes" -}}
{{- $scheme := ternary "HTTPS" "HTTP" (not (empty .Values.dashboard.tls.existingSecret)) -}}
livenessProbe:
  httpGet: {path: /healthz, port: page, scheme: {{ $scheme }}}
  initialDelaySeconds: 5
  periodSeconds: 20
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: page, scheme: {{ $scheme }}}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}
