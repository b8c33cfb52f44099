{{/*
The pieces of the agent's DaemonSets. They take (dict "root" $ "track" "main" or "canary").
*/}}

{{- define "temper.agent.labels" -}}
{{ include "temper.selector" .root }}
app.kubernetes.io/component: agent
temper.codes/track: {{ .track }}
{{- end -}}

{{- define "temper.agent.name" -}}
temper-agent{{ if eq .track "canary" }}-canary{{ end }}
{{- end -}}

{{- define "temper.agent.tokenSecret" -}}
{{- with .Values.agent.token -}}
{{- .existingSecret | default (ternary "temper-agent-token" "" .create) -}}
{{- end -}}
{{- end -}}

{{/* agent.toml: the chart's own, then agent.settings, then the canary's. */}}
{{- define "temper.agent.settings" -}}
{{- $agent := .root.Values.agent -}}
{{- $server := dict "listen" (include "temper.listen" (dict "root" .root "port" $agent.port)) -}}
{{- if include "temper.agent.tokenSecret" .root -}}
{{- $_ := set $server "token_file" "/etc/temper/token/token" -}}
{{- end -}}
{{- $given := deepCopy ($agent.settings | default dict) -}}
{{- if eq .track "canary" -}}
{{- $given = mergeOverwrite $given (deepCopy ($agent.canary.settings | default dict)) -}}
{{- end -}}
{{- $own := dict "pods" (dict "source" "kubernetes") "server" $server -}}
{{- $power := dict -}}
{{- if $agent.powercap -}}
{{- $_ := set $power "powercap_path" "/host/powercap" -}}
{{- end -}}
{{- if $agent.powerTwin -}}
{{- $_ := set $power "twin_from_cluster" true -}}
{{- end -}}
{{- if $power -}}
{{- $_ := set $own "plugins" (dict "power" (dict "node" $power)) -}}
{{- end -}}
# Made by helm from agent.settings; docs/settings.md tells what can be set.
{{- include "temper.toml" (dict "table" (mergeOverwrite $own $given) "path" "") }}
{{- end -}}

{{/* The nodes: the common conditions, and for the main one no node with every label of the canary. */}}
{{- define "temper.agent.affinity" -}}
{{- $agent := .root.Values.agent -}}
{{- $terms := list -}}
{{- if and (eq .track "main") $agent.canary.enabled -}}
{{- range $label, $value := $agent.canary.nodeSelector -}}
{{- $elsewhere := dict "key" $label "operator" "NotIn" "values" (list (toString $value)) -}}
{{- $terms = append $terms (dict "matchExpressions" (append ($agent.nodeExpressions | default list) $elsewhere)) -}}
{{- end -}}
{{- else if $agent.nodeExpressions -}}
{{- $terms = list (dict "matchExpressions" $agent.nodeExpressions) -}}
{{- end -}}
{{- with $terms }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- end -}}

{{- define "temper.agent.nodeSelector" -}}
{{- $labels := deepCopy (.root.Values.agent.nodeSelector | default dict) -}}
{{- if eq .track "canary" -}}
{{- $labels = mergeOverwrite $labels (deepCopy .root.Values.agent.canary.nodeSelector) -}}
{{- end -}}
{{- range $label, $value := $labels }}
{{ $label }}: {{ toString $value | quote }}
{{- end }}
{{- end -}}

{{- define "temper.agent.probe" -}}
httpGet:
  path: {{ .path }}
  port: metrics
{{ toYaml .timing }}
{{- end -}}

