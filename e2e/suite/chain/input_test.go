package chain_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is wrong in a configuration is named with its place. The sub-command reads a file as the controller does.
func TestInvalidConfigurationIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		items string
		want  []string
	}{
		"a dangling id":            {`[{id: a, gvr: {group: a.io, version: v1, resource: as}, refs: [{to: secrets, name: spec.a}, {to: bs, name: spec.b}]}]`, []string{`referents[0].refs[1].to: Invalid value: "bs": no resource has this id`}},
		"a JSONPath":               {`[{id: a, gvr: {group: a.io, version: v1, resource: as}, refs: [{to: secrets, name: "spec.refs[*.name"}]}]`, []string{`referents[0].refs[0].name: Invalid value: "spec.refs[*.name": byte `}},
		"a JSONPath of conditions": {`[{id: a, gvr: {group: a.io, version: v1, resource: as}, ready: {conditions: [{type: Ready, path: "status."}]}}]`, []string{`referents[0].ready.conditions[0].path: Invalid value: "status."`}},
		"no group":                 {`[{id: a, gvr: {version: v1, resource: configmaps}}]`, []string{`referents[0].gvr.group: Required`, "ConfigMaps and Secrets are built in"}},
		"a resource twice":         {`[{id: a, gvr: {group: a.io, version: v1, resource: as}}, {id: b, gvr: {group: a.io, version: v2, resource: as}}]`, []string{`referents[1].gvr: Invalid value: "as.a.io": referents[0] is this resource already`}},
		"an id twice":              {`[{id: a, gvr: {group: a.io, version: v1, resource: as}}, {id: a, gvr: {group: a.io, version: v1, resource: bs}}]`, []string{`referents[1].id: Invalid value: "a": referents[0] has this id already`}},
		"a referrer that is none":  {`[{id: a, gvr: {group: a.io, version: v1, resource: as}, referrers: [{from: secrets, name: x}]}]`, []string{`referents[0].referrers[0].from: Invalid value: "secrets"`}},
		"a namespace in vain":      {`[{id: a, gvr: {group: a.io, version: v1, resource: as}, refs: [{to: secrets, name: x.y, namespaces: [b]}]}]`, []string{`referents[0].refs[0].namespaces: Forbidden`}},
		"crc32 over an HMAC":       {`[{id: a, gvr: {group: a.io, version: v1, resource: as}, algorithm: crc32, refs: [{to: b, name: x.y}]}, {id: b, gvr: {group: a.io, version: v1, resource: bs}}]`, []string{`referents[0].algorithm: Invalid value: "crc32": referents[1] is below it`}},
		"too many":                 {`[` + strings.Repeat(`{id: a, gvr: {group: a.io, version: v1, resource: as}}, `, 65) + `]`, []string{`referents: Too many: 65: must have at most 64 items`}},
		"too deep":                 {deepConfiguration(18), []string{`17 references follow each other: the limit is 16`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "config.yaml")
			text := "apiVersion: pod-reloader.io/v1alpha1\nkind: Configuration\nreferents: " + c.items + "\n"
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			_, err := shared.Graph(t.Context(), "--config="+file)
			require.Error(t, err)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

// deepConfiguration is a list of resources each of which refers to the next one.
func deepConfiguration(n int) string {
	var items []string
	for i := range n {
		name := "r" + string(rune('a'+i))
		item := `{id: ` + name + `, gvr: {group: a.io, version: v1, resource: ` + name + `s}`
		if i < n-1 {
			item += `, refs: [{to: ` + "r" + string(rune('b'+i)) + `, name: spec.next}]`
		}
		items = append(items, item+`}`)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// A workload can name a resource that the configuration does not have, or an object that does not exist: other workloads restart as before.
func TestUnknownResourcesOfAWorkload(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	user, warnings := s.Warned()
	s.make("Part", "root", `{size: 1}`)
	other := s.tracks("other", theParts+"root")
	u := &graphFixture{Fixture: user, rolled: s.rolled}
	u.tracksHeld("typo", "partz.chain.example.com/root")
	u.tracksHeld("form", "parts.chain.example.com")
	missing := u.tracksHeld("missing", theParts+"absent")
	assert.Contains(t, strings.Join(warnings.Take(), "\n"), "partz.chain.example.com")
	s.AwaitEvent(missing, "ReferentHeld", theParts+"absent: missing")
	s.edit("Part", "root", `{"size":2}`)
	s.rolls(other, "another workload")
}
