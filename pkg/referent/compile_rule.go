package referent

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watch/jsonpath"
)

// selfRule says what of an object is in its parents' entries.
type selfRule struct {
	rule   string // SelfContent, SelfGeneration, SelfNone or selfFields
	fields []jsonpath.Path
}

const selfFields = "fields"

func (c *compiler) selfRule(path *field.Path, d SelfDefinition) selfRule {
	switch {
	case len(d.Fields) > 0 && d.Rule != "":
		c.invalid(path, d.Rule, "want either a rule or fields")
	case len(d.Fields) > 0:
		rule := selfRule{rule: selfFields}
		for i, expression := range d.Fields {
			at := path.Child("fields").Index(i)
			compiled, ok := c.expression(at, expression)
			if ok && readsVersion(compiled) {
				c.invalid(at, expression, "it includes fields that change with every write, such as metadata.resourceVersion")
			}
			rule.fields = append(rule.fields, compiled)
		}
		return rule
	case d.Rule == "":
		return selfRule{rule: SelfContent}
	case !slices.Contains([]string{SelfContent, SelfGeneration, SelfNone}, d.Rule):
		c.add(field.NotSupported(path, reference.Shorten(d.Rule), []string{SelfContent, SelfGeneration, SelfNone}))
	}
	return selfRule{rule: d.Rule}
}

// readsVersion reports whether a field changes with every write: a re-encryption of the stored objects would then restart
// every workload.
func readsVersion(fields jsonpath.Path) bool {
	return slices.ContainsFunc([]string{"metadata.resourceVersion", "metadata.managedFields"}, func(text string) bool {
		volatile, _ := jsonpath.Parse(text)
		return slices.ContainsFunc(fields.Reads(), volatile.Overlaps)
	})
}

// readyRule says when an object can be used.
type readyRule struct {
	observed   *jsonpath.Path // nil: not asked for
	conditions []conditionRule
}

type conditionRule struct {
	lists            jsonpath.Path
	kind, status, at string
}

func (c *compiler) readyRule(path *field.Path, d ReadyDefinition) readyRule {
	rule := readyRule{}
	if d.ObservedGeneration != "" {
		at := path.Child("observedGeneration")
		if compiled, ok := c.expression(at, d.ObservedGeneration); ok {
			rule.observed = &compiled
			if !compiled.Plain() {
				c.invalid(at, d.ObservedGeneration, "want one field, such as status.observedGeneration")
			}
		}
	}
	for i, definition := range d.Conditions {
		rule.conditions = append(rule.conditions, c.condition(path.Child("conditions").Index(i), definition))
	}
	return rule
}

func (c *compiler) condition(path *field.Path, d ConditionDefinition) conditionRule {
	if d.Type == "" {
		c.add(field.Required(path.Child("type"), "the type of the condition, e.g. Ready"))
	}
	if d.Status == "" {
		d.Status = "True"
	}
	if statuses := []string{"True", "False", "Unknown"}; !slices.Contains(statuses, d.Status) {
		c.add(field.NotSupported(path.Child("status"), reference.Shorten(d.Status), statuses))
	}
	if d.Path == "" {
		d.Path = "status.conditions"
	}
	lists, _ := c.expression(path.Child("path"), d.Path)
	return conditionRule{lists: lists, kind: d.Type, status: d.Status, at: d.Path}
}
