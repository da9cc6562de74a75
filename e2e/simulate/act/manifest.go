package act

import (
	"encoding/base64"
	"maps"
	"strconv"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// firstVersion is the version of the workloads that Setup creates.
const firstVersion = 1

func namespaceManifest(name string) world.Object {
	labels := world.Object{"kubernetes.io/metadata.name": name}
	if name != System {
		labels["team"] = name
	}
	return world.Object{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": world.Object{"name": name, "labels": labels},
	}
}

// configManifest is the user's manifest of a config object: its first data with some keys set.
func configManifest(key world.Key, set map[string]string) (world.Object, error) {
	data, err := configData(key.Resource, key.Name)
	if err != nil {
		return nil, err
	}
	maps.Copy(data, set)
	object := world.Object{
		"apiVersion": "v1", "kind": key.Resource.Kind,
		"metadata": world.Object{"name": key.Name, "namespace": key.Namespace, "labels": world.Object{"part-of": "shop"}},
		"data":     encodeData(key.Resource, data),
	}
	if key.Resource == world.Secrets {
		object["type"] = "Opaque"
	}
	return object, nil
}

func encodeData(r world.Resource, data map[string]string) world.Object {
	encoded := make(world.Object, len(data))
	for name, value := range data {
		encoded[name] = encodeValue(r, value)
	}
	return encoded
}

// encodeValue is the form that a value has in the data of a config object.
func encodeValue(r world.Resource, value string) string {
	if r == world.Secrets {
		return base64.StdEncoding.EncodeToString([]byte(value))
	}
	return value
}

// workloadManifest is the user's manifest of a workload. Versions differ in the image, in environment variables and in an
// annotation of the template that only even versions have, so that merges add and remove items. bareVersion has none, so that
// merges remove all annotations of the template. It has the values that the API server would fill in, so that a PUT of it to a
// real API server changes nothing else.
func workloadManifest(key world.Key, version int) (world.Object, error) {
	p, err := planOf(key)
	if err != nil {
		return nil, err
	}
	lists := world.Object{"example.com/owner": "shop"}
	if p.configMaps != "" {
		lists[listOfConfigMaps] = p.configMaps
	}
	if p.secrets != "" {
		lists[listOfSecrets] = p.secrets
	}
	return world.Object{
		"apiVersion": key.Resource.APIVersion(), "kind": key.Resource.Kind,
		"metadata": world.Object{
			"name": key.Name, "namespace": key.Namespace,
			"labels":      world.Object{"app": key.Name, "version": strconv.Itoa(version)},
			"annotations": lists,
		},
		"spec": p.spec(key, p.template(key, version)),
	}, nil
}

func (p plan) spec(key world.Key, template world.Object) world.Object {
	selector := world.Object{"matchLabels": world.Object{"app": key.Name}}
	rolling := func(parameters world.Object) world.Object {
		return world.Object{"type": "RollingUpdate", "rollingUpdate": parameters}
	}
	switch key.Resource {
	case world.CronJobs:
		return world.Object{
			"schedule": "0 3 * * *", "concurrencyPolicy": "Allow", "suspend": false,
			"successfulJobsHistoryLimit": int64(3), "failedJobsHistoryLimit": int64(1),
			"jobTemplate": world.Object{
				"metadata": world.Object{"labels": world.Object{"app": key.Name}},
				"spec":     world.Object{"template": template},
			},
		}
	case world.Jobs:
		return world.Object{"backoffLimit": int64(3), "completions": int64(1), "parallelism": int64(1), "template": template}
	case world.StatefulSets:
		return world.Object{
			"replicas": p.replicas, "serviceName": key.Name, "selector": selector, "template": template,
			"podManagementPolicy": "OrderedReady", "revisionHistoryLimit": int64(10),
			"updateStrategy":                       rolling(world.Object{"partition": int64(0)}),
			"persistentVolumeClaimRetentionPolicy": world.Object{"whenDeleted": "Retain", "whenScaled": "Retain"},
		}
	case world.DaemonSets:
		return world.Object{
			"selector": selector, "template": template, "revisionHistoryLimit": int64(10),
			"updateStrategy": rolling(world.Object{"maxUnavailable": int64(1), "maxSurge": int64(0)}),
		}
	case world.Rollouts:
		return world.Object{
			"replicas": p.replicas, "selector": selector, "template": template, "revisionHistoryLimit": int64(10),
		}
	}
	return world.Object{
		"replicas": p.replicas, "selector": selector, "template": template,
		"revisionHistoryLimit": int64(10), "progressDeadlineSeconds": int64(600),
		"strategy": rolling(world.Object{"maxUnavailable": int64(0), "maxSurge": int64(1)}),
	}
}

func (p plan) template(key world.Key, version int) world.Object {
	annotations := world.Object{"example.com/scrape": "true"}
	env := []any{world.Object{"name": "VERSION", "value": strconv.Itoa(version)}}
	if version%2 == 0 {
		annotations["example.com/channel"] = "beta"
		env = append(env, world.Object{"name": "FEATURE", "value": "on"})
	}
	container := world.Object{
		"name": p.name, "image": p.image(version), "imagePullPolicy": "IfNotPresent", "env": env,
		"resources": world.Object{}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
	}
	restartPolicy := "Always"
	if p.resource == world.CronJobs || p.resource == world.Jobs {
		restartPolicy = "OnFailure"
	}
	spec := world.Object{
		"containers": []any{container}, "restartPolicy": restartPolicy, "dnsPolicy": "ClusterFirst",
		"schedulerName": "default-scheduler", "securityContext": world.Object{}, "terminationGracePeriodSeconds": int64(30),
	}
	p.addSources(container, spec)
	metadata := world.Object{"labels": world.Object{"app": key.Name}}
	if version != bareVersion {
		metadata["annotations"] = annotations
	}
	return world.Object{"metadata": metadata, "spec": spec}
}

func (p plan) image(version int) string { return "example.com/" + p.name + ":" + strconv.Itoa(version) }

func (p plan) addSources(container, spec world.Object) {
	var envFrom, volumes, mounts []any
	for _, s := range p.envFrom {
		field := "configMapRef"
		if s.resource == world.Secrets {
			field = "secretRef"
		}
		envFrom = append(envFrom, world.Object{field: s.reference("name")})
	}
	for _, s := range p.volumes {
		field, nameField := "configMap", "name"
		if s.resource == world.Secrets {
			field, nameField = "secret", "secretName"
		}
		reference := s.reference(nameField)
		reference["defaultMode"] = int64(0o644)
		volumes = append(volumes, world.Object{"name": s.name, field: reference})
		mounts = append(mounts, world.Object{"name": s.name, "mountPath": "/etc/" + s.name})
	}
	if len(envFrom) > 0 {
		container["envFrom"] = envFrom
	}
	if len(volumes) > 0 {
		container["volumeMounts"], spec["volumes"] = mounts, volumes
	}
}

func (s source) reference(nameField string) world.Object {
	reference := world.Object{nameField: s.name}
	if s.optional {
		reference["optional"] = true
	}
	return reference
}
