package chain

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// contestOver is how long a restored digest must remain to be contested no longer. A GitOps controller may remove it each hour only.
const contestOver = 2 * time.Hour

// contests are the objects whose digest was restored because another writer had removed it.
type contests map[referent.Key]contest

// contest is how often a digest was restored in a row, and when last.
type contest struct {
	times int
	last  time.Time
}

func (c contests) times(key referent.Key, now time.Time) int {
	if now.Sub(c[key].last) >= contestOver {
		return 0
	}
	return c[key].times
}

// add counts a digest that is restored, and returns how often it was in a row.
func (c contests) add(key referent.Key, now time.Time) int {
	c[key] = contest{c.times(key, now) + 1, now}
	return c[key].times
}
