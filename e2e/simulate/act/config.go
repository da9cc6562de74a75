package act

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// keyParameter is a key of a config object's data; valueParameter is a value from a small set, so that values come back.
func keyParameter() parameter { return required("key", isDataKey, drawDataKey) }

func valueParameter() parameter {
	draw := pick("v0", "v1", "v2", "v3", "v4", "v5", "", "two\nlines", "grün €")
	return required("value", isText, func(r *rand.Rand, on world.Key) string {
		value := draw(r, on)
		if value == "v5" && on.Resource == world.Secrets {
			return longValue
		}
		return value
	})
}

// longValue is one of a Secret that the law "secret" looks for: it is long enough not to occur by chance, and JSON does not escape it.
const longValue = "v5-of-a-long-password"

func drawDataKey(r *rand.Rand, on world.Key) string {
	data, err := configData(on.Resource, on.Name)
	if err != nil || r.IntN(8) == 0 {
		return "added"
	}
	keys := slices.Sorted(maps.Keys(data))
	return keys[r.IntN(len(keys))]
}

// drawBinaryKey always draws the same key of an object: other acts write to data, which the API server rejects for a key
// that is in binaryData.
func drawBinaryKey(_ *rand.Rand, on world.Key) string {
	data, _ := configData(on.Resource, on.Name)
	return slices.Max(slices.Collect(maps.Keys(data)))
}

func configActs() []act {
	anyConfig := onConfig(configResources()...)
	return []act{
		{
			name: "edit-config", weight: 40, on: anyConfig,
			with:  []parameter{keyParameter(), valueParameter(), oneOf("how", "patch", "put")},
			words: "user sets key {key|q} of {on} to {value|q} ({how})",
			do: func(ctx context.Context, c client, s step) error {
				return c.setValue(ctx, s.key, s.text("how"), map[string]string{s.text("key"): s.text("value")})
			},
		},
		{
			name: "drop-config-key", weight: 3, on: anyConfig, with: []parameter{keyParameter()},
			words: "user removes key {key|q} of {on}",
			do: func(ctx context.Context, c client, s step) error {
				return c.merge(ctx, s.key, "kubectl-patch", world.Object{"data": world.Object{s.text("key"): nil}})
			},
		},
		{
			name: "edit-config-binary", weight: 3, on: onConfig(world.ConfigMaps), with: []parameter{required("key", isDataKey, drawBinaryKey)},
			words: "user moves key {key|q} of {on} between data and binaryData",
			do:    moveBinary,
		},
		labelAct(act{name: "label-config", weight: 5, on: anyConfig}),
		annotateAct(act{name: "annotate-config", weight: 5, on: anyConfig}),
		{
			name: "apply-config", weight: 10, on: anyConfig,
			with:  []parameter{keyParameter(), valueParameter(), oneOf("as", "data", "stringData")},
			words: "user applies the manifest of {on} with key {key|q} set to {value|q} (Secrets as {as})",
			do:    applyConfig,
		},
	}
}

// metadata returns a merge patch of labels or annotations.
func metadata(field string, values world.Object) world.Object {
	return world.Object{"metadata": world.Object{field: values}}
}

// setValue changes some keys by a merge patch, or by reading and writing the object.
func (c client) setValue(ctx context.Context, key world.Key, how string, set map[string]string) error {
	data := encodeData(key.Resource, set)
	if how != "put" {
		return c.merge(ctx, key, "kubectl-patch", world.Object{"data": data})
	}
	return c.update(ctx, key, "kubectl-edit", func(object world.Object) error {
		merged := world.Object{}
		if old, ok := object["data"].(world.Object); ok {
			maps.Copy(merged, old)
		}
		maps.Copy(merged, data)
		object["data"] = merged
		if binary, ok := object["binaryData"].(world.Object); ok { // a key is in one of the two
			maps.DeleteFunc(binary, func(name string, _ any) bool { _, there := data[name]; return there })
		}
		return nil
	})
}

// moveBinary moves a key to the other field, with the same bytes.
func moveBinary(ctx context.Context, c client, s step) error {
	name := s.text("key")
	return c.update(ctx, s.key, "kubectl-edit", func(object world.Object) error {
		data, _ := object["data"].(world.Object)
		binary, _ := object["binaryData"].(world.Object)
		if value, ok := data[name].(string); ok {
			delete(data, name)
			binary = with(binary, name, base64.StdEncoding.EncodeToString([]byte(value)))
		} else if value, ok := binary[name].(string); ok {
			decoded, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return fmt.Errorf("decode key %q: %w", name, err)
			}
			delete(binary, name)
			data = with(data, name, string(decoded))
		} else {
			return skip("%s has no key %q", s.key, name)
		}
		setOrRemove(object, "data", data)
		setOrRemove(object, "binaryData", binary)
		return nil
	})
}

func setOrRemove(object world.Object, field string, value world.Object) {
	if len(value) == 0 {
		delete(object, field)
		return
	}
	object[field] = value
}

func with(object world.Object, name string, value any) world.Object {
	if object == nil {
		object = world.Object{}
	}
	object[name] = value
	return object
}

// applyConfig is "kubectl apply": last-applied-configuration then has the whole manifest, a Secret's plain text included
// where the manifest has stringData.
func applyConfig(ctx context.Context, c client, s step) error {
	object, err := configManifest(s.key, map[string]string{s.text("key"): s.text("value")})
	if err != nil {
		return err
	}
	if s.key.Resource == world.Secrets && s.text("as") == "stringData" {
		plain := world.Object{}
		for name, value := range object["data"].(world.Object) {
			decoded, err := base64.StdEncoding.DecodeString(value.(string))
			if err != nil {
				return fmt.Errorf("decode key %q: %w", name, err)
			}
			plain[name] = string(decoded)
		}
		delete(object, "data")
		object["stringData"] = plain
	}
	return c.apply(ctx, s.key, object)
}
