package annotation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// unlisted are objects of which only those that were read are known: their kinds may not be listed.
type unlisted struct{ annotation.Listed }

func (u unlisted) Traits(ref reference.Ref) (annotation.Traits, bool) {
	if traits, read := u.Listed[ref]; read {
		return traits, true
	}
	return annotation.Traits{Unseen: true}, false
}

func TestUnseenObjectIsTrackedAndRecordedAsUnseen(t *testing.T) {
	t.Parallel()
	app, other := configMap("app"), configMap("other")
	references := []reference.Reference{{Ref: app}}
	for name, tc := range map[string]struct {
		reason          string
		workload        map[string]string
		read            annotation.Listed
		recorded        recorded
		tracked, unseen []reference.Ref
	}{
		"referenced": {
			reason: "It may be ignored, or not.", workload: map[string]string{autoKey: "true"},
			tracked: []reference.Ref{app}, unseen: []reference.Ref{app},
		},
		"listed": {
			reason: "The same.", workload: map[string]string{cmReloadKey: "other"},
			tracked: []reference.Ref{other}, unseen: []reference.Ref{other},
		},
		"searched and recorded": {
			reason: "It had the mark.", workload: map[string]string{searchKey: "true"}, recorded: recorded{refs: []reference.Ref{app}},
			tracked: []reference.Ref{app}, unseen: []reference.Ref{app},
		},
		"matched and recorded": {
			reason: "It may be ignored, or not.", workload: map[string]string{cmReloadKey: "o.*"}, recorded: recorded{refs: []reference.Ref{other}},
			tracked: []reference.Ref{other}, unseen: []reference.Ref{other},
		},
		"searched": {reason: "An object without the mark is not tracked.", workload: map[string]string{searchKey: "true"}},
		"recorded, not matched": {
			reason: "No annotation asks for it.", workload: map[string]string{cmReloadKey: "a.*"}, recorded: recorded{refs: []reference.Ref{other}},
		},
		"referenced, read":          {reason: "It is not ignored.", workload: map[string]string{autoKey: "true"}, read: annotation.Listed{app: {}}, tracked: []reference.Ref{app}},
		"referenced, read, ignored": {reason: "It is.", workload: map[string]string{autoKey: "true"}, read: annotation.Listed{app: {Ignored: true}}},
		"searched and recorded, read": {
			reason: "It has the mark no more.", workload: map[string]string{searchKey: "true"}, recorded: recorded{refs: []reference.Ref{app}},
			read: annotation.Listed{app: {}},
		},
		"matched and recorded, read, ignored": {
			reason: "It is.", workload: map[string]string{cmReloadKey: "o.*"}, recorded: recorded{refs: []reference.Ref{other}},
			read: annotation.Listed{other: {Ignored: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := annotation.Source{Workload: tc.workload, References: references}
			parsed, _ := annotation.Parse(src, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
			intent, problems := annotation.Resolve(parsed, unlisted{tc.read}, tc.recorded, references)
			assert.Empty(t, problems)
			assert.Equal(t, tc.tracked, intent.Refs(), tc.reason)
			var unseen map[reference.Ref]bool
			for _, ref := range tc.unseen {
				unseen = map[reference.Ref]bool{ref: true}
			}
			assert.Equal(t, unseen, intent.Unseen, tc.reason)
			assert.Empty(t, parsed.Unseen, "the unresolved Intent is not written to")
		})
	}
}
