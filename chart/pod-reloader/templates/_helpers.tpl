{{/* The name of every object: the release's, which by default is pod-reloader. */}}
{{- define "pod-reloader.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{/* The label matchers of the series that are scraped through the monitor of the chart. Empty without a monitor, or where it sets these
labels otherwise. */}}
{{- define "pod-reloader.scrapedLabels" -}}
{{- $job := "" -}}
{{- $relabelings := list -}}
{{- with .Values.metrics.serviceMonitor }}{{ if .enabled -}}
{{- $job = printf "%s-metrics" (include "pod-reloader.name" $) -}}
{{- $relabelings = concat (.relabelings | default list) (.metricRelabelings | default list) -}}
{{- end }}{{ end -}}
{{- with .Values.metrics.podMonitor }}{{ if .enabled -}}
{{- $job = printf "%s/%s" (.namespace | default $.Release.Namespace) (include "pod-reloader.name" $) -}}
{{- $relabelings = concat (.relabelings | default list) (.metricRelabelings | default list) -}}
{{- end }}{{ end -}}
{{- range $relabelings }}{{ if has .targetLabel (list "job" "namespace") }}{{ $job = "" }}{{ end }}{{ end -}}
{{- with $job }}{namespace={{ quote $.Release.Namespace }}, job={{ quote . }}}{{ end -}}
{{- end }}

