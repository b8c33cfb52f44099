{{/* What an installer should know at once; NOTES.txt ends with it. */}}
{{- define "temper.warnings" -}}
{{- if not (dig "scheduler" "enforce" true (.Values.agent.settings | default dict)) }}

WARNING: agent.settings.scheduler.enforce is false: the agents only observe, nothing is enforced.
{{- end }}
{{- if .Values.rbac.create }}
{{- include "temper.kernelWarning" . }}
{{- else }}

WARNING: rbac.create is false: without the rights of docs/kubernetes.md by other hands the agents see no pods,
and the job that restores the nodes before an uninstall fails.
{{- end }}
{{- include "temper.podSecurityWarning" . }}
{{- if and .Values.webhook.enabled (not (dig "scheduler" "enforce" true (.Values.agent.settings | default dict))) }}

WARNING: webhook.enabled lowers CPU requests, which is safe only where the nodes enforce.
{{- end }}
{{- end -}}

{{/* No node enforces below Linux 6.12. Without access to nodes, as in helm template, there is no warning. */}}
{{- define "temper.kernelWarning" -}}
{{- $nodes := (lookup "v1" "Node" "" "").items -}}
{{- $able := 0 -}}
{{- range $nodes -}}
{{- $kernel := regexFind "^[0-9]+[.][0-9]+" (dig "status" "nodeInfo" "kernelVersion" "" .) -}}
{{- if and $kernel (semverCompare ">=6.12" (printf "%s.0" $kernel)) -}}
{{- $able = add1 $able -}}
{{- end -}}
{{- end -}}
{{- if and $nodes (not $able) }}

WARNING: no node has Linux 6.12 or newer, which sched_ext needs: the agents only observe, nothing can be enforced.
{{- end }}
{{- end -}}

{{- define "temper.podSecurityWarning" -}}
{{- $namespace := lookup "v1" "Namespace" "" .Release.Namespace -}}
{{- $level := dig "metadata" "labels" "pod-security.kubernetes.io/enforce" "privileged" $namespace -}}
{{- if ne $level "privileged" }}

WARNING: the namespace {{ .Release.Namespace }} enforces the Pod Security level {{ $level }}, which refuses the agents' hostPID and hostPath:

  kubectl label --overwrite namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=privileged
{{- end }}
{{- end -}}
