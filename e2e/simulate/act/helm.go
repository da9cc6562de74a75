package act

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	helmManager = "helm"
	// helmHistory is how many revisions of a release are kept, Helm's --history-max.
	helmHistory = 10
)

func helmActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	return []act{
		{
			name: "helm-upgrade", weight: 7, on: mostlyAfter(anyWorkload, "helm-upgrade"),
			with: []parameter{
				versionParameter(), optional("config", omit, isConfigRef, seldom(2, drawConfigOf)),
				optional("value", "v1", isText, pick("v0", "v1", "v2", "v3")),
			},
			words: "Helm upgrades {on} to version {version}[ and the first key of {config} to {value|q}]",
			do:    helmUpgrade,
		},
		{
			name: "helm-rollback", weight: 4, on: mostlyAfter(anyWorkload, "helm-upgrade"), with: []parameter{number("back", 1, 9, "1", "1", "1", "2", "3")},
			words: "Helm rolls {on} back by {back} revisions",
			do:    helmRollback,
		},
	}
}

// helmRelease is one revision of a release: the workload and, where the chart has one, a config object. The real Helm
// keeps more, compressed; what matters is that both manifests come back.
type helmRelease struct {
	Revision int          `json:"revision"`
	Config   world.Object `json:"config,omitempty"`
	Workload world.Object `json:"workload"`

	configKey world.Key
}

// helmUpgrade is "helm upgrade --install --reuse-values --take-ownership": without a config parameter the chart keeps the
// config object that it has.
func helmUpgrade(ctx context.Context, c client, s step) error {
	history, err := c.releases(ctx, s.key)
	if err != nil {
		return err
	}
	next := helmRelease{Revision: 1}
	if len(history) > 0 {
		last := history[len(history)-1]
		next = helmRelease{Revision: last.Revision + 1, Config: last.Config, configKey: last.configKey}
	}
	if next.Workload, err = workloadManifest(s.key, s.number("version")); err != nil {
		return err
	}
	if s.has("config") {
		if next.configKey, err = parseConfig(s.text("config"), configResources()); err != nil {
			return err
		}
		set := map[string]string{firstKey(next.configKey): s.text("value")}
		if next.Config, err = configManifest(next.configKey, set); err != nil {
			return err
		}
	}
	return c.roll(ctx, s.key, history, next)
}

func helmRollback(ctx context.Context, c client, s step) error {
	history, err := c.releases(ctx, s.key)
	if err != nil {
		return err
	}
	i := len(history) - 1 - s.number("back")
	if i < 0 {
		return skip("release %s has %d revisions", s.key.Name, len(history))
	}
	next := history[i]
	next.Revision = history[len(history)-1].Revision + 1
	return c.roll(ctx, s.key, history, next)
}

// roll leads the cluster from the newest release to the next one, config first, and then records that.
func (c client) roll(ctx context.Context, key world.Key, history []helmRelease, next helmRelease) error {
	last := helmRelease{Config: next.Config, Workload: next.Workload, configKey: next.configKey}
	if len(history) > 0 {
		last = history[len(history)-1]
	}
	if next.Config != nil {
		original := last.Config
		if last.configKey != next.configKey {
			original = next.Config
		}
		if err := c.helmApply(ctx, key, next.configKey, original, next.Config); err != nil {
			return fmt.Errorf("%s: %w", next.configKey, err)
		}
	}
	if err := c.helmApply(ctx, key, key, last.Workload, next.Workload); err != nil {
		return err
	}
	if last.Config != nil && last.configKey != next.configKey {
		if err := c.delete(ctx, last.configKey); err != nil && !errors.Is(err, ErrSkipped) {
			return fmt.Errorf("delete %s: %w", last.configKey, err)
		}
	}
	return c.record(ctx, key, history, next)
}