{{- define "temper.agent.container" -}}
{{- $agent := .root.Values.agent -}}
{{- $tag := ternary $agent.canary.image.tag "" (eq .track "canary") -}}
name: agent
image: {{ include "temper.image" (dict "image" .root.Values.image "chart" .root.Chart "tag" $tag) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: [agent, --settings, /etc/temper/agent.toml, --log-level, {{ $agent.logLevel }}]
env:
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        apiVersion: v1
        fieldPath: spec.nodeName
  {{- with $agent.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - name: metrics
    containerPort: {{ $agent.port }}
    protocol: TCP
startupProbe:
  {{- include "temper.agent.probe" (dict "path" "/healthz" "timing" $agent.probes.startup) | nindent 2 }}
livenessProbe:
  {{- include "temper.agent.probe" (dict "path" "/healthz" "timing" $agent.probes.liveness) | nindent 2 }}
readinessProbe:
  {{- include "temper.agent.probe" (dict "path" "/readyz" "timing" $agent.probes.readiness) | nindent 2 }}
resources:
  {{- toYaml $agent.resources | nindent 2 }}
securityContext:
  {{- toYaml $agent.securityContext | nindent 2 }}
# The one line that says which setting is wrong stands in the pod's status.
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  {{- include "temper.agent.mounts" .root | nindent 2 }}
{{- end -}}

{{- define "temper.agent.mounts" -}}
- {name: settings, mountPath: /etc/temper/agent.toml, subPath: agent.toml, readOnly: true}
{{- /* Each by itself: a mounted directory changes on all nodes at once, however the DaemonSet rolls. */}}
{{- range $file, $_ := .Values.agent.profiles }}
- {name: profiles, mountPath: /etc/temper/profiles/{{ $file }}, subPath: {{ $file }}, readOnly: true}
{{- end }}
{{- if include "temper.agent.tokenSecret" . }}
- {name: token, mountPath: /etc/temper/token, readOnly: true}
{{- end }}
- {name: cgroup, mountPath: /sys/fs/cgroup, readOnly: true}
- {name: bpf, mountPath: /sys/fs/bpf}
- {name: state, mountPath: /var/lib/temper}
- {name: run, mountPath: /run/temper}
- {name: scx, mountPath: /run/scx}
{{- if .Values.agent.hostPaths.boot }}
- {name: boot, mountPath: /boot, readOnly: true}
{{- end }}
{{- with .Values.agent.powercap }}
{{- /* Not at its own path: container runtimes mask that one after all mounts. */}}
- {name: powercap, mountPath: /host/powercap, readOnly: {{ ne . "writable" }}}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "temper.agent.volumes" -}}
{{- $paths := .root.Values.agent.hostPaths -}}
- name: settings
  configMap:
    name: {{ include "temper.agent.name" . }}
{{- if .root.Values.agent.profiles }}
- name: profiles
  configMap:
    name: temper-profiles
{{- end }}
{{- with include "temper.agent.tokenSecret" .root }}
- name: token
  secret:
    secretName: {{ . }}
    defaultMode: 0400
{{- end }}
- name: cgroup
  hostPath: {path: {{ $paths.cgroup | quote }}, type: Directory}
- name: bpf
  hostPath: {path: {{ $paths.bpf | quote }}, type: Directory}
- name: state
  hostPath: {path: {{ $paths.state | quote }}, type: DirectoryOrCreate}
- name: run
  hostPath: {path: {{ $paths.run | quote }}, type: DirectoryOrCreate}
# The engine's socket, in a root file system that is read only.
- name: scx
  emptyDir: {sizeLimit: 16Mi}
{{- with $paths.boot }}
- name: boot
  hostPath: {path: {{ . | quote }}, type: Directory}
{{- end }}
{{- if .root.Values.agent.powercap }}
- name: powercap
  hostPath: {path: /sys/devices/virtual/powercap, type: Directory}
{{- end }}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end -}}

{{- define "temper.agent.daemonset" -}}
{{- $agent := .root.Values.agent -}}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ include "temper.agent.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "temper.labels" .root | nindent 4 }}
    app.kubernetes.io/component: agent
    temper.codes/track: {{ .track }}
spec:
  selector:
    matchLabels:
      {{- include "temper.agent.labels" . | nindent 6 }}
  minReadySeconds: {{ $agent.minReadySeconds }}
  updateStrategy:
    {{- toYaml $agent.updateStrategy | nindent 4 }}
  template:
    metadata:
      labels:
        {{- with $agent.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- include "temper.agent.labels" . | nindent 8 }}
      annotations:
        {{- with $agent.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        checksum/settings: {{ include "temper.agent.settings" . | sha256sum }}
        checksum/profiles: {{ toJson $agent.profiles | sha256sum }}
        kubectl.kubernetes.io/default-container: agent
    spec:
      hostPID: true
      serviceAccountName: {{ .root.Values.serviceAccount.name }}
      {{- include "temper.pullSecrets" .root | nindent 6 }}
      priorityClassName: {{ $agent.priorityClassName }}
      terminationGracePeriodSeconds: {{ $agent.terminationGracePeriodSeconds }}
      {{- with $agent.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      nodeSelector:
        {{- include "temper.agent.nodeSelector" . | nindent 8 }}
      {{- include "temper.agent.affinity" . | nindent 6 }}
      {{- with $agent.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        -
          {{- include "temper.agent.container" . | nindent 10 }}
      volumes:
        {{- include "temper.agent.volumes" . | nindent 8 }}
{{- end -}}

{{- define "temper.agent.configmap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "temper.agent.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "temper.labels" .root | nindent 4 }}
    app.kubernetes.io/component: agent
data:
  agent.toml: |
    {{- include "temper.agent.settings" . | nindent 4 }}
{{- end -}}