{{- define "pod-reloader.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "pod-reloader.name" .) -}}
{{- end }}

{{/* Not empty where pod-reloader makes the certificate itself. */}}
{{- define "pod-reloader.selfManaged" -}}
{{- if and .Values.webhook.enabled (eq .Values.webhook.certificates.mode "self-managed") }}true{{ end -}}
{{- end }}

{{/* The Secret with the digest key. */}}
{{- define "pod-reloader.digestKey" -}}
{{- .Values.digestKey.existingSecret | default "pod-reloader-digest-key" -}}
{{- end }}

{{/* The Secret with the certificate that the pods mount; empty where they mount none. */}}
{{- define "pod-reloader.tlsSecret" -}}
{{- if and .Values.webhook.enabled (not (include "pod-reloader.selfManaged" .)) -}}
{{- .Values.webhook.certificates.existingSecret | default (printf "%s-tls" (include "pod-reloader.name" .)) -}}
{{- end -}}
{{- end }}

{{/* The ConfigMap with the CA certificates for callers of the webhook; empty where they need no certificate. */}}
{{- define "pod-reloader.clientCA" -}}
{{- if .Values.webhook.enabled }}{{ .Values.webhook.clientCA.configMap | default "" }}{{ end -}}
{{- end }}

{{/* The reference of the image: a digest takes precedence over the tag. */}}
{{- define "pod-reloader.image" -}}
{{- with (.Values.global).imageRegistry | default .Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end }}

{{/* The Secrets for the registry, as in a Pod, each once: server-side apply refuses two items of the same name. Some parent charts list
names. */}}
{{- define "pod-reloader.imagePullSecrets" -}}
{{- $secrets := list -}}
{{- range concat ((.Values.global).imagePullSecrets | default list) (.Values.imagePullSecrets | default list) -}}
{{- if kindIs "map" . }}{{ $secrets = append $secrets (dict "name" (toString .name)) }}{{ else }}{{ $secrets = append $secrets (dict "name" .) }}{{ end -}}
{{- end -}}
{{- with uniq $secrets }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* The security context of the pods, without fixed IDs where the cluster assigns them. */}}
{{- define "pod-reloader.podSecurityContext" -}}
{{- $assigned := eq .Values.openshift "enabled" -}}
{{- if and (eq .Values.openshift "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1") }}{{ $assigned = true }}{{ end -}}
{{- if $assigned -}}
{{- omit (.Values.podSecurityContext | default dict) "runAsUser" "runAsGroup" "fsGroup" | toYaml -}}
{{- else -}}
{{- toYaml .Values.podSecurityContext -}}
{{- end -}}
{{- end }}

{{/* The namespace of the Deployment that `helm test` creates by a dry run; empty where the webhook is not called for it, or where that
depends on labels of the namespace, which are not known. */}}
{{- define "pod-reloader.testNamespace" -}}
{{- $namespace := .Values.test.namespace | default (first (.Values.namespaces | default list)) | default .Release.Namespace -}}
{{- $excluded := has $namespace (ternary (list) (prepend (.Values.namespacesToIgnore | default list) "kube-system") (not (empty .Values.namespaces))) -}}
{{- if not (or $excluded (and .Values.namespaceSelector (not .Values.test.namespace))) }}{{ $namespace }}{{ end -}}
{{- end }}

{{/* Not empty where objectSelector selects the Deployment of the check, whose labels are test.labels, or else the matchLabels. */}}
{{- define "pod-reloader.selectsTest" -}}
{{- $labels := .Values.test.labels | default (.Values.objectSelector).matchLabels | default dict -}}
{{- $left := false -}}
{{- range $key, $value := (.Values.objectSelector).matchLabels -}}
{{- if ne (get $labels $key | toString) ($value | toString) }}{{ $left = true }}{{ end -}}
{{- end -}}
{{- range (.Values.objectSelector).matchExpressions -}}
{{- $has := hasKey $labels .key -}}
{{- $in := and $has (has (get $labels .key) (.values | default list)) -}}
{{- if or (and (eq .operator "In") (not $in)) (and (eq .operator "NotIn") $in) (and (eq .operator "Exists") (not $has)) (and (eq .operator "DoesNotExist") $has) }}{{ $left = true }}{{ end -}}
{{- end -}}
{{- if not $left }}true{{ end -}}
{{- end }}

{{/* Not empty where the chart has the pod of `helm test`: it may have permissions, and the webhook is called for its Deployment. */}}
{{- define "pod-reloader.hasTest" -}}
{{- if and .Values.webhook.enabled .Values.rbac.create (include "pod-reloader.testNamespace" .) (include "pod-reloader.selectsTest" .) }}true{{ end -}}
{{- end }}

{{/* podDisruptionBudget.minAvailable, a number or a percentage; empty where it is removed by null. 0 stays 0. */}}
{{- define "pod-reloader.minAvailable" -}}
{{- with .Values.podDisruptionBudget }}{{ if not (kindIs "invalid" .minAvailable) }}{{ .minAvailable }}{{ end }}{{ end -}}
{{- end }}

{{/* The annotations of an object, if it has any; the labels are right before them. */}}
{{- define "pod-reloader.annotations" -}}
{{- with . }}
  annotations: {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{- define "pod-reloader.selectorLabels" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "pod-reloader" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "pod-reloader.labels" -}}
{{ include "pod-reloader.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The rules for workloads and config objects, in the ClusterRole or in a Role of each namespace. */}}
{{- define "pod-reloader.rules" -}}
# list, watch: to see that configuration changed (metadata only). get: to read the content whose digest is needed.
- apiGroups: [""]
  resources: [configmaps{{ if .Values.secrets.enabled }}, secrets{{ end }}]
  verbs: [get, list, watch]
# To know which workload tracks which configuration, and to send reload requests.
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets]
  verbs: [get, list, watch, patch]
{{- if not .Values.reloader.ignoreCronJobs }}
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if include "pod-reloader.followsJobs" . }}
# To report the Jobs whose configuration changed.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
{{- end }}
# To report what was done and why; list is for a new leader, which writes the Events that are missing, and for `why`.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, list, patch]
{{- if .Values.reloader.runCronJobs }}
# create: the Job of a run at once. list: to honour concurrencyPolicy. delete: the active Jobs that a run replaces.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, list, delete]
{{- end }}
{{- if .Values.reloader.recreateJobs }}
# get, delete, create: the Job. patch: the managed annotations of Jobs that the webhook has not seen, and last-reload.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, create, patch, delete]
{{- end }}
{{- if .Values.reloader.isArgoRollouts }}
# list, watch: to know which workload tracks which configuration. patch: to send reload requests.
- apiGroups: [argoproj.io]
  resources: [rollouts]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if .Values.reloader.isOpenshift }}
# list, watch: to know which workload tracks which configuration. patch: to send reload requests.
- apiGroups: [apps.openshift.io]
  resources: [deploymentconfigs]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if .Values.reloader.enableCSIIntegration }}