// helmApply creates one object of a chart or patches it by a three-way merge of the old manifest, the new one and the live
// object.
func (c client) helmApply(ctx context.Context, release, key world.Key, old, manifest world.Object) error {
	meta := world.Section(manifest, "metadata")
	annotations := without(world.Section(meta, "annotations"), func(string) bool { return false })
	annotations["meta.helm.sh/release-name"] = release.Name
	annotations["meta.helm.sh/release-namespace"] = release.Namespace
	labels := without(world.Section(meta, "labels"), func(string) bool { return false })
	labels["app.kubernetes.io/managed-by"] = "Helm"
	target := world.With(manifest, world.With(world.With(meta, annotations, "annotations"), labels, "labels"), "metadata")

	live, err := c.get(ctx, key)
	if rejectedFor(err, "NotFound") {
		return c.create(ctx, key, helmManager, target)
	}
	if err != nil {
		return err
	}
	original, err := json.Marshal(old)
	if err != nil {
		return fmt.Errorf("encode the old manifest: %w", err)
	}
	return c.mergeThreeWays(ctx, key, helmManager, states{original, target, live})
}

func releaseKey(workload world.Key, revision int) world.Key {
	name := "sh.helm.release.v1." + workload.Name + ".v" + strconv.Itoa(revision)
	return world.Key{Resource: world.Secrets, Namespace: workload.Namespace, Name: name}
}

// releases returns what is recorded of a release, oldest first.
func (c client) releases(ctx context.Context, workload world.Key) ([]helmRelease, error) {
	secrets, err := c.list(ctx, world.Secrets, workload.Namespace, "name="+workload.Name+",owner=helm")
	if err != nil {
		return nil, fmt.Errorf("list the releases: %w", err)
	}
	var history []helmRelease
	for _, secret := range secrets {
		labels := world.Section(secret, "metadata", "labels")
		if labels["owner"] != "helm" || labels["name"] != workload.Name {
			continue
		}
		release, err := decodeRelease(secret)
		if err != nil {
			return nil, fmt.Errorf("release %v: %w", world.Section(secret, "metadata")["name"], err)
		}
		history = append(history, release)
	}
	slices.SortFunc(history, func(a, b helmRelease) int { return cmp.Compare(a.Revision, b.Revision) })
	return history, nil
}

func decodeRelease(secret world.Object) (helmRelease, error) {
	encoded, _ := world.Section(secret, "data")["release"].(string)
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return helmRelease{}, fmt.Errorf("decode: %w", err)
	}
	release := helmRelease{}
	if err := json.Unmarshal(text, &release); err != nil {
		return helmRelease{}, fmt.Errorf("decode: %w", err)
	}
	if release.Config == nil {
		return release, nil
	}
	resource := world.ConfigMaps
	if release.Config["kind"] == world.Secrets.Kind {
		resource = world.Secrets
	}
	meta := world.Section(release.Config, "metadata")
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	release.configKey = world.Key{Resource: resource, Namespace: namespace, Name: name}
	return release, nil
}

// record keeps a release in a Secret and removes the oldest one when there are too many.
func (c client) record(ctx context.Context, workload world.Key, history []helmRelease, release helmRelease) error {
	text, err := json.Marshal(release)
	if err != nil {
		return fmt.Errorf("encode the release: %w", err)
	}
	key := releaseKey(workload, release.Revision)
	labels := world.Object{
		"owner": "helm", "name": workload.Name, "status": "deployed", "version": strconv.Itoa(release.Revision),
	}
	secret := world.Object{
		"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
		"metadata": world.Object{"name": key.Name, "namespace": key.Namespace, "labels": labels},
		"data":     world.Object{"release": base64.StdEncoding.EncodeToString(text)},
	}
	if err := c.create(ctx, key, helmManager, secret); err != nil {
		return fmt.Errorf("record the release: %w", err)
	}
	if len(history) < helmHistory {
		return nil
	}
	if err := c.delete(ctx, releaseKey(workload, history[0].Revision)); err != nil {
		return fmt.Errorf("remove the oldest release: %w", err)
	}
	return nil
}
