package webhook

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPurgedAnnotationLeavesNoOwner(t *testing.T) {
	t.Parallel()
	const key = "pod-reloader.cs.sap.com/config-hash"
	const within = "/fieldsV1/f:metadata/f:annotations/f:pod-reloader.cs.sap.com~1config-hash"
	only := `{"manager":"pod-reloader","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:` + key + `":{}}}}}`
	more := `{"manager":"client","fieldsV1":{"f:metadata":{"f:annotations":{"f:` + key + `":{},"f:x":{}}}}}`
	spec := `{"manager":"client","fieldsV1":{"f:metadata":{"f:annotations":{"f:` + key + `":{}}},"f:spec":{}}}`
	label := `{"manager":"client","fieldsV1":{"f:metadata":{"f:labels":{},"f:annotations":{"f:` + key + `":{}}}}}`
	none := `{"manager":"kubectl","fieldsV1":{"f:metadata":{"f:annotations":{"f:x":{}}}}}`
	tests := map[string]struct {
		reason, entries string
		paths           []string
	}{
		"nothing":             {reason: "There is no owner.", entries: `null`},
		"no list":             {reason: "What is not of the API's shape is left alone.", entries: `"x"`},
		"odd entries":         {reason: "What is not of the API's shape is left alone.", entries: `[1,{"fieldsV1":[]},null]`},
		"another field":       {reason: "It is not ours.", entries: `[` + none + `]`},
		"an entry of its own": {reason: "Without it the write changes nothing at all.", entries: `[` + none + `,` + only + `]`, paths: []string{"/metadata/managedFields/1"}},
		"with an annotation":  {reason: "The rest is still owned.", entries: `[` + more + `]`, paths: []string{"/metadata/managedFields/0" + within}},
		"with the spec":       {reason: "The rest is still owned.", entries: `[` + spec + `]`, paths: []string{"/metadata/managedFields/0" + within}},
		"with a label":        {reason: "The rest is still owned.", entries: `[` + label + `]`, paths: []string{"/metadata/managedFields/0" + within}},
		"several": {
			reason: "From the last to the first, so that indexes hold.", entries: `[` + only + `,` + more + `,` + only + `]`,
			paths: []string{"/metadata/managedFields/2", "/metadata/managedFields/1" + within, "/metadata/managedFields/0"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var raw map[string]any
			require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"managedFields":`+tc.entries+`}}`), &raw))
			var paths []string
			for _, op := range disown(raw, key) {
				assert.Equal(t, "remove", op.Operation)
				paths = append(paths, op.Path)
			}
			assert.Equal(t, tc.paths, paths, tc.reason)
		})
	}
}
