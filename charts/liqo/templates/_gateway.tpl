{{/* Affinity for all nodes but virtual ones. */}}
{{- define "liqo.physicalNodes" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: liqo.io/type
            operator: NotIn
            values: [virtual-node]
{{- end -}}

{{/* Labels by which the pods of a gateway are found. */}}
{{- define "liqo.gatewayLabels" -}}
networking.liqo.io/component: gateway
networking.liqo.io/gateway-name: "{{ "{{ .Name }}" }}"
{{- end -}}

{{/*
What a gateway is rendered from, the content of spec.template of a WgGatewayServerTemplate or WgGatewayClientTemplate; takes a list of the
root and the mode, server or client. Texts in double braces that are quoted here are rendered by the controller manager, for each gateway.
*/}}
{{- define "liqo.gatewayTemplate" -}}
{{- $root := index . 0 -}}{{- $mode := index . 1 -}}
{{- $gateways := $root.Values.networking.gatewayTemplates -}}
{{- $container := $gateways.container.gateway -}}
metadata:
  name: "{{ "{{ .Name }}" }}"
  namespace: "{{ "{{ .Namespace }}" }}"
spec:
  secretRef:
    name: "{{ "{{ .SecretName }}" }}"
  {{- if eq $mode "server" }}
  service:
    {{- with $gateways.server.service.annotations }}
    metadata:
      annotations:
        {{- toYaml . | nindent 8 }}
    {{- end }}
    spec:
      type: "{{ "{{ .Spec.Endpoint.ServiceType }}" }}"
      selector:
        {{- include "liqo.gatewayLabels" $root | nindent 8 }}
      "?loadBalancerIP": "{{ "{{ .Spec.Endpoint.LoadBalancerIP }}" }}"
      {{- with $gateways.server.service.allocateLoadBalancerNodePorts }}
      {{- /* Kubernetes refuses the field where there is no load balancer. */}}
      "?allocateLoadBalancerNodePorts": "{{ printf "{{ if eq .Spec.Endpoint.ServiceType \\\"LoadBalancer\\\" }}%s{{ end }}" . }}"
      {{- end }}
      ports:
        - name: wireguard
          port: "{{ "{{ .Spec.Endpoint.Port }}" }}"
          targetPort: wireguard
          protocol: UDP
          "?nodePort": "{{ "{{ if .Spec.Endpoint.NodePort }}{{ .Spec.Endpoint.NodePort }}{{ end }}" }}"
  {{- end }}
  deployment:
    metadata:
      name: "{{ "gw-{{ .Name }}" }}"
    spec:
      replicas: {{ $gateways.replicas }}
      selector:
        matchLabels:
          {{- include "liqo.gatewayLabels" $root | nindent 10 }}
      # The earlier pod has the tunnel until the next one runs, which stands by as long as it is not named in the gateway's status.
      strategy:
        type: RollingUpdate
        rollingUpdate:
          maxUnavailable: 0
          maxSurge: 1
      template:
        metadata:
          labels:
            {{- include "liqo.gatewayLabels" $root | nindent 12 }}
        spec:
          serviceAccountName: "{{ "gw-{{ .Name }}" }}"
          {{- with $root.Values.imagePullSecrets }}
          imagePullSecrets:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with default $root.Values.priorityClass.name $gateways.pod.priorityClassName }}
          priorityClassName: {{ . }}
          {{- end }}
          enableServiceLinks: false
          # Capabilities take effect for root alone.
          securityContext:
            runAsUser: 0
            runAsGroup: 0
            seccompProfile:
              type: RuntimeDefault
          containers:
            - name: gateway
              image: {{ include "liqo.image" (list $root $container.image) }}
              imagePullPolicy: {{ $root.Values.pullPolicy }}
              command: ["/usr/bin/liqo-gateway"]
              args:
                - "{{ "--name={{ .Name }}" }}"
                - "{{ "--namespace={{ .Namespace }}" }}"
                - "{{ "--remote-cluster-id={{ .ClusterID }}" }}"
                - --liqo-namespace={{ $root.Release.Namespace }}
                - --mode={{ $mode }}
                - --overlay-port={{ $root.Values.networking.genevePort }}
                - --listen-port=51840
                - --keys=/etc/liqo/keys
                {{- if $root.Values.metrics.enabled }}
                - --metrics-port=8082
                {{- if $root.Values.metrics.plainHTTP }}
                - --metrics-plain-http
                {{- end }}
                {{- end }}
              env:
                {{- range $variable, $field := dict "POD_IP" "status.podIP" "HOST_IP" "status.hostIP" "NODE_NAME" "spec.nodeName" }}
                - name: {{ $variable }}
                  valueFrom:
                    fieldRef:
                      fieldPath: {{ $field }}
                {{- end }}
                {{- if (($container.resources).limits).memory }}
                - name: GOMEMLIMIT
                  valueFrom:
                    resourceFieldRef:
                      resource: limits.memory
                      divisor: "1"
                {{- end }}
              ports:
                - name: wireguard
                  containerPort: 51840
                  protocol: UDP
                {{- if $root.Values.metrics.enabled }}
                - name: metrics
                  containerPort: 8082
                {{- end }}
              # Ready once what the gateway needs is in the kernel.
              readinessProbe:
                exec:
                  command: ["/usr/bin/liqo-gateway", "health"]
                periodSeconds: 5
                timeoutSeconds: 5
              resources:
                {{- toYaml $container.resources | nindent 16 }}
              securityContext:
                allowPrivilegeEscalation: false
                readOnlyRootFilesystem: true
                capabilities:
                  drop: [ALL]
                  add: [NET_ADMIN]
              volumeMounts:
                - name: keys
                  mountPath: /etc/liqo/keys
                  readOnly: true
                - name: tun
                  mountPath: /dev/net/tun
          volumes:
            - name: keys
              secret:
                secretName: "{{ "{{ .SecretName }}" }}"
                defaultMode: 256
            # For WireGuard in user space, where the kernel has none.
            - name: tun
              hostPath:
                path: /dev/net/tun
                type: CharDevice
          {{- with $gateways.pod.nodeSelector }}
          nodeSelector:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $gateways.pod.tolerations }}
          tolerations:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          affinity:
            {{- toYaml (default (include "liqo.physicalNodes" $root | fromYaml) $gateways.pod.affinity) | nindent 12 }}
{{- end -}}
