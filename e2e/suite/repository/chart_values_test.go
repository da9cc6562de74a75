package repository

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
	"github.com/pod-reloader/pod-reloader/pkg/configuration"
)

const (
	valuesFile = "chart/pod-reloader/values.yaml"
	schemaFile = "chart/pod-reloader/values.schema.json"
	chartPage  = "chart/pod-reloader/README.md"
	tableStart = "<!-- The table is generated from values.yaml: go test ./e2e/suite/repository -run TestChartDescribesItsValues -update -->\n"
	tableEnd   = "<!-- End of the table. -->\n"
)

var (
	update   = flag.Bool("update", false, "write descriptions of values into the chart's schema and README")
	valueKey = regexp.MustCompile(`^( *)([A-Za-z_]+):`)
)

// values are those of the chart, with what the comments say about them.
type values struct {
	defaults map[string]any
	comments map[string]string
	order    []string
}

// readValues reads the defaults and the comment of each key, by its path. A key without a comment, right below another one,
// has the same comment.
func readValues(t *testing.T) values {
	t.Helper()
	text := read(t, valuesFile)
	v := values{comments: map[string]string{}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &v.defaults))
	var path []string
	var comment []string
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		match := valueKey.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(trimmed, "#"):
			comment = append(comment, strings.TrimSpace(strings.TrimPrefix(trimmed, "#")))
		case match == nil:
			comment = nil
		default:
			path = append(path[:min(len(path), len(match[1])/2)], match[2])
			key := strings.Join(path, ".")
			if v.comments[key] = strings.Join(comment, " "); len(comment) == 0 && len(v.order) > 0 {
				v.comments[key] = v.above(key)
			}
			v.order = append(v.order, key)
			comment = nil
		}
	}
	return v
}

// above is the comment of the key in the line before, if it has the same parent.
func (v values) above(key string) string {
	previous := v.order[len(v.order)-1]
	if parent(previous) == parent(key) {
		return v.comments[previous]
	}
	return ""
}

func parent(key string) string { return key[:max(strings.LastIndex(key, "."), 0)] }

// schema is a node of the JSON schema.
type schema = map[string]any

// Each value has a description, which the schema and the README repeat, and a type in the schema; the schema knows no others.
func TestChartDescribesItsValues(t *testing.T) {
	t.Parallel()
	v := readValues(t)
	var root schema
	require.NoError(t, json.Unmarshal([]byte(read(t, schemaFile)), &root))
	var rows []string
	v.describe(t, root, nil, v.defaults, &rows)
	root["definitions"] = kubernetesDefinitions()
	table := "| value | default | description |\n|---|---|---|\n" + strings.Join(v.sorted(rows), "")

	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(root))
	page := read(t, chartPage)
	before, rest, found := strings.Cut(page, tableStart)
	require.True(t, found, "%s has no %q", chartPage, tableStart)
	_, after, found := strings.Cut(rest, tableEnd)
	require.True(t, found, "%s has no %q after the table", chartPage, tableEnd)
	wantPage := before + tableStart + table + tableEnd + after
	if *update {
		write(t, schemaFile, want.String())
		write(t, chartPage, wantPage)
	}
	// The file is too long for a message that has it twice.
	assert.True(t, want.String() == read(t, schemaFile), "%s has other descriptions or types: run the test with -update and look at the difference", schemaFile) //nolint:testifylint // see above
	assert.Equal(t, wantPage, read(t, chartPage), "run the test with -update")
}

