{{/* What the pods of the optional services have in common. */}}

{{/* (dict "root" $ "of" .Values.webhook "component" "webhook"): everything of the pod's spec but its container. */}}
{{- define "temper.densityPod" -}}
securityContext:
  {{- include "temper.powerlessPod" .root | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .of.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "temper.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Takes the name of the plain port. */}}
{{- define "temper.densityProbes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  initialDelaySeconds: 5
  periodSeconds: 20
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{- define "temper.powerlessContainer" -}}
securityContext:
  {{- include "temper.powerless" . | nindent 2 }}
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "temper.tmpVolume" -}}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end -}}

{{/* The agents' settings: both services map priorities to tiers as the agents do. */}}
{{- define "temper.settingsVolume" -}}
- name: settings
  configMap:
    name: temper-agent
{{- end -}}

{{- define "temper.settingsMount" -}}
- {name: settings, mountPath: /etc/temper/agent.toml, subPath: agent.toml, readOnly: true}
{{- end -}}

{{- define "temper.settingsSum" -}}
checksum/settings: {{ include "temper.agent.settings" (dict "root" . "track" "main") | sha256sum }}
{{- end -}}

{{/* A scheduler is to be as new as its cluster: v1.33.4-gke.100 runs v1.33.4. */}}
{{- define "temper.scheduler.image" -}}
{{- $cluster := regexFind "v[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version -}}
{{ printf "%s:%s" .Values.scheduler.image.repository (.Values.scheduler.image.tag | default $cluster) }}
{{- end -}}

{{- define "temper.scheduler.configuration" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceName: temper-scheduler
  resourceNamespace: {{ .Release.Namespace }}
profiles:
  - schedulerName: temper-scheduler
extenders:
  - urlPrefix: http://temper-placement.{{ .Release.Namespace }}.svc:8888
    prioritizeVerb: prioritize
    weight: {{ .Values.scheduler.weight }}
    nodeCacheCapable: true
    # Without an answer pods are placed as if there were no extender.
    ignorable: true
    httpTimeout: 1s
  {{- with include "temper.powerExtender.configuration" . }}
  {{- trim . | nindent 2 }}
  {{- end }}
{{- end -}}