# The statuses have the versions that pods have mounted, the classes have annotations. Neither has a secret.
- apiGroups: [secrets-store.csi.x-k8s.io]
  resources: [secretproviderclasses, secretproviderclasspodstatuses]
  verbs: [list, watch]
{{- end }}
{{- range .Values.workloadKinds }}
# list, watch: to know which workload tracks which configuration. patch: to send reload requests.
- apiGroups: [{{ include "pod-reloader.group" . | quote }}]
  resources: [{{ .resource | quote }}]
  verbs: [get, list, watch, patch]
{{- end }}
{{- range .Values.referents }}
{{- if not (and $.Values.namespaces (eq (default "" .scope) "Cluster")) }}
{{- include "pod-reloader.referentRule" . }}
{{- end }}
{{- end }}
{{- end }}

{{/* The rules for custom resources without namespace where the others are in Roles, which cannot grant them; empty if there are none. */}}
{{- define "pod-reloader.clusterRules" -}}
{{- if .Values.namespaces }}
{{- range .Values.referents }}
{{- if eq (default "" .scope) "Cluster" }}
{{- include "pod-reloader.referentRule" . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Not empty where Events about published custom resources without namespace need a Role of their own: the API has them in the
namespace default. */}}
{{- define "pod-reloader.eventsInDefault" -}}
{{- if and .Values.namespaces (not (has "default" (append .Values.namespaces .Release.Namespace))) }}
{{- range .Values.referents }}{{ if and .publish (eq (default "" .scope) "Cluster") }}true{{ end }}{{ end }}
{{- end }}
{{- end }}

{{/* The rule for an item of referents, on a line of its own. */}}
{{- define "pod-reloader.referentRule" }}
# To follow what it refers to{{ if .publish }}; patch: to publish its checksum{{ end }}.
- apiGroups: [{{ .gvr.group | quote }}]
  resources: [{{ .gvr.resource | quote }}]
  verbs: [get, list, watch{{ if .publish }}, patch{{ end }}]
{{- end }}

{{/* Not empty where Jobs are followed: only the annotations of Reloader ask for that. */}}
{{- define "pod-reloader.followsJobs" -}}
{{- if and .Values.reloader.enabled (not .Values.reloader.ignoreJobs) }}true{{ end -}}
{{- end }}

{{/* The prefix of the annotations, with the slash that the flag may leave out. */}}
{{- define "pod-reloader.prefix" -}}
{{- trimSuffix "/" .Values.annotationPrefix -}}/
{{- end }}

{{/* An annotation of the release's own Deployment or of its pods for which the webhook is called; empty if there is none. */}}
{{- define "pod-reloader.ownAnnotation" -}}
{{- $found := "" -}}
{{- range $value := list "commonAnnotations" "podAnnotations" -}}
{{- range $key, $text := index $.Values $value -}}
{{- $reloaders := and $.Values.reloader.enabled (or (contains "reloader.stakater.com/" $key) (has $key (values ($.Values.reloader.annotations | default dict)))) -}}
{{- if or $reloaders (hasPrefix (include "pod-reloader.prefix" $) $key) }}{{ $found = printf "the annotation %s in %s" $key $value }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $found -}}
{{- end }}

