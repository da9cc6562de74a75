package act

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Prefix is that of the annotations and labels of pod-reloader.
const Prefix = "pod-reloader.cs.sap.com/"

const (
	listOfConfigMaps = Prefix + "configmaps"
	listOfSecrets    = Prefix + "secrets"

	// System is the namespace of pod-reloader.
	System = "pod-reloader"
	// KeySecret is the Secret in System that has its digest keys.
	KeySecret = "pod-reloader-digest-key"

	shop, bank = "shop", "bank"
)

// plan is what one workload of the universe is made of.
type plan struct {
	resource world.Resource
	name     string
	replicas int64
	// configMaps and secrets are the lists as the user wrote them; empty for none.
	configMaps, secrets string
	envFrom, volumes    []source
}

// source is a reference of a pod spec to a config object.
type source struct {
	resource world.Resource
	name     string
	optional bool
}

// plans returns the workloads of namespace shop. ConfigMap late is listed by two of them and does not exist at first.
func plans() []plan {
	return []plan{
		{
			resource: world.Deployments, name: "cart", replicas: 2,
			configMaps: "app, extra", secrets: "db",
			envFrom: []source{{world.ConfigMaps, "app", false}, {world.Secrets, "db", false}},
			volumes: []source{{world.ConfigMaps, "extra", true}},
		},
		{
			resource: world.Deployments, name: "web", replicas: 1,
			configMaps: " extra ,app,extra,, late", secrets: "tls,db , tls",
			envFrom: []source{{world.ConfigMaps, "app", true}},
			volumes: []source{{world.Secrets, "tls", false}, {world.ConfigMaps, "extra", true}},
		},
		{
			resource: world.StatefulSets, name: "store", replicas: 2,
			configMaps: "extra", secrets: "db,tls",
			envFrom: []source{{world.Secrets, "db", false}},
			volumes: []source{{world.ConfigMaps, "extra", false}},
		},
		{
			resource: world.DaemonSets, name: "agent",
			configMaps: "app,late",
			envFrom:    []source{{world.ConfigMaps, "app", false}},
			volumes:    []source{{world.ConfigMaps, "late", true}},
		},
		{
			resource: world.CronJobs, name: "nightly",
			configMaps: "app", secrets: " db ",
			envFrom: []source{{world.ConfigMaps, "app", false}, {world.Secrets, "db", true}},
		},
	}
}

// copySuffix ends the name of a copied workload.
const copySuffix = "-copy"

// planOf returns the plan of a workload or of its copy, in whatever namespace.
func planOf(key world.Key) (plan, error) {
	base := strings.TrimSuffix(key.Name, copySuffix)
	for _, p := range slices.Concat(plans(), []plan{rolloutPlan()}, jobPlans()) {
		if p.resource == key.Resource && p.name == base {
			return p, nil
		}
	}
	return plan{}, fmt.Errorf("no workload %s/%s is known", key.Resource.Plural, base)
}

// configData returns the data that a config object has at first.
func configData(r world.Resource, name string) (map[string]string, error) {
	switch r.Plural + "/" + name {
	case "configmaps/app":
		return map[string]string{"greeting": "hello", "color": "blue", "app.properties": "mode=fast\nlimit=10\n"}, nil
	case "configmaps/extra":
		return map[string]string{"flags": "a=1", "level": "info"}, nil
	case "configmaps/late":
		return map[string]string{"greeting": "late"}, nil
	case "secrets/db":
		return map[string]string{"password": "first", "user": "shop", "token": "correct-horse-battery"}, nil
	case "secrets/tls":
		return map[string]string{"tls.crt": "certificate-1", "tls.key": "private-key-1"}, nil
	}
	return nil, fmt.Errorf("no config object %s/%s is known", r.Plural, name)
}

func namespaceKey(name string) world.Key { return world.Key{Resource: world.Namespaces, Name: name} }

func keySecret() world.Key {
	return world.Key{Resource: world.Secrets, Namespace: System, Name: KeySecret}
}

// universe returns the keys of what Setup creates in shop and bank, config objects first.
func universe() []world.Key {
	var keys []world.Key
	for _, namespace := range []string{shop, bank} {
		keys = append(keys,
			world.Key{Resource: world.ConfigMaps, Namespace: namespace, Name: "app"},
			world.Key{Resource: world.ConfigMaps, Namespace: namespace, Name: "extra"},
			world.Key{Resource: world.Secrets, Namespace: namespace, Name: "db"},
			world.Key{Resource: world.Secrets, Namespace: namespace, Name: "tls"})
	}
	for _, p := range plans() {
		keys = append(keys, world.Key{Resource: p.resource, Namespace: shop, Name: p.name})
	}
	return append(keys, world.Key{Resource: world.Deployments, Namespace: bank, Name: "cart"})
}

// SetupNamespaces creates the namespaces shop, bank and that of pod-reloader, as far as they are missing: pod-reloader
// may be started between this and Setup.
func SetupNamespaces(ctx context.Context, api API) error {
	c := client{api}
	for _, name := range []string{System, shop, bank} {
		key := namespaceKey(name)
		err := c.create(ctx, key, "kubectl-create", namespaceManifest(name))
		if err != nil && !rejectedFor(err, "AlreadyExists") {
			return fmt.Errorf("create %s: %w", key, err)
		}
	}
	return nil
}

// Setup creates what the acts are about, as "kubectl apply" would: missing namespaces, config objects and workloads.
func Setup(ctx context.Context, api API) error {
	if err := SetupNamespaces(ctx, api); err != nil {
		return err
	}
	c := client{api}
	for _, key := range universe() {
		object, err := initial(key)
		if err == nil {
			err = c.createApplied(ctx, key, object)
		}
		if err != nil {
			return fmt.Errorf("create %s: %w", key, err)
		}
	}
	return nil
}

func initial(key world.Key) (world.Object, error) {
	if isConfig(key) {
		return configManifest(key, nil)
	}
	return workloadManifest(key, firstVersion)
}

func isConfig(key world.Key) bool { return slices.Contains(configResources(), key.Resource) }

func configResources() []world.Resource { return []world.Resource{world.ConfigMaps, world.Secrets} }

// builtinResources are the kinds of workloads that every API server has.
func builtinResources() []world.Resource {
	return []world.Resource{world.Deployments, world.StatefulSets, world.DaemonSets, world.CronJobs}
}

func workloadResources() []world.Resource { return append(builtinResources(), world.Rollouts) }
