{{/*
Ends the rendering where the values would make a deployment that loses data, is open to everyone, or does not work.
Each part has its own rules; values.schema.json has those about a single value.
*/}}
{{- define "truthlens.checks" -}}
{{- include "truthlens.checkMode" . -}}
{{- include "truthlens.checkReplicas" . -}}
{{- include "truthlens.checkConsole" . -}}
{{- include "truthlens.checkDesk" . -}}
{{- include "truthlens.checkGateways" . -}}
{{- include "truthlens.checkNetwork" . -}}
{{- include "truthlens.checkPod" . -}}
{{- include "truthlens.checkAlerts" . -}}
{{- end -}}

{{- define "truthlens.checkMode" -}}
{{- if and .Values.sidecar.socket (ne .Values.mode "sidecar") -}}
{{- fail "sidecar.socket: needs mode sidecar; another pod does not reach a unix socket" -}}
{{- end -}}
{{- if and .Values.secrets.tls.clientNames (not .Values.secrets.tls.clientCA) -}}
{{- fail "secrets.tls.clientNames: needs secrets.tls.clientCA; else no client shows a certificate" -}}
{{- end -}}
{{- if eq .Values.mode "sidecar" -}}
{{- range $switch := list "envoyGateway" "agentRouter" "istio" "autoscaling" "serviceMonitor" -}}
{{- if (get $.Values $switch).enabled -}}
{{- fail (printf "%s.enabled: needs mode service; a sidecar has no Service and no Deployment of its own. Its Envoy reaches it at 127.0.0.1:18080 (truthlens envoy-config)" $switch) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.probes.readiness "grpc" -}}
{{- fail "probes.readiness: a sidecar answers gRPC on 127.0.0.1 only, where the kubelet does not reach it; use http" -}}
{{- end -}}
{{- if semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "mode: sidecar needs Kubernetes 1.29 (init containers that are restarted always); this is %s" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What several processes do not share is lost, or differs between them. */}}
{{- define "truthlens.checkReplicas" -}}
{{- $values := .Values -}}
{{- $pods := int $values.replicaCount -}}
{{- if $values.autoscaling.enabled -}}
{{- $pods = int $values.autoscaling.maxReplicas -}}
{{- if gt (int $values.autoscaling.minReplicas) $pods -}}
{{- fail (printf "autoscaling.minReplicas: %d is more than autoscaling.maxReplicas, %d" (int $values.autoscaling.minReplicas) $pods) -}}
{{- end -}}
{{- end -}}
{{- /* Every pod of Envoy has a sidecar of its own. */ -}}
{{- $several := or (gt $pods 1) (eq $values.mode "sidecar") -}}
{{- $whose := ternary "sidecars, one for each pod of Envoy" (printf "up to %d pods" $pods) (eq $values.mode "sidecar") -}}
{{- if eq $values.reviews.storage "postgresql" -}}
{{- $_ := required "secrets.reviewDatabase.existingSecret: reviews.storage postgresql needs the secret with the database's URL" $values.secrets.reviewDatabase.existingSecret -}}
{{- else if and $several (eq $values.reviews.storage "sqlite") -}}
{{- fail (printf "reviews.storage: sqlite is a file of one pod, and there are %s, each with a queue of its own. Use postgresql or none, or a single replica" $whose) -}}
{{- end -}}
{{- if and $several $values.state.existingClaim -}}
{{- fail (printf "state.existingClaim: the volume is for one pod, and there are %s" $whose) -}}
{{- end -}}
{{- if and $several (not $values.secrets.redis.existingSecret) -}}
{{- if $values.policy.existingConfigMap -}}
{{- if $values.policy.sharesState -}}
{{- fail (printf "secrets.redis.existingSecret: policy.sharesState says that the policy shares state, and there are %s: they need Redis" $whose) -}}
{{- end -}}
{{- else -}}
{{- $policy := include "truthlens.policy" . | fromYaml -}}
{{- if include "truthlens.usesAuto" $policy -}}
{{- fail (printf "secrets.redis.existingSecret: the policy has mode auto, and there are %s, of which each would learn for itself: they need Redis" $whose) -}}
{{- end -}}
{{- $cache := $policy.cache | default dict -}}
{{- if and (dig "enabled" true $cache) (dig "redis" false $cache) -}}
{{- fail (printf "secrets.redis.existingSecret: the policy says cache.redis: true, and there are %s without a Redis. Name its secret, or say cache.redis: false" $whose) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Not empty if a plan of the policy has mode auto. */}}
{{- define "truthlens.usesAuto" -}}
{{- if .Error -}}
{{- fail (printf "policy.text: no YAML: %s" .Error) -}}
{{- end -}}
{{- $configurations := list (.hallucination | default dict) -}}
{{- range .decisions -}}
{{- range .plugins -}}
{{- $configurations = append $configurations (.configuration | default dict) -}}
{{- end -}}
{{- end -}}
{{- range $configurations -}}
{{- if or (eq (toString .mode) "auto") (eq (toString .default_mode) "auto") -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "truthlens.checkConsole" -}}
{{- $console := .Values.console -}}
{{- $secrets := .Values.secrets -}}
{{- if eq $console.login "none" -}}
{{- fail "console.login: none is for a console on 127.0.0.1, and probes need one at the pod's address; use token, proxy or oidc" -}}
{{- else if eq $console.login "token" -}}
{{- $_ := required "secrets.consoleToken.existingSecret: console.login token needs it" $secrets.consoleToken.existingSecret -}}
{{- else if eq $console.login "proxy" -}}
{{- if not $console.trustedProxies -}}
{{- fail "console.trustedProxies: console.login proxy needs the addresses of the proxies whose headers are believed" -}}
{{- end -}}
{{- else -}}
{{- $_ := required "console.oidc.issuer: console.login oidc needs it" $console.oidc.issuer -}}
{{- $_ := required "console.oidc.clientId: console.login oidc needs it" $console.oidc.clientId -}}
{{- $_ := required "secrets.oidcClientSecret.existingSecret: console.login oidc needs it" $secrets.oidcClientSecret.existingSecret -}}
{{- end -}}
{{- end -}}

