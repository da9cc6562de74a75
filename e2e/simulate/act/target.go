package act

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// target is what acts of one kind are done to.
type target struct {
	parse func(on string) (world.Key, error)
	draw  func(r *rand.Rand, before []history.Step) string
}

// onConfig is a config object of one of some resources.
func onConfig(resources ...world.Resource) target {
	var choices []string
	for _, key := range universe() {
		if slices.Contains(resources, key.Resource) {
			choices = append(choices, key.String())
			if key.Namespace == shop { // most happens there
				choices = append(choices, key.String(), key.String())
			}
		}
	}
	if slices.Contains(resources, world.ConfigMaps) {
		choices = append(choices, LateConfig, LateConfig)
	}
	return target{
		parse: func(on string) (world.Key, error) { return parseConfig(on, resources) },
		draw:  func(r *rand.Rand, _ []history.Step) string { return choices[r.IntN(len(choices))] },
	}
}

// LateConfig is listed by workloads and does not exist at first.
const LateConfig = "configmaps/shop/late"

// onAbsentConfig prefers config objects that do not exist: the late one, and those that were deleted before.
func onAbsentConfig() target {
	absent := onConfig(configResources()...)
	drawAny := absent.draw
	absent.draw = func(r *rand.Rand, before []history.Step) string {
		gone := []string{LateConfig}
		for _, s := range before {
			switch s.Do {
			case DeleteConfig:
				gone = append(gone, s.On)
			case CreateConfig:
				gone = slices.DeleteFunc(gone, func(on string) bool { return on == s.On })
			}
		}
		if len(gone) == 0 {
			return drawAny(r, before)
		}
		return gone[r.IntN(len(gone))]
	}
	return absent
}

func parseConfig(on string, resources []world.Resource) (world.Key, error) {
	key, err := parseTenant(on, resources)
	if err != nil {
		return world.Key{}, err
	}
	_, err = configData(key.Resource, key.Name)
	return key, err
}

func parseTenant(on string, resources []world.Resource) (world.Key, error) {
	key, err := parseKey(on, resources)
	if err == nil && key.Namespace != shop && key.Namespace != bank {
		return world.Key{}, fmt.Errorf("%q is not in namespace %s or %s", on, shop, bank)
	}
	return key, err
}

// onWorkload is a workload of one of some resources, or one that was made before.
func onWorkload(resources ...world.Resource) target {
	var choices []string
	for _, key := range universe() {
		if slices.Contains(resources, key.Resource) {
			choices = append(choices, key.String())
			for range popularity(key) - 1 {
				choices = append(choices, key.String())
			}
		}
	}
	return target{
		parse: func(on string) (world.Key, error) { return parseWorkload(on, resources) },
		draw: func(r *rand.Rand, before []history.Step) string {
			if made := workloadsMade(before, resources); len(made) > 0 && r.IntN(4) == 0 {
				return made[r.IntN(len(made))]
			}
			return choices[r.IntN(len(choices))]
		},
	}
}

// popularity is how often a workload is drawn relative to others: acts on the same one follow each other then.
func popularity(key world.Key) int {
	switch key.String() {
	case "deployments/shop/cart":
		return 5
	case "deployments/shop/web", "statefulsets/shop/store":
		return 3
	case "daemonsets/shop/agent":
		return 2
	}
	return 1
}

// mostlyAfter is a target that is mostly what earlier steps of some names were done to, e.g. for an act that undoes them.
func mostlyAfter(t target, names ...string) target {
	first := t.draw
	t.draw = func(r *rand.Rand, before []history.Step) string {
		var done []string
		for _, s := range before {
			if _, err := t.parse(s.On); err == nil && slices.Contains(names, s.Do) {
				done = append(done, s.On)
			}
		}
		if len(done) == 0 || r.IntN(5) == 0 {
			return first(r, before)
		}
		return done[r.IntN(len(done))]
	}
	return t
}

// workloadsMade returns those that earlier steps made and Setup did not.
func workloadsMade(before []history.Step, resources []world.Resource) []string {
	var made []string
	for _, s := range before {
		on := ""
		switch s.Do {
		case copyWorkload:
			on = s.With["to"]
		case CreateRollout:
			on = s.On
		}
		if _, err := parseWorkload(on, resources); err == nil {
			made = append(made, on)
		}
	}
	return made
}

func parseWorkload(on string, resources []world.Resource) (world.Key, error) {
	key, err := parseTenant(on, resources)
	if err != nil {
		return world.Key{}, err
	}
	_, err = planOf(key)
	return key, err
}

// onNamespace is one of the tenants' namespaces.
func onNamespace() target {
	return target{
		parse: func(on string) (world.Key, error) {
			name, ok := strings.CutPrefix(on, "namespaces/")
			if !ok || name != shop && name != bank {
				return world.Key{}, fmt.Errorf("%q is not namespaces/%s or namespaces/%s", on, shop, bank)
			}
			return namespaceKey(name), nil
		},
		draw: func(r *rand.Rand, _ []history.Step) string {
			return "namespaces/" + []string{shop, shop, bank}[r.IntN(3)]
		},
	}
}

// onKeySecret is the Secret with the digest keys.
func onKeySecret() target {
	return target{
		parse: func(on string) (world.Key, error) {
			if on != keySecret().String() {
				return world.Key{}, fmt.Errorf("%q is not %s", on, keySecret())
			}
			return keySecret(), nil
		},
		draw: func(*rand.Rand, []history.Step) string { return keySecret().String() },
	}
}

// onNothing is the target of acts whose parameters name the objects.
func onNothing() target {
	return target{
		parse: func(on string) (world.Key, error) {
			if on != "" {
				return world.Key{}, errors.New("must be empty")
			}
			return world.Key{}, nil
		},
		draw: func(*rand.Rand, []history.Step) string { return "" },
	}
}
