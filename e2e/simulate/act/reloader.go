package act

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// ReloaderReloads is the act of a user who edits a config object while Stakater's Reloader runs beside pod-reloader and reloads a workload,
// too. It has no weight: simulate draws it from a random stream of its own.
const ReloaderReloads = "reloader-reloads"

const (
	// ReloaderStrategy is the parameter that says what Reloader writes. Its values are those of --reload-strategy.
	ReloaderStrategy      = "strategy"
	reloadsByVariables    = "env-vars"
	reloadsByAnnotations  = "annotations"
	lastReloadedFrom      = otherDomain + "last-reloaded-from"
	reloaderVariableStart = "STAKATER_"
)

func reloaderActs() []act {
	return []act{{
		name: ReloaderReloads, on: onWorkload(world.Deployments, world.StatefulSets, world.DaemonSets),
		with: []parameter{
			required("config", isConfigRef, drawConfigOf), required("key", isDataKey, pick("greeting", "level", "password", "added")), valueParameter(),
			duration("after", "0s", "20ms", "200ms", "600ms", "1s", "1200ms", "2s", "3s"),
			oneOf(ReloaderStrategy, reloadsByVariables, reloadsByAnnotations),
		},
		words: "user sets key {key|q} of {config} to {value|q} and, {after} later, Reloader reloads {on} (strategy: {strategy})",
		do:    reloaderReloads,
	}}
}

func reloaderReloads(ctx context.Context, c client, s step) error {
	config, err := parseConfig(s.text("config"), configResources())
	if err != nil {
		return err
	}
	if config.Namespace != s.key.Namespace {
		return skip("%s is in another namespace", config)
	}
	before, err := c.get(ctx, config)
	if err != nil {
		return err
	}
	if err := c.setValue(ctx, config, "patch", map[string]string{s.text("key"): s.text("value")}); err != nil {
		return fmt.Errorf("edit %s: %w", config, err)
	}
	if err := pause(ctx, s.pause("after")); err != nil {
		return err
	}
	live, err := c.get(ctx, config)
	if err != nil {
		return err
	}
	sum := reloaderSum(live)
	if sum == reloaderSum(before) {
		return nil
	}
	return c.update(ctx, s.key, "Reloader", func(object world.Object) error {
		template := templateOf(s.key.Resource, object)
		if s.text(ReloaderStrategy) == reloadsByAnnotations {
			return s.setSource(template, config, sum)
		}
		return s.setVariable(template, config, sum)
	})
}

// reloaderSum is the SHA-1 of a config object as Reloader computes it.
func reloaderSum(object world.Object) string {
	var pairs []string
	for _, field := range []string{"data", "binaryData"} {
		for name, value := range world.Section(object, field) {
			text := fmt.Sprint(value)
			if object["kind"] == world.Secrets.Kind {
				decoded, _ := base64.StdEncoding.DecodeString(text) // the API server checks it
				text = string(decoded)
			}
			pairs = append(pairs, name+"="+text)
		}
	}
	slices.Sort(pairs)
	sum := sha1.Sum([]byte(strings.Join(pairs, ";")))
	return hex.EncodeToString(sum[:])
}

// setVariable sets the variable of the object in the first container.
func (s step) setVariable(template world.Object, config world.Key, sum string) error {
	name, err := containerName(s.key)
	if err != nil {
		return err
	}
	container, _ := cut(world.Section(template, "spec")["containers"], name)
	if container == nil {
		return skip("%s has no container %s", s.key, name)
	}
	kind := strings.ToUpper(strings.TrimSuffix(config.Resource.Plural, "s"))
	variable := world.Object{"name": reloaderVariableStart + strings.ToUpper(config.Name) + "_" + kind, "value": sum}
	if old, _ := cut(container["env"], variable["name"]); old != nil {
		old["value"] = sum
		return nil
	}
	env, _ := container["env"].([]any)
	container["env"] = append(env, variable)
	return nil
}

// setSource sets the annotation that names the object.
func (s step) setSource(template world.Object, config world.Key, sum string) error {
	text, err := json.Marshal(map[string]any{
		"type": strings.ToUpper(config.Resource.Kind), "name": config.Name, "namespace": config.Namespace, "hash": sum,
		"containerRefs": []string{}, "observedAt": time.Now().Unix(),
	})
	if err != nil {
		return err
	}
	meta := world.Section(template, "metadata")
	meta["annotations"] = with(world.Section(meta, "annotations"), lastReloadedFrom, string(text))
	return nil
}
