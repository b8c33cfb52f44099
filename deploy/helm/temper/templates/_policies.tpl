{{/*
What an agent writes to its node: OURS and ANSWERS of temper_plugin_kubernetes/annotations.py. Requests of
operators are not among them, and no others, so that a stolen token cannot use up a node's room for annotations.
*/}}
{{- define "temper.agentAnnotations" -}}
{{- $names := list "agent-status" "agent-mode" "agent-message" "config-generation" "tiers-updated" "restored" "restore-left" -}}
{{- $names = concat $names (list "agent-former-requests" "fenced-cores" "fence-budget-cores" "threads-per-core") -}}
{{- range list "critical" "high" "normal" "low" "background" -}}
{{- $names = concat $names (list (printf "tier-%s-pods" .) (printf "tier-%s-cpu-millis" .)) -}}
{{- end -}}
[{{ range $index, $name := $names }}{{ if $index }}, {{ end }}"temper.codes/{{ $name }}"{{ end }}]
{{- end -}}

{{/*
Whether a map of maps, in CEL, has no level below the given one. map, levels, and an expression of each map above.
*/}}
{{- define "temper.shallow" -}}
{{- if .levels -}}
{{- $key := printf "key%d" (int .levels) -}}
{{- $below := dict "map" (printf "%s[%s]" .map $key) "levels" (sub .levels 1) "each" .each -}}
{{- with .each }}{{ printf . $.map }} && {{ end }}{{ .map }}.all({{ $key }}, {{ include "temper.shallow" $below }})
{{- else -}}
size({{ .map }}) == 0
{{- end -}}
{{- end -}}

{{/*
A policy and its binding: RBAC allows an account to patch a node or does not, and this allows some annotations alone.
root, name, component, account; who, writes and removes for messages; writable and removable: CEL, of a key. labels: CEL, and
labelled for its message, of an account that may label nodes.
*/}}
{{- define "temper.nodePolicy" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ .name }}
  labels:
    {{- include "temper.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    namespaceSelector: {}
    objectSelector: {}
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [UPDATE]
        resources: [nodes]
        scope: "*"
  matchConditions:
    - name: by-that-account
      expression: request.userInfo.username == "system:serviceaccount:{{ .root.Release.Namespace }}:{{ .account }}"
  variables:
    - name: before
      expression: 'oldObject.metadata.?annotations.orValue({})'
    - name: after
      expression: 'object.metadata.?annotations.orValue({})'
  validations:
    - expression: object.spec == oldObject.spec
      message: {{ .who }} change nothing of a node's spec
    - expression: >-
        {{ .labels | default "object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})" }}
      message: {{ .who }} {{ .labelled | default "change no label of a node" }}
    - expression: >-
        object.metadata.?finalizers.orValue([]) == oldObject.metadata.?finalizers.orValue([]) &&
        object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([]) &&
        object.metadata.?generateName == oldObject.metadata.?generateName
      message: {{ .who }} change neither finalizers nor owners of a node, nor what its name is made of
    - expression: >-
        variables.after.all(key, variables.before[?key] == optional.of(variables.after[key]) ||
        ({{ .writable }}))
      message: {{ .who }} {{ .writes }}
    - expression: >-
        variables.before.all(key, key in variables.after || ({{ .removable }}))
      message: {{ .who }} {{ .removes }}
    # Whoever reads nodes reads these. The deepest that Kubernetes' own components make have five levels.
    - expression: >-
        object.metadata.?managedFields.orValue([]).all(entry, !has(entry.fieldsV1) ||
        {{ include "temper.shallow" (dict "map" "entry.fieldsV1" "levels" 8 "each" "") }})
      message: {{ .who }} nest managed fields of a node at most eight levels deep
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "temper.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end -}}