{{- define "truthlens.checkDesk" -}}
{{- if .Values.desk.enabled -}}
{{- if eq .Values.reviews.storage "sqlite" -}}
{{- fail "desk.enabled: the desk reads the review queue of other pods, and reviews.storage sqlite is a file of one; use postgresql" -}}
{{- end -}}
{{- if and (gt (int .Values.desk.replicaCount) 1) (not .Values.secrets.consoleSessionKey.existingSecret) -}}
{{- fail "secrets.consoleSessionKey.existingSecret: several pods of the desk need it, or each logs out the users of the others" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "truthlens.checkGateways" -}}
{{- $values := .Values -}}
{{- $tls := $values.secrets.tls.existingSecret -}}
{{- if and $tls (or $values.envoyGateway.enabled $values.agentRouter.enabled) (not $values.envoyGateway.backendTLSPolicyExists) -}}
{{- fail "envoyGateway.backendTLSPolicyExists: with secrets.tls Envoy Gateway needs a BackendTLSPolicy for the Service; make one, then say so" -}}
{{- end -}}
{{- if and $values.envoyGateway.statusOnError $values.envoyGateway.failOpen -}}
{{- fail "envoyGateway.statusOnError: with failOpen true there is no error" -}}
{{- end -}}
{{- if and $values.agentRouter.enabled (not $values.agentRouter.routes) -}}
{{- fail "agentRouter.routes: names of AIGatewayRoutes are needed" -}}
{{- end -}}
{{- if $values.inferencePool.enabled -}}
{{- $_ := required "inferencePool.name: the name of the InferencePool is needed" $values.inferencePool.name -}}
{{- if not $values.inferencePool.parentRefs -}}
{{- fail "inferencePool.parentRefs: the gateways of the routes are needed" -}}
{{- end -}}
{{- if not $values.envoyGateway.enabled -}}
{{- fail "inferencePool.enabled: needs envoyGateway.enabled, or its route would mark every answer as unchecked" -}}
{{- end -}}
{{- end -}}
{{- if $values.istio.enabled -}}
{{- if not $values.istio.routes -}}
{{- fail "istio.routes: names of the routes whose answers are checked are needed; the filter is off on all others" -}}
{{- end -}}
{{- $mode := $values.istio.tlsMode -}}
{{- if and $tls (eq $mode "DISABLE") -}}
{{- fail "istio.tlsMode: DISABLE does not fit secrets.tls; use SIMPLE, or MUTUAL" -}}
{{- else if and (not $tls) (has $mode (list "SIMPLE" "MUTUAL")) -}}
{{- fail (printf "istio.tlsMode: %s needs secrets.tls" $mode) -}}
{{- else if and (has $mode (list "SIMPLE" "MUTUAL")) (not $values.istio.credentialName) -}}
{{- fail (printf "istio.credentialName: istio.tlsMode %s needs it, or the gateway trusts no certificate, or any" $mode) -}}
{{- else if and $values.secrets.tls.clientCA (eq $mode "SIMPLE") -}}
{{- fail "istio.tlsMode: secrets.tls.clientCA asks for the gateway's certificate; use MUTUAL" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "truthlens.checkNetwork" -}}
{{- $values := .Values -}}
{{- $network := $values.networkPolicy -}}
{{- if $network.enabled -}}
{{- if and (eq $values.mode "service") (not $network.envoy) -}}
{{- fail "networkPolicy.envoy: without the peers of Envoy nothing could reach the processor" -}}
{{- end -}}
{{- if and (eq $values.mode "sidecar") (not $values.desk.enabled) -}}
{{- fail "networkPolicy.enabled: a sidecar is in the pods of Envoy; their policy belongs to whoever runs Envoy" -}}
{{- end -}}
{{- if and $values.desk.enabled (not $network.operators) -}}
{{- fail "networkPolicy.operators: without peers nobody could open the desk" -}}
{{- end -}}
{{- if and (eq $values.reviews.storage "postgresql") (not $network.database.to) -}}
{{- fail "networkPolicy.database.to: reviews.storage is postgresql; say where the database is" -}}
{{- end -}}
{{- if and (eq $values.console.login "oidc") (not $network.models) -}}
{{- fail "networkPolicy.models: console.login is oidc; say where the provider is" -}}
{{- end -}}
{{- if and $values.secrets.redis.existingSecret (not $network.redis.to) -}}
{{- fail "networkPolicy.redis.to: secrets.redis is set; say where Redis is" -}}
{{- end -}}
{{- $scaled := and $values.autoscaling.enabled (ne $values.autoscaling.type "cpu") -}}
{{- if and (or $values.serviceMonitor.enabled $scaled) (not $network.prometheus) -}}
{{- fail "networkPolicy.prometheus: without its peers Prometheus could not read /metrics" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "truthlens.checkPod" -}}
{{- $values := .Values -}}
{{- $drain := addf $values.drain.noticeSeconds $values.drain.graceSeconds -}}
{{- if ge $drain (float64 $values.terminationGracePeriodSeconds) -}}
{{- fail (printf "terminationGracePeriodSeconds: %v is not more than drain.noticeSeconds and drain.graceSeconds together, %v: exchanges would be cut" $values.terminationGracePeriodSeconds $drain) -}}
{{- end -}}
{{- if and (eq $values.probes.readiness "grpc") $values.secrets.tls.existingSecret -}}
{{- fail "probes.readiness: the kubelet asks by gRPC without TLS, and secrets.tls is set; use http" -}}
{{- end -}}
{{- if and $values.policy.existingConfigMap (or $values.policy.text $values.policy.rolloutOnChange) -}}
{{- fail "policy.existingConfigMap: the chart does not know its content; leave policy.text and policy.rolloutOnChange out" -}}
{{- end -}}
{{- $own := dict -}}
{{- range $role := list "gateway" "desk" -}}
{{- range include "truthlens.env" (dict "root" $ "role" $role) | fromYamlArray -}}
{{- $_ := set $own .name true -}}
{{- end -}}
{{- end -}}
{{- range $values.extraEnv -}}
{{- if hasKey $own .name -}}
{{- fail (printf "extraEnv: %s is set by the chart; change the value that it comes from" .name) -}}
{{- end -}}
{{- if has .name (list "TRUTHLENS_CONSOLE_TOKEN" "TRUTHLENS_CONSOLE_OIDC_CLIENT_SECRET" "TRUTHLENS_CONSOLE_LOGIN") -}}
{{- fail (printf "extraEnv: %s: use console.login and secrets" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A change to an alert that there is not would be lost in silence. */}}
{{- define "truthlens.checkAlerts" -}}
{{- $names := list -}}
{{- range (.Files.Get "files/rules.yaml" | fromYaml).groups -}}
{{- range .rules -}}
{{- $names = append $names (.alert | default "") -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := .Values.prometheusRule.alerts -}}
{{- if not (has $name $names) -}}
{{- fail (printf "prometheusRule.alerts: there is no alert %s; there are %s" $name (without $names "" | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
