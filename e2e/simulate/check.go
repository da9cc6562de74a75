package simulate

import (
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
func checkFault(step history.Step) error { //nolint:gocyclo // a list of cases, each with its own reason
	for key, value := range step.With {
		var err error
		switch key {
		case "for", "by":
			if step.Do == "lag" && key == "by" {
				_, err = strconv.Atoi(value)
			} else if d, failed := time.ParseDuration(value); failed != nil || d < 0 {
				err = fmt.Errorf("%q is no duration, such as 300ms or 2m", value)
			}
		case "offset":
			_, err = time.ParseDuration(value)
		case "percent", "code":
			if n, failed := strconv.Atoi(value); failed != nil || n < 0 || n > 599 {
				err = fmt.Errorf("%q is no number from 0 to 599", value)
			}
		case "flags":
			_, err = parse(append(baseFlags(), splitFlags(value)...))
		case "verbs", "resource", "mode":
		default:
			err = fmt.Errorf("is not known; remove it")
		}
		if err != nil {
			return fmt.Errorf("with.%s: %w", key, err)
		}
	}
	return nil
}
