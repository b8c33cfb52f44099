{{/*
A map as TOML: (dict "table" MAP "path" ""). Helm's toToml writes the integers of a values file as 1e+06, which is no
integer of TOML any more; JSON writes them as they are, and JSON's scalars are TOML's. What is null is left out.
*/}}
{{- define "temper.toml" -}}
{{- $path := .path -}}
{{- range $key, $value := .table -}}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value)) }}
{{ include "temper.tomlKey" $key }} = {{ include "temper.tomlValue" $value }}
{{- end }}
{{- end }}
{{- range $key, $value := .table -}}
{{- if kindIs "map" $value }}
{{- $inner := list $path (include "temper.tomlKey" $key) | compact | join "." }}

[{{ $inner }}]
{{- include "temper.toml" (dict "table" $value "path" $inner) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "temper.tomlKey" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toJson . }}{{ end -}}
{{- end -}}

{{- define "temper.tomlValue" -}}
{{- if kindIs "map" . -}}
{{- $pairs := list -}}
{{- range $key, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $pairs = append $pairs (printf "%s = %s" (include "temper.tomlKey" $key) (include "temper.tomlValue" $value)) -}}
{{- end -}}
{{- end -}}
{ {{ join ", " $pairs }} }
{{- else if kindIs "slice" . -}}
{{- $items := list -}}
{{- range . -}}
{{- $items = append $items (include "temper.tomlValue" .) -}}
{{- end -}}
[{{ join ", " $items }}]
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end -}}
