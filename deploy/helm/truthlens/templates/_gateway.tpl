{{/* What an answer says while no pod can be asked; TruthLens overwrites it. */}}
{{- define "truthlens.failOpenHeaders" -}}
- {name: x-truthlens-enabled, value: "false"}
- {name: x-truthlens-status, value: unchecked}
- {name: x-truthlens-reason, value: unavailable}
{{- end -}}

{{/* Headers that no backend may set; the first three where no processor sets them, either. */}}
{{- define "truthlens.verdictHeaders" -}}
- x-truthlens-mode
- x-truthlens-score
- x-truthlens-detected
- x-truthlens-iterations
- x-truthlens-latency-ms
- x-truthlens-decision
- x-truthlens-action
- x-truthlens-shadow-action
- x-truthlens-risk
- x-truthlens-initial-score
- x-truthlens-review-id
{{- end -}}

{{/* An EnvoyExtensionPolicy: dict "root" $ "suffix" OF_ITS_NAME "targets" [REFERENCES]. */}}
{{- define "truthlens.extensionPolicy" -}}
{{- $gateway := .root.Values.envoyGateway -}}
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyExtensionPolicy
metadata:
  {{- include "truthlens.metadata" (dict "root" .root "component" "gateway" "suffix" .suffix) | nindent 2 }}
spec:
  targetRefs:
    {{- toYaml .targets | nindent 4 }}
  extProc:
    - backendRefs: [{name: {{ include "truthlens.fullname" .root }}, port: 18080}]
      messageTimeout: {{ $gateway.messageTimeout }}
      failOpen: {{ $gateway.failOpen }}
      {{- with int $gateway.statusOnError }}
      statusOnError: {{ . }}
      {{- end }}
      processingMode:
        request: {body: Buffered, attributes: [request.id, xds.route_name]}
        # No body: TruthLens asks for the body of each answer that it can score.
        response: {}
        allowModeOverride: true
      metadata: {writableNamespaces: [truthlens]}
      backendSettings:
        loadBalancer: {type: LeastRequest}
        # Every exchange holds a stream for as long as the model writes; the default is 1024.
        circuitBreaker: {maxConnections: 10000, maxPendingRequests: 10000, maxParallelRequests: 10000}
        healthCheck:
          # Never to a process that said it is draining.
          panicThreshold: 0
          active: {type: GRPC, interval: 1s, timeout: 1s, unhealthyThreshold: 2, healthyThreshold: 1}
{{- end -}}