// describe writes the comments of values into their nodes of the schema, and a row of the table for each value.
func (v values) describe(t *testing.T, node schema, path []string, defaults map[string]any, rows *[]string) {
	t.Helper()
	properties, _ := node["properties"].(schema)
	for name := range properties {
		if _, known := defaults[name]; !known {
			// enabled is for parent charts. certManager has been replaced, which an error of the templates says.
			assert.Contains(t, []string{"enabled", "certManager"}, strings.Join(append(path, name), "."), "values.yaml lacks what the schema has")
		}
	}
	if _, described := node["additionalProperties"]; described {
		node["required"] = required(defaults, properties)
	}
	for name, value := range defaults {
		at := append(slices.Clone(path), name)
		key := strings.Join(at, ".")
		child, known := properties[name].(schema)
		if !known {
			require.True(t, *update, "the schema lacks %s; run the test with -update, then write its type", key)
			child = inferred(value)
			properties[name] = child
		}
		comment := v.comments[key]
		if comment != "" {
			child["description"] = comment
		}
		nested, isMap := value.(map[string]any)
		if _, described := child["properties"]; isMap && described && child["additionalProperties"] != nil && len(nested) > 0 && !v.whole(key) {
			v.describe(t, child, at, nested, rows)
			continue
		}
		assert.NotEmpty(t, comment, "%s: %s has no comment", valuesFile, key)
		encoded, err := json.Marshal(value)
		require.NoError(t, err)
		*rows = append(*rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", key, encoded, strings.ReplaceAll(comment, "|", `\|`)))
	}
}

// required are the values that must not be removed by null: with nothing in their place, templates would fail, or the API server
// would take another default, such as failurePolicy Fail.
func required(defaults map[string]any, properties schema) []any {
	names := []any{}
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		child, _ := properties[name].(schema)
		switch value := defaults[name].(type) {
		case bool, float64:
			names = append(names, name)
		case string:
			if value != "" {
				names = append(names, name)
			}
		case []any:
			if child["minItems"] != nil {
				names = append(names, name)
			}
		case map[string]any:
			if child["additionalProperties"] == false && child["patternProperties"] == nil && len(value) > 0 {
				names = append(names, name)
			}
		}
	}
	return names
}

// whole reports whether a value is described as one, although the schema knows its fields.
func (v values) whole(key string) bool {
	return key == "updateStrategy"
}

func inferred(value any) schema {
	switch value := value.(type) {
	case bool:
		return schema{"type": "boolean"}
	case string:
		return schema{"type": "string"}
	case float64, int64:
		return schema{"type": "integer"}
	case []any:
		return schema{"type": "array"}
	case map[string]any:
		if len(value) > 0 {
			return schema{"type": "object", "additionalProperties": false, "properties": schema{}}
		}
	}
	return schema{"type": "object"}
}

// sorted brings rows into the order of values.yaml.
func (v values) sorted(rows []string) []string {
	position := func(row string) int {
		key, _, _ := strings.Cut(strings.TrimPrefix(row, "| `"), "`")
		return slices.Index(v.order, key)
	}
	slices.SortFunc(rows, func(a, b string) int { return position(a) - position(b) })
	return rows
}

// The fields of a Configuration are values of the chart.
func TestChartRendersTheWholeConfiguration(t *testing.T) {
	t.Parallel()
	rendered := template(t, tool(t, "helm", "helm"), "workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A",
		"workloadKinds[0].template=spec.t", "workloadKinds[0].resource=as",
		"referents[0].id=b", "referents[0].gvr.group=b.io", "referents[0].gvr.version=v1", "referents[0].gvr.resource=bs", "referents[0].publish=true",
		"referents[0].workloads.ownedBy=true", "referents[0].workloads.selector=app=the-{name}")
	text, _ := field(t, rendered["ConfigMap pod-reloader/pod-reloader"], "data", "config.yaml").(string)
	_, err := configuration.Parse([]byte(text))
	require.NoError(t, err, text)
	var fields map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &fields))
	rules := fmt.Sprint(field(t, rendered["ClusterRole /pod-reloader"], "rules"))
	assert.Contains(t, rules, "map[apiGroups:[b.io] resources:[bs] verbs:[get list watch patch]]")
	webhook := fmt.Sprint(field(t, rendered["MutatingWebhookConfiguration /pod-reloader"], "webhooks"))
	assert.Contains(t, webhook, `o.metadata.ownerReferences.exists(r, r.apiVersion.startsWith("b.io/"))`)
	assert.Contains(t, webhook, `has(o.metadata.labels) && "app" in o.metadata.labels`)
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)`(?:, `([A-Za-z]+)`)? \\|").FindAllStringSubmatch(read(t, "docs/configuration.md"), -1) {
		for _, name := range match[1:] {
			if name != "" {
				assert.Contains(t, fields, name, "the chart has no value for the field %s of docs/configuration.md", name)
			}
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(toolchain.RootOf(t), file), []byte(text), 0o600))
}
