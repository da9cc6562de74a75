package oracle

import (
	"sort"
	"time"
)

// versionTime is a stored version, and when it was stored.
type versionTime struct {
	at      time.Time
	version int64
}

// chronicle has the times of all stored versions.
type chronicle struct {
	// version is that of the last commit, clock has all of them.
	version int64
	clock   []versionTime
	born    time.Time
}

// versionAt returns the last version that was stored at a time or before.
func (l *chronicle) versionAt(at time.Time) int64 {
	i := sort.Search(len(l.clock), func(i int) bool { return l.clock[i].at.After(at) })
	if i == 0 {
		return 0
	}
	return l.clock[i-1].version
}

// clockNow returns when the last version was stored.
func (l *chronicle) clockNow() time.Time {
	if len(l.clock) == 0 {
		return l.born
	}
	return l.clock[len(l.clock)-1].at
}

// when writes a moment for people.
func (l *chronicle) when(at time.Time) string {
	return "+" + at.Sub(l.born).Round(time.Millisecond).String()
}
