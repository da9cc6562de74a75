package reload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// confirming is a Store that counts what is read live. Of all objects only some exist.
type confirming struct {
	reloadtest.Store
	exist []reference.Ref
	reads int
}

func (c *confirming) ReadLive(_ context.Context, _ string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	c.reads += len(refs)
	states := map[reference.Ref]digest.State{}
	for _, ref := range refs {
		states[ref] = digest.State{Absent: !slices.Contains(c.exist, ref)}
	}
	return states, nil
}

// reporting has the two reports of a workload, for which the same objects are missing.
type reporting struct {
	loop  *loop
	store *confirming
	out   *reloadtest.Outbox
	now   time.Time
}

func newReporting() *reporting {
	r := &reporting{store: &confirming{}, out: &reloadtest.Outbox{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.loop = newLoop(loopDependencies{Dependencies: Dependencies{Events: r.out, Store: r.store}}, Options{Now: func() time.Time { return r.now }})
	return r
}

// reports are the reports that read live, by the begin of their text.
var reports = map[string]func(r *reporting, t *testing.T, absent []reference.Ref){
	"not found in this namespace: ":           (*reporting).missing,
	"reload held: new pods could not start: ": (*reporting).held,
}

func (r *reporting) missing(t *testing.T, absent []reference.Ref) {
	t.Helper()
	in, web := policy.Input{Refs: absent, Current: map[reference.Ref]digest.State{}}, reloadtest.Web(t)
	for _, ref := range absent {
		in.Current[ref] = digest.State{Absent: true}
		web.View.Intent.ConfigMaps = append(web.View.Intent.ConfigMaps, ref.Name)
	}
	r.loop.problems.report(t.Context(), web, in, nil)
}

func (r *reporting) held(t *testing.T, absent []reference.Ref) {
	t.Helper()
	verdict := policy.Verdict{}
	if len(absent) > 0 {
		for _, ref := range absent {
			verdict.Changes = append(verdict.Changes, policy.Change{Ref: ref, Type: policy.Deleted})
		}
		verdict.Action = policy.Hold
		verdict.Reason = policy.HeldBy(policy.Describe(verdict.Changes))
	}
	r.loop.problems.reportHold(t.Context(), reloadtest.Web(t), verdict)
}

// valid returns the text of the Event that holds now; empty if none does.
func (r *reporting) valid(t *testing.T) string {
	t.Helper()
	text := ""
	for _, m := range r.out.Messages {
		if m.Valid() && m.Event.Note != text {
			require.Empty(t, text, "one at a time")
			text = m.Event.Note
		}
	}
	return text
}

func numberedRefs(n int) []reference.Ref {
	var refs []reference.Ref
	for i := range n {
		refs = append(refs, reference.Ref{Kind: reference.ConfigMap, Name: fmt.Sprintf("m%04d", i)})
	}
	return refs
}

// A workload can list a thousand names, and many workloads can.
func TestOnlyNamedObjectsAreReadLive(t *testing.T) {
	t.Parallel()
	all := numberedRefs(1000)
	for name, c := range map[string]struct {
		absent, exist []reference.Ref
		reads         int
		missing, held string // the end of each text; empty if there is none
	}{
		"one":           {absent: all[:1], reads: 1, missing: "configmap/m0000; check", held: "configmap/m0000 deleted; create"},
		"all are named": {absent: all[:8], reads: 8, missing: "configmap/m0007; check", held: "configmap/m0007 deleted; create"},
		"one more": {
			absent: all[:9], reads: 8, missing: "configmap/m0007 and up to 1 more; check", held: "configmap/m0007 deleted and up to 1 more; create",
		},
		"a thousand": {
			absent: all, reads: 8, missing: "configmap/m0007 and up to 992 more; check", held: "configmap/m0007 deleted and up to 992 more; create",
		},
		"some of those named exist": {absent: all, exist: all[1:8], reads: 8, missing: ": configmap/m0000 and up to 992 more; check"},
		"all of those named exist":  {absent: all, exist: all[:8], reads: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for begin, report := range reports {
				want := c.missing
				if strings.HasPrefix(begin, "reload held") {
					want = c.held
				}
				r := newReporting()
				r.store.exist = c.exist
				report(r, t, slices.Clone(c.absent))
				assert.Equal(t, c.reads, r.store.reads, "requests of one look at %q", begin)
				if want == "" {
					assert.Empty(t, r.out.Messages, "nothing is known to be missing")
					continue
				}
				require.Len(t, r.out.Messages, 1, begin)
				assert.True(t, strings.HasPrefix(r.out.Notes()[0], begin), r.out.Notes()[0])
				assert.Contains(t, r.out.Notes()[0], want)
				if len(c.absent) > 1 {
					assert.Nil(t, r.out.Messages[0].Event.Related, "it is about several")
				}
				report(r, t, slices.Clone(c.absent))
				if len(c.exist) == 0 {
					assert.Equal(t, c.reads, r.store.reads, "the same is no news")
				}
			}
		})
	}
}

// One name that comes and goes all the time changes the text for each workload that lists it.
func TestMissingObjectsThatChangeAllTheTimeAreReadAtTheRateOfTheirEvents(t *testing.T) {
	t.Parallel()
	listed := numberedRefs(20)
	for behind, what := range map[bool]string{false: "the caches are up to date", true: "the caches are behind: it is there whenever they lack it"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for begin, report := range reports {
				r := newReporting()
				began := r.now
				for i := range 600 {
					comes := i%2 == 1
					r.store.exist = nil
					if comes || behind {
						r.store.exist = listed[:1]
					}
					absent := listed
					if comes {
						absent = listed[1:]
					}
					report(r, t, slices.Clone(absent))
					if slices.Contains(r.store.exist, listed[0]) {
						assert.NotContains(t, r.valid(t), listed[0].String(), "what exists is not missing, after %s", r.now.Sub(began))
					}
					r.now = r.now.Add(time.Second)
				}
				assert.LessOrEqual(t, r.store.reads, (8+10)*reference.MaxNamed, "eight at once, and one each minute: %s", begin)
				assert.LessOrEqual(t, len(r.out.Messages), 4+10, begin)
				if !behind {
					assert.GreaterOrEqual(t, len(r.out.Messages), 4+9, "Events are written all the same: %s", begin)
				}
				for _, m := range r.out.Messages {
					assert.Zero(t, m.Delay, "what is checked now is written now, else it is replaced before it is written: %s", begin)
				}

				// It ends. The workload is looked at when the next Event may be written.
				r.store.exist = nil
				report(r, t, slices.Clone(listed))
				again := r.loop.state.Warnings.Again(reloadtest.Web(t).Key, r.now)
				if r.valid(t) == "" {
					require.Positive(t, again, "nothing else brings it back")
					require.LessOrEqual(t, again, time.Minute)
					r.now = r.now.Add(again)
					report(r, t, slices.Clone(listed))
				}
				assert.Contains(t, r.valid(t), listed[0].String(), begin)
				report(r, t, nil)
				assert.Empty(t, r.valid(t), "all are there")
			}
		})
	}
}
