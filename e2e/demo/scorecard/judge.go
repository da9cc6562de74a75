package scorecard

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count is how often something happened.
type Count struct {
	// N is how often it was seen.
	N int
	// Certain says that everything was seen, and that what comes late would have come.
	Certain bool
}

// Rollouts judges that each of some workloads had as many rollouts as promised.
func Rollouts(promised int, counts ...Count) Finding {
	f := Finding{Kept: len(counts) > 0}
	texts := make([]string, 0, len(counts))
	uncertain := ""
	for _, c := range counts {
		texts = append(texts, strconv.Itoa(c.N))
		f.Kept = f.Kept && c.N == promised && c.Certain
		if !c.Certain {
			uncertain = " so far"
		}
	}
	f.Observed = strings.Join(texts, ", ") + uncertain
	return f
}

// And adds a further condition to a finding and says which of two texts is true.
func (f Finding) And(holds bool, yes, no string) Finding {
	text := no
	if holds {
		text = yes
	}
	return Finding{Observed: f.Observed + ", " + text, Kept: f.Kept && holds}
}

// Apart judges that things happened at least so far from each other.
func Apart(f Finding, least time.Duration, times ...time.Time) Finding {
	if len(times) < 2 {
		return f
	}
	shortest := times[1].Sub(times[0])
	for n := 2; n < len(times); n++ {
		shortest = min(shortest, times[n].Sub(times[n-1]))
	}
	text := fmt.Sprintf("%.1f s apart", shortest.Seconds())
	return f.And(shortest >= least, text, text)
}

// Refused judges that a command failed as promised: it exited with a failure and said the given text, which represents
// the name.
func Refused(exitCode int, said, text, name string) Finding {
	switch {
	case exitCode == 0:
		return Finding{Observed: "accepted"}
	case !strings.Contains(said, text):
		return Finding{Observed: "failed, but not with " + name}
	default:
		return Finding{Observed: name, Kept: true}
	}
}

// Source is a text in which a cause should be named.
type Source struct {
	Name, Text string
}

// Named judges that a cause is named in each of some texts.
func Named(cause string, sources ...Source) Finding {
	var with, without []string
	for _, s := range sources {
		if strings.Contains(s.Text, cause) {
			with = append(with, s.Name)
		} else {
			without = append(without, s.Name)
		}
	}
	if len(without) > 0 || len(with) == 0 {
		return Finding{Observed: "not in " + strings.Join(without, ", ")}
	}
	return Finding{Observed: "in " + strings.Join(with, " and "), Kept: true}
}
