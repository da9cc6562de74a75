package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
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

// ReadHistory reads a history from a file and refuses what makes no sense.
func ReadHistory(file string) (history.History, error) {
	h, err := history.Read(file, Catalogue())
	if err != nil {
		return h, err
	}
	if err := checkInstallation(h); err != nil {
		return h, fmt.Errorf("read history %s: %w", file, err)
	}
	return h, nil
}

// checkInstallation refuses flags that the program does not start with, and steps on replicas that do not exist.
func checkInstallation(h history.History) error {
	if err := CheckFlags(h.Setup.Flags); err != nil {
		return fmt.Errorf("setup.flags: %w", err)
	}
	if err := CheckFlags(flagsOfSecond(h.Setup)); err != nil {
		return fmt.Errorf("setup.second.scope: %w", err)
	}
	replicas := max(h.Setup.All(), drawnReplicas)
	for i, step := range h.Steps {
		if n, is := replicaNumber(step.On); is && n >= replicas {
			return fmt.Errorf("step %d (%s): on: %s never exists: setup.replicas is %d; raise it, or name another", i+1, step.Do, step.On, h.Setup.Replicas)
		}
	}
	return nil
}

// CheckFlags returns the error with which the program would refuse flags.
func CheckFlags(flags []string) error {
	_, err := parse(append(baseFlags(), flags...))
	if errors.Is(err, pflag.ErrHelp) {
		return errors.New("--help starts nothing; remove it")
	}
	return err
}

// drawnReplicas is how many replicas the steps of a drawn history are about, however many its installation has.
const drawnReplicas = 3

// replicaNumber returns 1 for "replica-1".
func replicaNumber(on string) (int, bool) {
	text, is := strings.CutPrefix(on, "replica-")
	n, err := strconv.Atoi(text)
	return n, is && err == nil && strconv.Itoa(n) == text && n >= 0
}

// form is what the step of a fault looks like.
type form struct {
	// on checks Step.On.
	on func(on string) error
	// required are parameters without which the fault is none, optional are others. Each fault has "for".
	required, optional []string
}

// forms has the form of each fault.
func forms() map[string]form {
	return map[string]form{
		"kill":                       {on: aReplica},
		"stop":                       {on: aReplica},
		"stop-short":                 {on: aReplica, required: []string{"grace"}},
		"freeze":                     {on: aReplica},
		"restart-with":               {on: aReplica, optional: []string{"flags"}},
		"clock":                      {on: aReplica, required: []string{"offset"}},
		"api-away":                   {on: orAll(aReplica)},
		"api-slow":                   {on: orAll(aReplica), required: []string{"by"}},
		"api-errors":                 {on: orAll(aReplica), optional: []string{"code", "percent", "resource"}},
		"lose-answers":               {on: orAll(aReplica), optional: []string{"percent"}},
		"drop-requests":              {on: orAll(aReplica), optional: []string{"percent"}},
		"cut-lists":                  {on: orAll(aReplica)},
		"hang-writes":                {on: orAll(aResource)},
		withdrawPermissions:          {on: orAll(aResource), required: []string{"verbs"}},
		withdrawWrites:               {on: aResource, required: []string{"verbs"}},
		"withdraw-graph-permissions": {on: nothing},
		"lag":                        {on: aReplica, optional: []string{"by"}},
		"hold-watches":               {on: orAll(aResource)},
		"fold-watches":               {on: orAll(aResource)},
		"break-watches":              {on: orAll(aResource)},
		"close-watches":              {on: orAll(aResource)},
		"expire-watches":             {on: orAll(aResource)},
		"compact":                    {on: nothing},
		"hang-watches":               {on: orAll(aResource)},
		"abandon-watches":            {on: orAll(aResource)},
		stopLists:                    {on: aResource, required: []string{"how"}},
		restoreEtcd:                  {on: nothing, required: []string{"by"}},
		takeDefinition:               {on: aCustomKind, required: []string{"way"}},
		"webhook-away":               {on: nothing},
		"webhook-hangs":              {on: nothing},
		"webhook-flaky":              {on: nothing, optional: []string{"percent"}},
		"foreign-webhook":            {on: aNamespace, optional: []string{"mode"}},
		"slow-controllers":           {on: nothing},
		strippingWebhook:             {on: aStrippedScope, required: []string{stripsWhat, stripsFrom, stripsWhen}},
		"reconfigure":                {on: nothing, optional: []string{"flags"}},
		changeFlag:                   {on: nothing, required: []string{"flags"}},
	}
}

