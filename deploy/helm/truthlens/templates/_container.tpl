{{/* The container: dict "root" $ "role" gateway|sidecar|desk. */}}
{{- define "truthlens.container" -}}
{{- $values := .root.Values -}}
{{- $gateway := ne .role "desk" -}}
{{- $prefix := include "truthlens.volumePrefix" . -}}
name: truthlens
image: {{ include "truthlens.image" .root }}
{{- with $values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
args: [{{ ternary "serve" "desk" $gateway }}]
env:
  {{- include "truthlens.env" . | trim | nindent 2 }}
  {{- with $values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  {{- if and $gateway (not (include "truthlens.socket" .)) }}
  - {name: grpc, containerPort: 18080}
  - {name: health, containerPort: 19080}
  {{- end }}
  - {name: console, containerPort: 8088}
resources:
  {{- toYaml (ternary $values.resources $values.desk.resources $gateway) | nindent 2 }}
# The console opens once policy and model are loaded.
startupProbe:
  httpGet: {path: /healthz, port: console}
  periodSeconds: 2
  failureThreshold: {{ int $values.probes.startupFailureThreshold }}
readinessProbe:
  {{- if and $gateway (eq $values.probes.readiness "grpc") }}
  grpc: {port: 19080}
  {{- else }}
  httpGet: {path: /readyz, port: console}
  {{- end }}
  periodSeconds: 2
  timeoutSeconds: 2
# By HTTP in any case: health says NOT_SERVING while a process drains, and that is no reason to kill it.
livenessProbe:
  httpGet: {path: /healthz, port: console}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
  {{- if eq .role "sidecar" }}
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
  {{- end }}
volumeMounts:
  # The whole folder: a file mounted with subPath is never updated.
  - {name: {{ $prefix }}policy, mountPath: /etc/truthlens, readOnly: true}
  {{- range include "truthlens.fileSecrets" . | fromYamlArray }}
  - {name: {{ $prefix }}{{ .volume }}, mountPath: {{ .path }}, readOnly: true}
  {{- end }}
  {{- if include "truthlens.socket" . }}
  - {name: {{ $prefix }}socket, mountPath: /run/truthlens}
  {{- end }}
  - {name: {{ $prefix }}tmp, mountPath: /tmp}
  - {name: {{ $prefix }}state, mountPath: /var/lib/truthlens}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Not empty if ext_proc is a unix socket. */}}
{{- define "truthlens.socket" -}}
{{- if and .root.Values.sidecar.socket (eq .role "sidecar") }}true{{ end -}}
{{- end -}}

{{/* Before the names of volumes: a patch would merge a sidecar's with those of the same name in Envoy's pod. */}}
{{- define "truthlens.volumePrefix" -}}
{{- if eq .role "sidecar" }}truthlens-{{ end -}}
{{- end -}}

{{/* The volumes of a pod with the container. */}}
{{- define "truthlens.volumes" -}}
{{- $prefix := include "truthlens.volumePrefix" . -}}
- name: {{ $prefix }}policy
  configMap: {name: {{ include "truthlens.policyName" .root }}}
{{- range include "truthlens.fileSecrets" . | fromYamlArray }}
- name: {{ $prefix }}{{ .volume }}
  secret: {secretName: {{ .from.existingSecret }}}
{{- end }}
{{- if include "truthlens.socket" . }}
- name: {{ $prefix }}socket
  emptyDir: {sizeLimit: 1Mi}
{{- end }}
- name: {{ $prefix }}tmp
  emptyDir: {sizeLimit: 64Mi}
- name: {{ $prefix }}state
  {{- if and .root.Values.state.existingClaim (eq .role "gateway") }}
  persistentVolumeClaim: {claimName: {{ .root.Values.state.existingClaim }}}
  {{- else }}
  emptyDir: {sizeLimit: {{ .root.Values.state.sizeLimit }}}
  {{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
