{{/* Name of the objects: the release's, with the chart's where it does not hold it. */}}
{{- define "truthlens.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" (.Release.Name | trunc 40 | trimSuffix "-") .Chart.Name -}}
{{- end -}}
{{- end -}}

{{/* Labels that choose pods: dict "root" $ "component" NAME. The first is always `truthlens`: Prometheus names the job by it. */}}
{{- define "truthlens.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object. */}}
{{- define "truthlens.labels" -}}
{{ include "truthlens.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Name, namespace and labels of an object: dict "root" $ "component" NAME, and "suffix" of its name. */}}
{{- define "truthlens.metadata" -}}
name: {{ include "truthlens.fullname" .root }}{{ with .suffix }}-{{ . }}{{ end }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "truthlens.labels" . | nindent 2 }}
{{- end -}}

{{- define "truthlens.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name by which the Service is reached from another namespace. */}}
{{- define "truthlens.host" -}}
{{ include "truthlens.fullname" . }}.{{ .Release.Namespace }}.svc.cluster.local
{{- end -}}

{{/* The text of the policy, where the chart has it; its own without the two lines that say whence it is copied. */}}
{{- define "truthlens.policy" -}}
{{- .Values.policy.text | default (regexReplaceAll "^(# [^\n]*\n){2}" (.Files.Get "files/policy.yaml") "") -}}
{{- end -}}

{{- define "truthlens.policyName" -}}
{{- .Values.policy.existingConfigMap | default (printf "%s-policy" (include "truthlens.fullname" .)) -}}
{{- end -}}
