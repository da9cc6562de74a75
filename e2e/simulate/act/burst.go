package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// mostWrites bounds hammer-config.
const mostWrites = 30_000

func burstActs() []act {
	anyConfig := onConfig(configResources()...)
	return []act{
		{
			name: "edit-back", weight: 5, on: anyConfig, with: []parameter{keyParameter(), valueParameter(), pauseParameter()},
			words: "user sets key {key|q} of {on} to {value|q} and back after {pause}",
			do:    editBack,
		},
		{
			name: "edit-many", weight: 5, on: onNothing(),
			with:  []parameter{required("objects", isConfigList, drawConfigList), valueParameter()},
			words: "user sets a key of each of {objects} to {value|q} in one go",
			do:    editMany,
		},
		{
			name: "hammer-config", weight: 2, on: anyConfig,
			with: []parameter{
				keyParameter(), number("n", 1, mostWrites, "10", "10", "25", "50", "150", "300"), duration("every", "2ms", "20ms", "60ms", "100ms", "400ms"),
			},
			words: "user writes key {key|q} of {on} {n} times, every {every}",
			do:    hammer,
		},
	}
}

func editBack(ctx context.Context, c client, s step) error {
	object, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	name := s.text("key")
	data, _ := object["data"].(world.Object)
	before := data[name] // nil where there is none: the merge patch then removes the key
	if err := c.setValue(ctx, s.key, "patch", map[string]string{name: s.text("value")}); err != nil {
		return err
	}
	if err := pause(ctx, s.pause("pause")); err != nil {
		return err
	}
	return c.merge(ctx, s.key, "kubectl-patch", world.Object{"data": world.Object{name: before}})
}

// editMany goes on where one object is missing, and returns the first error.
func editMany(ctx context.Context, c client, s step) error {
	var first error
	for _, on := range strings.Split(s.text("objects"), ",") {
		key, err := parseConfig(on, configResources())
		if err == nil {
			err = c.setValue(ctx, key, "patch", map[string]string{firstKey(key): s.text("value")})
		}
		if err != nil && first == nil {
			first = fmt.Errorf("%s: %w", on, err)
		}
	}
	return first
}

func firstKey(key world.Key) string {
	data, _ := configData(key.Resource, key.Name) // the key was checked
	return slices.Min(slices.Collect(maps.Keys(data)))
}

func isConfigList(value string) error {
	for _, on := range strings.Split(value, ",") {
		if _, err := parseConfig(on, configResources()); err != nil {
			return err
		}
	}
	return nil
}

func drawConfigList(r *rand.Rand, _ world.Key) string {
	var all []string
	for _, key := range universe() {
		if isConfig(key) && (key.Namespace == shop || r.IntN(4) == 0) {
			all = append(all, key.String())
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return strings.Join(all[:2+r.IntN(len(all)-1)], ",")
}

func hammer(ctx context.Context, c client, s step) error {
	for i := range s.number("n") {
		if i > 0 {
			if err := pause(ctx, s.pause("every")); err != nil {
				return err
			}
		}
		err := c.setValue(ctx, s.key, "patch", map[string]string{s.text("key"): "h" + strconv.Itoa(i)})
		if errors.Is(err, ErrSkipped) && i > 0 {
			continue // deleted meanwhile; it may come back
		}
		if err != nil {
			return fmt.Errorf("write %d: %w", i+1, err)
		}
	}
	return nil
}
