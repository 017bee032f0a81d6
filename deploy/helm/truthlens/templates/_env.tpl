{{/* The environment that the chart gives a container, without `extraEnv`: dict "root" $ "role" gateway|sidecar|desk. */}}
{{- define "truthlens.env" -}}
{{- $values := .root.Values -}}
{{- $gateway := ne .role "desk" -}}
{{- if $gateway }}
{{- if include "truthlens.socket" . }}
- {name: TRUTHLENS_EXTPROC, value: "unix:/run/truthlens/extproc.sock"}
# Only containers that mount its volume reach it, and Envoy runs as another user.
- {name: TRUTHLENS_SOCKET_MODE, value: "666"}
{{- else }}
{{- $address := ternary "127.0.0.1" "0.0.0.0" (eq .role "sidecar") }}
- {name: TRUTHLENS_EXTPROC, value: "{{ $address }}:18080"}
- {name: TRUTHLENS_HEALTH, value: "{{ $address }}:19080"}
{{- end }}
{{- end }}
- {name: TRUTHLENS_CONSOLE, value: "0.0.0.0:8088"}
{{- if $gateway }}
- {name: TRUTHLENS_DESK, value: {{ not $values.desk.enabled | quote }}}
{{- end }}
{{- range include "truthlens.fileSecrets" . | fromYamlArray }}
{{- if .variable }}
- {name: {{ .variable }}, value: {{ .path }}/{{ .from.key }}}
{{- end }}
{{- end }}
{{- include "truthlens.consoleEnv" $values.console }}
- {name: TRUTHLENS_CONFIG, value: /etc/truthlens/truthlens.yaml}
{{- with $values.upstream }}
- {name: TRUTHLENS_UPSTREAM, value: {{ . | quote }}}
{{- end }}
{{- if eq $values.reviews.storage "postgresql" }}
{{ include "truthlens.secretVariable" (dict "name" "TRUTHLENS_REVIEW_DATABASE" "from" $values.secrets.reviewDatabase) }}
{{- else }}
{{- $file := "sqlite:////var/lib/truthlens/reviews.db" }}
- {name: TRUTHLENS_REVIEW_DATABASE, value: {{ ternary $file "none" (eq $values.reviews.storage "sqlite") | quote }}}
{{- end }}
- {name: XDG_STATE_HOME, value: /var/lib/truthlens}
{{- with $values.modelsFolder }}
- {name: TRUTHLENS_MODELS, value: {{ . | quote }}}
{{- end }}
{{- with int $values.workers }}
- {name: TRUTHLENS_WORKERS, value: {{ . | quote }}}
{{- end }}
{{- with int $values.threads }}
- {name: TRUTHLENS_THREADS, value: {{ . | quote }}}
{{- end }}
{{- with $values.logLevel }}
- {name: TRUTHLENS_LOG_LEVEL, value: {{ . | quote }}}
{{- end }}
{{- if $gateway }}
- {name: TRUTHLENS_DRAIN_NOTICE, value: {{ $values.drain.noticeSeconds | quote }}}
- {name: TRUTHLENS_DRAIN_GRACE, value: {{ $values.drain.graceSeconds | quote }}}
{{- if $values.secrets.redis.existingSecret }}
{{ include "truthlens.secretVariable" (dict "name" "TRUTHLENS_REDIS" "from" $values.secrets.redis) }}
{{- end }}
{{- if $values.secrets.tls.existingSecret }}
- {name: TRUTHLENS_TLS_CERT, value: /etc/truthlens-tls/tls.crt}
- {name: TRUTHLENS_TLS_KEY, value: /etc/truthlens-tls/tls.key}
{{- if $values.secrets.tls.clientCA }}
- {name: TRUTHLENS_TLS_CLIENT_CA, value: /etc/truthlens-tls/ca.crt}
{{- end }}
{{- with $values.secrets.tls.clientNames }}
- {name: TRUTHLENS_TLS_CLIENT_NAME, value: {{ join " " . | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- range $values.secrets.models }}
{{ include "truthlens.secretVariable" (dict "name" .variable "from" .) }}
{{- end }}
{{- end -}}

{{/* Who may use the console; given .Values.console. Several values of one variable are separated by spaces. */}}
{{- define "truthlens.consoleEnv" -}}
{{- if ne .login "token" }}
- {name: TRUTHLENS_CONSOLE_LOGIN, value: {{ .login }}}
{{- end }}
{{- with .hosts }}
- {name: TRUTHLENS_CONSOLE_HOST, value: {{ join " " . | quote }}}
{{- end }}
{{- with .trustedProxies }}
- {name: TRUTHLENS_CONSOLE_TRUSTED_PROXY, value: {{ join " " . | quote }}}
{{- end }}
{{- with .reviewers }}
- {name: TRUTHLENS_CONSOLE_REVIEWER, value: {{ join " " . | quote }}}
{{- end }}
{{- with .reviewerGroups }}
- {name: TRUTHLENS_CONSOLE_REVIEWER_GROUP, value: {{ join " " . | quote }}}
{{- end }}
{{- if eq .login "oidc" }}
- {name: TRUTHLENS_CONSOLE_OIDC_ISSUER, value: {{ .oidc.issuer | quote }}}
- {name: TRUTHLENS_CONSOLE_OIDC_CLIENT_ID, value: {{ .oidc.clientId | quote }}}
{{- end }}
{{- end -}}
