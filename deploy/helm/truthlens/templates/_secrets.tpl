{{/*
A list of the secrets that are files of a container (dict "root" $ "role" gateway|sidecar|desk): volume, mount path, variable.
A login that asks nobody for a token gets none: the process would refuse it.
*/}}
{{- define "truthlens.fileSecrets" -}}
{{- $secrets := .root.Values.secrets -}}
{{- $files := list -}}
{{- if ne .root.Values.console.login "proxy" -}}
{{- $files = append $files (dict "volume" "console" "variable" "TRUTHLENS_CONSOLE_TOKEN_FILE" "from" $secrets.consoleToken) -}}
{{- $files = append $files (dict "volume" "console-viewer" "variable" "TRUTHLENS_CONSOLE_VIEWER_TOKEN_FILE" "from" $secrets.consoleViewerToken) -}}
{{- end -}}
{{- if eq .root.Values.console.login "oidc" -}}
{{- $files = append $files (dict "volume" "oidc" "variable" "TRUTHLENS_CONSOLE_OIDC_CLIENT_SECRET_FILE" "from" $secrets.oidcClientSecret) -}}
{{- end -}}
{{- $files = append $files (dict "volume" "session" "variable" "TRUTHLENS_CONSOLE_SESSION_KEY_FILE" "from" $secrets.consoleSessionKey) -}}
{{- if ne .role "desk" -}}
{{- $files = append $files (dict "volume" "fleet" "variable" "TRUTHLENS_SECRET_FILE" "from" $secrets.fleet) -}}
{{- $files = append $files (dict "volume" "tls" "from" (dict "existingSecret" $secrets.tls.existingSecret)) -}}
{{- end -}}
{{- $named := list -}}
{{- range $files -}}
{{- if .from.existingSecret -}}
{{- $named = append $named (merge (dict "path" (printf "/etc/truthlens-%s" .volume)) .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $named -}}
{{- end -}}

{{/* A variable out of a secret: dict "name" VARIABLE "from" {existingSecret, key}. */}}
{{- define "truthlens.secretVariable" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: {name: {{ .from.existingSecret }}, key: {{ .from.key }}}
{{- end -}}