// checkFault refuses what is no target of a fault, and parameters that make no sense.
func checkFault(step history.Step) error {
	f, known := forms()[step.Do]
	if !known {
		return fmt.Errorf("has no form in check.go: add %q to forms", step.Do)
	}
	if err := f.on(step.On); err != nil {
		return fmt.Errorf("on: %w", err)
	}
	for _, key := range f.required {
		if step.With[key] == "" {
			return fmt.Errorf("with.%s: missing", key)
		}
	}
	takes := slices.Concat([]string{"for"}, f.required, f.optional)
	for _, key := range slices.Sorted(maps.Keys(step.With)) {
		if !slices.Contains(takes, key) {
			return fmt.Errorf("with.%s: unknown parameter of %s, which takes %s", key, step.Do, strings.Join(takes, ", "))
		}
		if err := checkParameter(step.Do, key, step.With[key]); err != nil {
			return fmt.Errorf("with.%s: %w", key, err)
		}
	}
	return nil
}

func nothing(on string) error {
	if on != "" {
		return fmt.Errorf("%q: the fault is about the whole installation; remove it", on)
	}
	return nil
}

func aReplica(on string) error {
	if n, is := replicaNumber(on); !is || n >= history.MostReplicas {
		return fmt.Errorf("%q is no replica, from replica-0 to replica-%d", on, history.MostReplicas-1)
	}
	return nil
}

func aStrippedScope(on string) error { return oneOf(on, strippedScopes()...) }

func aNamespace(on string) error { return oneOf(on, "namespaces/shop", "namespaces/bank") }

// aResource accepts the resources of which the program makes requests.
func aResource(on string) error {
	var names []string
	for _, resource := range slices.Concat(world.Resources(), world.GraphResources()) {
		names = append(names, resource.Plural)
	}
	slices.Sort(names)
	return oneOf(on, slices.Compact(names)...)
}

// orAll accepts nothing as well: the fault is then about all of them.
func orAll(check func(string) error) func(string) error {
	return func(on string) error {
		if on == "" {
			return nil
		}
		return check(on)
	}
}

func oneOf(value string, of ...string) error {
	if !slices.Contains(of, value) {
		return fmt.Errorf("%q is none of %s", value, strings.Join(of, ", "))
	}
	return nil
}

// choices has the values of the parameters that are one of a few.
func choices() map[string][]string {
	return map[string][]string{
		"code": {"401", "403", "409", "410", "429", "500", "503", "504"}, // those of refusal
		"how":  {howSilent, howPart, howShort},
		"mode": {"reject", "hang"},
		"way":  {wayDeleted, wayDeletedUnseen, wayUnserved, wayContradicted},

		stripsWhat: {stripLastReload, stripRecord, stripHash, stripRequest, stripAll},
		stripsFrom: {fromAll, fromProgram},
		stripsWhen: {whenBefore, whenAfter},
	}
}

// checkParameter checks the value of a parameter. An empty one means the default.
func checkParameter(fault, key, value string) error {
	if value == "" {
		return nil
	}
	if of, is := choices()[key]; is {
		return oneOf(value, of...)
	}
	switch key {
	case "by":
		if fault == "lag" {
			return checkNumber(value, 0, 10_000)
		}
		return checkDuration(value)
	case "for", "grace":
		return checkDuration(value)
	case "offset":
		return checkDuration(strings.TrimPrefix(value, "-"))
	case "percent":
		return checkNumber(value, 1, 100)
	case "flags":
		return CheckFlags(splitFlags(value))
	case "verbs":
		return checkVerbs(value)
	case "resource":
		return aResource(value)
	}
	return errors.New("is not known; remove it")
}

func checkVerbs(value string) error {
	for _, verb := range splitVerbs(value) {
		if err := oneOf(verb, "get", "list", "watch", "create", "update", "patch", "delete"); err != nil {
			return err
		}
	}
	return nil
}

// longestFault keeps a run within a day of fake time.
const longestFault = 24 * time.Hour

func checkDuration(value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no duration, such as 300ms or 2m", value)
	}
	if d > longestFault {
		return fmt.Errorf("%s is longer than %s", value, longestFault)
	}
	return nil
}

func checkNumber(value string, least, most int) error {
	if n, err := strconv.Atoi(value); err != nil || n < least || n > most {
		return fmt.Errorf("%q is no number from %d to %d", value, least, most)
	}
	return nil
}
