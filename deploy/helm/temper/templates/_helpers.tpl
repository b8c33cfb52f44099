{{/* Labels that every object carries. */}}
{{- define "temper.labels" -}}
{{ include "temper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels by which objects find pods; they never change. */}}
{{- define "temper.selector" -}}
app.kubernetes.io/name: temper
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* The image's reference: (dict "image" .Values.image "chart" .Chart "tag" "of the canary, or empty"). */}}
{{- define "temper.image" -}}
{{- if .tag -}}
{{ printf "%s:%s" .image.repository .tag }}
{{- else if .image.digest -}}
{{ printf "%s@%s" .image.repository .image.digest }}
{{- else -}}
{{ printf "%s:%s" .image.repository (.image.tag | default .chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- define "temper.mainImage" -}}
{{ include "temper.image" (dict "image" .Values.image "chart" .Chart "tag" "") }}
{{- end -}}

{{/* Where a server listens: (dict "root" $ "port" 9100). */}}
{{- define "temper.listen" -}}
{{- $address := .root.Values.listen -}}
{{- if contains ":" $address }}[{{ $address }}]{{ else }}{{ $address }}{{ end }}:{{ int .port }}
{{- end -}}

{{/* The Secret with the webhook's authority or certificate. */}}
{{- define "temper.webhookSecret" -}}
{{- if .Values.webhook.certManager.enabled }}temper-webhook-cert
{{- else }}{{ .Values.webhook.existingSecret | default "temper-webhook-tls" }}{{ end -}}
{{- end -}}

{{/* A duration such as 1m30s in milliseconds. */}}
{{- define "temper.milliseconds" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 "d" 86400000 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+(ms|[smhd])" . -1 -}}
{{- $sum = add $sum (mul (regexFind "[0-9]+" . | int64) (get $units (regexFind "[a-z]+" .))) -}}
{{- end -}}
{{ $sum }}
{{- end -}}

{{- define "temper.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The rights of a container that needs none: the webhook, the placement service, the hooks. */}}
{{- define "temper.powerless" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "temper.powerlessPod" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* A pod of a hook: everything of its spec but account and container. */}}
{{/* They keep a record of each node and of each agent. */}}
{{- define "temper.hookResources" -}}
requests: {cpu: 10m, memory: 64Mi}
limits: {memory: 512Mi}
{{- end -}}

{{- define "temper.hookPod" -}}
securityContext:
  {{- include "temper.powerlessPod" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
nodeSelector:
  kubernetes.io/os: linux
{{- with .Values.hookTolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