{{/* The flags that say which workloads and objects are handled, and by which annotations, as a list in JSON: flags of the Deployment. */}}
{{- define "pod-reloader.workloadFlags" -}}
{{- $flags := list -}}
{{- with .Values.namespaces }}{{ $flags = append $flags (printf "--namespaces=%s" (join "," .)) }}{{ end -}}
{{- with .Values.namespacesToIgnore }}{{ $flags = append $flags (printf "--namespaces-to-ignore=%s" (join "," .)) }}{{ end -}}
{{- with .Values.namespaceSelector }}{{ $flags = append $flags (printf "--namespace-selector=%s" (include "pod-reloader.selectorFlag" .)) }}{{ end -}}
{{- with .Values.objectSelector }}{{ $flags = append $flags (printf "--object-selector=%s" (include "pod-reloader.selectorFlag" .)) }}{{ end -}}
{{- if or .Values.workloadKinds .Values.referents }}{{ $flags = append $flags (include "pod-reloader.configFlag" .) }}{{ end -}}
{{- with include "pod-reloader.prefixFlag" . }}{{ $flags = append $flags . }}{{ end -}}
{{- if not .Values.reloader.enabled }}{{ $flags = append $flags "--stakater-annotations=false" }}{{ end -}}
{{- with include "pod-reloader.ignoredTypes" . }}{{ $flags = append $flags (printf "--ignored-workload-types=%s" .) }}{{ end -}}
{{- if .Values.reloader.isArgoRollouts }}{{ $flags = append $flags "--is-Argo-Rollouts" }}{{ end -}}
{{- if .Values.reloader.isOpenshift }}{{ $flags = append $flags "--is-openshift" }}{{ end -}}
{{- if .Values.reloader.autoReloadAll }}{{ $flags = append $flags "--auto-reload-all" }}{{ end -}}
{{- if .Values.reloader.enableCSIIntegration }}{{ $flags = append $flags "--enable-csi-integration" }}{{ end -}}
{{- range $flag, $key := .Values.reloader.annotations }}{{ $flags = append $flags (printf "--%s=%s" $flag $key) }}{{ end -}}
{{- with .Values.digestKey.existingSecret }}{{ $flags = append $flags (printf "--digest-key-secret=%s" .) }}{{ end -}}
{{- if not .Values.secrets.enabled }}{{ $flags = append $flags "--secrets=false" }}{{ end -}}
{{- toJson $flags -}}
{{- end }}

{{- define "pod-reloader.configFlag" -}}
--config=configmap:{{ .Release.Namespace }}/{{ include "pod-reloader.name" . }}
{{- end }}

{{/* Empty for the prefix that is the default of the program. */}}
{{- define "pod-reloader.prefixFlag" -}}
{{- $prefix := include "pod-reloader.prefix" . -}}
{{- if ne $prefix "pod-reloader.cs.sap.com/" }}--annotation-prefix={{ $prefix }}{{ end -}}
{{- end }}

{{/* The name of the flag in an item of args; empty for the value of the flag in the item before. */}}
{{- define "pod-reloader.flagOf" -}}
{{- if hasPrefix "-" . }}{{ (split "=" (trimPrefix "-" (trimPrefix "-" .)))._0 }}{{ end -}}
{{- end }}

{{/* The flags of the command why, as a list in JSON. It takes those of the installation from its Deployment, and the name of this from that
of its pod, which Kubernetes shortens: of the 58 characters before the random part, a hyphen, the hash of up to 10 characters and another
hyphen leave 46 for the name of the Deployment. */}}
{{- define "pod-reloader.whyFlags" -}}
{{- $name := include "pod-reloader.name" . -}}
{{- if gt (len $name) 46 }}{{ list (printf "--installation-name=%s" $name) | toJson }}{{ else }}[]{{ end -}}
{{- end }}

{{/* The flags of the command check, as a list in JSON: a Deployment that the webhook stamps, and with referents the permissions on them. */}}
{{- define "pod-reloader.checkFlags" -}}
{{- $flags := list -}}
{{- with include "pod-reloader.prefixFlag" . }}{{ $flags = append $flags . }}{{ end -}}
{{- range $key, $value := .Values.test.labels | default (.Values.objectSelector).matchLabels }}{{ $flags = append $flags (printf "--labels=%s=%s" $key $value) }}{{ end -}}
{{- if .Values.referents -}}
{{- with .Values.namespaces }}{{ $flags = append $flags (printf "--namespaces=%s" (join "," .)) }}{{ end -}}
{{- $flags = append $flags (include "pod-reloader.configFlag" .) -}}
{{- $flags = append $flags (printf "--service-account=%s/%s" .Release.Namespace (include "pod-reloader.serviceAccountName" .)) -}}
{{- end -}}
{{- toJson $flags -}}
{{- end }}

{{/* Flags for a shell, each after a space. */}}
{{- define "pod-reloader.shellFlags" -}}
{{- range . }} {{ if regexMatch "^[-A-Za-z0-9=:/.,_]+$" . }}{{ . }}{{ else }}{{ squote . }}{{ end }}{{ end -}}
{{- end }}

