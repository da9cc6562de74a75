package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

func splitFlags(text string) []string { return strings.Fields(text) }

func splitVerbs(text string) []string { return strings.Split(text, ",") }

// namespaceOf returns "shop" for "namespaces/shop".
func namespaceOf(on string) string {
	_, name, _ := strings.Cut(on, "/")
	return name
}

// parameters returns the parameters of a step but its duration, for people.
func parameters(step history.Step) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(step.With)) {
		if key != "for" && step.With[key] != "" {
			parts = append(parts, step.With[key])
		}
	}
	return strings.Join(parts, " ")
}

// checkFault refuses parameters that make no sense.
func checkFault(step history.Step) error {
	for _, key := range slices.Sorted(maps.Keys(step.With)) {
		if err := checkParameter(step.Do, key, step.With[key]); err != nil {
			return fmt.Errorf("with.%s: %w", key, err)
		}
	}
	return nil
}

func checkParameter(fault, key, value string) error {
	switch key {
	case "by":
		if fault == "lag" {
			return checkNumber(value, 10_000)
		}
		return checkDuration(value)
	case "for":
		return checkDuration(value)
	case "offset":
		_, err := time.ParseDuration(value)
		return err
	case "percent", "code":
		return checkNumber(value, 599)
	case "flags":
		_, err := parse(append(baseFlags(), splitFlags(value)...))
		return err
	case "verbs", "resource", "mode":
		return nil
	}
	return errors.New("is not known; remove it")
}

func checkDuration(value string) error {
	if d, err := time.ParseDuration(value); err != nil || d < 0 {
		return fmt.Errorf("%q is no duration, such as 300ms or 2m", value)
	}
	return nil
}

func checkNumber(value string, most int) error {
	if n, err := strconv.Atoi(value); err != nil || n < 0 || n > most {
		return fmt.Errorf("%q is no number from 0 to %d", value, most)
	}
	return nil
}
