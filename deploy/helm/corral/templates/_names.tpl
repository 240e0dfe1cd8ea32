{{- define "corral.name" -}}
{{- if contains "corral" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-corral" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "corral.selector" -}}
app.kubernetes.io/name: corral
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "corral.labels" -}}
{{ include "corral.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "corral.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "corral.jobsNamespace" -}}
{{ .Values.jobs.namespace | default .Release.Namespace }}
{{- end }}

{{/* Every namespace of jobs, as JSON: that of all others, and those of groups. */}}
{{- define "corral.jobsNamespaces" -}}
{{- $namespaces := list (include "corral.jobsNamespace" .) }}
{{- range (default dict (default dict .Values.cluster.kubernetes).group_namespaces) }}
{{- $namespaces = append $namespaces . }}
{{- end }}
{{- toJson (uniq $namespaces) }}
{{- end }}

{{- define "corral.claim" -}}
{{ .Values.home.existingClaim | default (printf "home-%s-0" (include "corral.name" .)) }}
{{- end }}

{{/* Passes the `restricted` Pod Security Standard. */}}
{{- define "corral.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "corral.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}