{{/* The built-in kinds that are left alone, as the flag names them. */}}
{{- define "pod-reloader.ignoredTypes" -}}
{{- $types := list -}}
{{- if .Values.reloader.ignoreJobs }}{{ $types = append $types "jobs" }}{{ end -}}
{{- if .Values.reloader.ignoreCronJobs }}{{ $types = append $types "cronjobs" }}{{ end -}}
{{- join "," $types -}}
{{- end }}

{{/* The group and the version of an item of workloadKinds, which must have both. */}}
{{- define "pod-reloader.group" -}}
{{- (split "/" .apiVersion)._0 -}}
{{- end }}
{{- define "pod-reloader.version" -}}
{{- (split "/" .apiVersion)._1 -}}
{{- end }}

{{/* A list of fields as an optional selection in CEL, where a hyphen is an operator and some words are reserved. The result of
[?"field"] would have another type than that of .?field. */}}
{{- define "pod-reloader.celPath" -}}
{{- range . }}{{ if and (regexMatch "^[A-Za-z_][A-Za-z0-9_]*$" .) (not (has . (list "in" "true" "false" "null"))) }}.?{{ . }}{{ else }}.optFlatMap(v, v != null && {{ toJson . }} in v ? optional.of(v[{{ toJson . }}]) : optional.none()){{ end }}{{ end -}}
{{- end }}

{{/* A label selector as the text of a flag, for the loop: a in (b,c),!d,k=v */}}
{{- define "pod-reloader.selectorFlag" -}}
{{- $terms := list -}}
{{- range .matchExpressions -}}
{{- if eq .operator "In" }}{{ $terms = append $terms (printf "%s in (%s)" .key (join "," .values)) }}
{{- else if eq .operator "NotIn" }}{{ $terms = append $terms (printf "%s notin (%s)" .key (join "," .values)) }}
{{- else if eq .operator "Exists" }}{{ $terms = append $terms .key }}
{{- else if eq .operator "DoesNotExist" }}{{ $terms = append $terms (printf "!%s" .key) }}
{{- else }}{{ fail (printf "unknown operator %q of a selector; use In, NotIn, Exists or DoesNotExist" .operator) }}
{{- end }}
{{- end -}}
{{- range $key, $value := .matchLabels }}{{ $terms = append $terms (printf "%s=%s" $key $value) }}{{ end -}}
{{- join "," $terms -}}
{{- end }}

{{/* What makes workloads interesting that run with a custom resource without naming it: an owner of its group, or the label that
has its name. The webhook decides by the configuration. The Deployment of the release has none of the annotations, and must not count
for such a label or owner: with failurePolicy Fail, it could not be repaired while no replica answers. */}}
{{- define "pod-reloader.referentConditions" -}}
{{- $groups := list }}{{ $labels := list }}
{{- range .Values.referents }}{{ $gvr := .gvr }}{{ with .workloads }}
{{- if .ownedBy }}{{ $groups = append $groups (printf "%s/" $gvr.group) }}{{ end }}
{{- with regexFind "[-A-Za-z0-9_./]+\\s*(==?|\\sin\\s*\\()[^,!=]*\\{name\\}" (default "" .selector) }}
{{- $labels = append $labels (regexFind "^[-A-Za-z0-9_./]+" .) }}
{{- end }}{{ end }}{{ end }}
{{- $conditions := list }}
{{- range $groups | uniq | sortAlpha }}
{{- $conditions = append $conditions (printf "has(o.metadata.ownerReferences) && o.metadata.ownerReferences.exists(r, r.apiVersion.startsWith(%s))" (toJson .)) }}
{{- end }}
{{- range $labels | uniq | sortAlpha }}
{{- $conditions = append $conditions (printf "has(o.metadata.labels) && %s in o.metadata.labels" (toJson .)) }}
{{- end }}
{{- with $conditions }}
          || o != null && has(o.metadata) && (
          {{ join "\n          || " . }})
          && !(o.?kind.orValue("") == "Deployment" && o.metadata.?namespace.orValue("") == {{ $.Release.Namespace | toJson }}
          && o.metadata.?name.orValue("") == {{ include "pod-reloader.name" $ | toJson }})
{{- end }}
{{- end }}
