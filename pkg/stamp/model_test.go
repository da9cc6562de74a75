package stamp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// model says, independently of the marks, which content the pods are to be taken to have. The content of an absent
// object is "-".
type model struct {
	*world
	// stamped is the content at the last stamp, adopted what was taken as known since.
	stamped, adopted map[reference.Ref]string
	// asked says why the write under way may restart pods although no content changed.
	asked string
	// history has earlier versions of the workload.
	history []map[string]any
	steps   int
}

func newModel(t testing.TB) *model {
	t.Helper()
	m := &model{world: newWorld(t), stamped: map[reference.Ref]string{}, adopted: map[reference.Ref]string{}}
	m.written = m.judge
	return m
}

func (m *model) content(ref reference.Ref) string {
	if c, ok := m.configs[ref]; ok {
		return c.data
	}
	return "-"
}

func (m *model) contents(refs []reference.Ref) map[reference.Ref]string {
	contents := map[reference.Ref]string{}
	for _, ref := range refs {
		contents[ref] = m.content(ref)
	}
	return contents
}

// knows returns what the pods are taken to have of an object.
func (m *model) knows(ref reference.Ref) (string, bool) {
	if content, ok := m.adopted[ref]; ok {
		return content, true
	}
	content, ok := m.stamped[ref]
	return content, ok
}

// due returns the tracked objects that call for a restart.
func (m *model) due(view View) []reference.Ref {
	var due []reference.Ref
	for ref := range view.Intent.Tracked {
		if known, ok := m.knows(ref); ok && m.triggers(view, ref, known) {
			due = append(due, ref)
		}
	}
	return due
}

func (m *model) triggers(view View, ref reference.Ref, known string) bool {
	now, trigger := m.content(ref), view.Intent.Tracked[ref]
	switch {
	case known == now:
		return false
	case known == "-":
		return trigger.OnCreate && !view.Required[ref]
	case now == "-":
		return trigger.OnDelete
	}
	return true
}

// missing tells whether an object that pods need was taken away.
func (m *model) missing(view View) bool {
	for ref := range view.Intent.Tracked {
		if known, ok := m.knows(ref); ok && known != "-" && m.content(ref) == "-" && view.Required[ref] {
			return true
		}
	}
	return false
}

// judge checks every version that is stored.
func (m *model) judge(old, stored map[string]any) {
	view := m.view()
	before := workload.Object{Kind: m.kind, Raw: old}
	changed := old == nil || !before.SameTemplate(m.object())
	released := old == nil || !before.SameTemplate(m.object(), m.keys.ConfigHash, m.keys.ConfigRecord)
	if changed && !released && m.asked == "" && len(m.due(view)) == 0 {
		m.fail("restarted for nothing")
	}
	looked := !view.Excluded && len(view.Intent.Tracked) > 0
	switch {
	case !looked:
		clear(m.adopted)
		if released {
			clear(m.stamped)
		}
	case old == nil && m.unreadable:
		clear(m.stamped)
		clear(m.adopted)
	case changed && !m.unreadable:
		m.stamped = m.contents(view.Intent.Refs())
		clear(m.adopted)
	}
	m.observe(view, looked)
	m.history = append(m.history, clone(m.t, stored))
	if len(m.history) > 8 {
		m.history = m.history[1:]
	}
}

// observe takes over what was adopted, after making sure that it was there to be adopted.
func (m *model) observe(view View, looked bool) {
	if !looked {
		return
	}
	for ref := range view.Intent.Tracked {
		item, inMarks := view.Marks.Known().Items[ref]
		if _, owned := m.ring.Key(item.Key); !inMarks || !item.Absent() && !owned {
			continue
		}
		entry, _ := m.state(ref).Entry(item.Key)
		isLive := item.Absent() && m.content(ref) == "-" || m.content(ref) != "-" && entry.Short() == item.Entry
		known, knew := m.knows(ref)
		adoptable := !knew || known == "-" && !m.triggers(view, ref, known)
		switch {
		case knew && known == m.content(ref) && !isLive:
			m.fail("marks say something else of " + ref.String() + " than is known and live")
		case isLive && known != m.content(ref) && !adoptable:
			m.fail("a change of " + ref.String() + " was hidden")
		case isLive && adoptable:
			m.adopted[ref] = m.content(ref)
		case !knew && !isLive:
			m.fail("something else than the live state of " + ref.String() + " was adopted")
		}
	}
}

func (m *model) fail(why string) {
	m.t.Helper()
	require.Fail(m.t, why, "stamped %v\nadopted %v\nconfigs %v\nmarks %v\nafter:\n%s",
		m.stamped, m.adopted, m.configs, m.marks(), strings.Join(m.trace, "\n"))
}

// settle runs the loop to rest and makes sure that nothing was left.
func (m *model) settle() {
	m.unreadable = false
	m.quiesce()
	view := m.view()
	if view.Excluded || len(view.Intent.Tracked) == 0 {
		return
	}
	if due := m.due(view); len(due) > 0 && !m.missing(view) {
		m.fail(fmt.Sprintf("changes were left: %v", due))
	}
	if !m.missing(view) && !m.lost() {
		for ref := range view.Intent.Tracked {
			if _, ok := m.knows(ref); !ok {
				m.fail(ref.String() + " was not adopted")
			}
		}
	}
	if m.step() {
		m.fail("the loop had something to do again")
	}
}

// lost tells whether something is recorded under a key that is gone, and that the loop has adopted once before.
func (m *model) lost() bool {
	for _, item := range m.marks().Known().Items {
		if m.foreign[item.Key] {
			return true
		}
	}
	return false
}
