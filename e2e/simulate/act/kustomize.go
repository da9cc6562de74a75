package act

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// KustomizeRelease is the act of a user whose ConfigMaps have names that follow from their content. It has no weight: simulate draws it
// from a random stream of its own.
const KustomizeRelease = "kustomize-release"

func kustomizeActs() []act {
	return []act{{
		name: KustomizeRelease, on: mostlyAfter(onWorkload(workloadResources()...), KustomizeRelease),
		with: []parameter{
			required("generates", isOneOf("app", "extra"), drawGenerated),
			number("content", 1, 99, "1", "2", "2", "3", "4"),
			optional("version", sameVersion, isVersionOrSame, drawVersionOrSame),
			oneOf("prunes", "true", "true", "false"), pauseParameter(),
			optional("undo", omit, isDuration, seldom(3, pick("0s", "2s", "8s", "30s"))),
		},
		words: "user generates configmap {generates} with content {content}, releases {on} with it (version: {version}), " +
			"and deletes the one before after {pause} (prunes: {prunes})[, and rolls back {undo} later]",
		do: kustomizeRelease,
	}}
}

// drawGenerated draws a ConfigMap that the pods use.
func drawGenerated(r *rand.Rand, on world.Key) string {
	p, err := planOf(on)
	var names []string
	for _, s := range append(append([]source{}, p.envFrom...), p.volumes...) {
		if s.resource == world.ConfigMaps && s.name != "late" {
			names = append(names, s.name)
		}
	}
	if err != nil || len(names) == 0 {
		return "app"
	}
	return names[r.IntN(len(names))]
}

// generatedName is the name of a ConfigMap with some content.
func generatedName(base string, content int) string { return base + "-h" + strconv.Itoa(content) }

// isGenerated reports whether a name is that of a generated ConfigMap, or the one in its place at first.
func isGenerated(name, base string) bool { return name == base || strings.HasPrefix(name, base+"-h") }

func kustomizeRelease(ctx context.Context, c client, s step) error {
	base := s.text("generates")
	config := world.Key{Resource: world.ConfigMaps, Namespace: s.key.Namespace, Name: generatedName(base, s.number("content"))}
	manifest, err := configManifest(world.Key{Resource: world.ConfigMaps, Namespace: s.key.Namespace, Name: base},
		map[string]string{"generated": "content " + s.text("content")})
	if err != nil {
		return err
	}
	world.Section(manifest, "metadata")["name"] = config.Name
	if err := c.create(ctx, config, "kustomize", manifest); err != nil && !rejectedFor(err, "AlreadyExists") {
		return fmt.Errorf("create %s: %w", config, err)
	}
	before, err := c.releaseGenerated(ctx, s, config.Name)
	if err != nil {
		return err
	}
	if err := pause(ctx, s.pause("pause")); err != nil {
		return err
	}
	if before != base && s.flag("prunes") { // other workloads use the first one
		old := config
		old.Name = before
		if err := present(c.delete(ctx, old)); err != nil {
			return err
		}
	}
	if !s.has("undo") || s.key.Resource == world.CronJobs {
		return nil
	}
	if err := pause(ctx, s.pause("undo")); err != nil {
		return err
	}
	s.with["back"] = "1"
	return undo(ctx, c, s)
}

// releaseGenerated renames the ConfigMap in the pod spec and in the list, in one write, and returns its name before.
func (c client) releaseGenerated(ctx context.Context, s step, name string) (before string, err error) {
	base := s.text("generates")
	err = c.update(ctx, s.key, "kustomize", func(object world.Object) error {
		before = ""
		template := templateOf(s.key.Resource, object)
		rename(world.Section(template, "spec"), func(old string) string {
			if !isGenerated(old, base) {
				return old
			}
			before = old
			return name
		})
		if before == "" || before == name {
			return skip("%s does not use another %s", s.key, base)
		}
		if list, there := world.Annotations(object)[listOfConfigMaps].(string); there {
			world.Annotations(object)[listOfConfigMaps] = renamedIn(list, base, name)
		}
		if s.text("version") == sameVersion {
			return nil
		}
		return setImageOf(s, template)
	})
	return before, err
}

// setImageOf sets the image of the step's version.
func setImageOf(s step, template world.Object) error {
	p, err := planOf(s.key)
	if err != nil {
		return err
	}
	container, _ := cut(world.Section(template, "spec")["containers"], p.name)
	if container == nil {
		return errors.New("there is no container " + p.name)
	}
	container["image"] = p.image(s.number("version"))
	return nil
}

// rename gives the references to ConfigMaps below a value other names.
func rename(value any, to func(string) string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			rename(item, to)
		}
	case world.Object:
		for field, child := range v {
			reference, ok := child.(world.Object)
			if ok && (field == "configMap" || field == "configMapRef" || field == "configMapKeyRef") {
				if name, there := reference["name"].(string); there {
					reference["name"] = to(name)
				}
				continue
			}
			rename(child, to)
		}
	}
}

// renamedIn replaces names in a list, which keeps its blanks and its empty items.
func renamedIn(list, base, name string) string {
	items := strings.Split(list, ",")
	for i, item := range items {
		if old := strings.TrimSpace(item); isGenerated(old, base) {
			items[i] = strings.Replace(item, old, name, 1)
		}
	}
	return strings.Join(items, ",")
}
