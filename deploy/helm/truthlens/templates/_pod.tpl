{{/* What a Deployment makes pods of: dict "root" $ "role" gateway|desk "component" gateway|desk. */}}
{{- define "truthlens.podTemplate" -}}
{{- $values := .root.Values -}}
{{- $labels := include "truthlens.selectorLabels" . | fromYaml -}}
metadata:
  labels:
    {{- toYaml (merge (deepCopy $labels) $values.podLabels) | nindent 4 }}
  {{- $annotations := deepCopy $values.podAnnotations }}
  {{- if $values.policy.rolloutOnChange }}
  {{- $_ := set $annotations "checksum/policy" (include "truthlens.policy" .root | sha256sum) }}
  {{- end }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  # Longer than TRUTHLENS_DRAIN_NOTICE and TRUTHLENS_DRAIN_GRACE together.
  terminationGracePeriodSeconds: {{ int $values.terminationGracePeriodSeconds }}
  automountServiceAccountToken: false
  # Service links would set TRUTHLENS_* variables of their own.
  enableServiceLinks: false
  {{- with $values.serviceAccountName }}
  serviceAccountName: {{ . }}
  {{- end }}
  {{- with $values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    seccompProfile: {type: RuntimeDefault}
  topologySpreadConstraints:
    {{- $default := list (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway") }}
    {{- range $values.topologySpreadConstraints | default $default }}
    - {{- toYaml (merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" $labels))) | nindent 6 }}
    {{- end }}
  {{- range $key := list "nodeSelector" "tolerations" "affinity" }}
  {{- with get $values $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  containers:
    - {{- include "truthlens.container" . | nindent 6 }}
  volumes:
    {{- include "truthlens.volumes" . | nindent 4 }}
{{- end -}}
