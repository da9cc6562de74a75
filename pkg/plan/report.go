package plan

import (
	"cmp"
	"slices"
)

// Report lists what would be treated differently. Its JSON form is stable: fields may come, none goes.
type Report struct {
	// Compared is how many workloads at least one of the programs reloads, Different how many of them have a difference.
	Compared  int `json:"compared"`
	Different int `json:"different"`
	// Settings are the differences of the whole installation.
	Settings []Setting `json:"settings"`
	// Groups are the differences by their reason.
	Groups []Group `json:"groups"`
}

// Setting is a flag or a variable of Reloader that has another effect here, or a kind of workloads that needs a part of the installation.
type Setting struct {
	// Name is the flag, such as --reload-strategy, or the kind, such as CronJobs.
	Name    string `json:"name"`
	Message string `json:"message"`
}

// Group is what differs for one reason.
type Group struct {
	Reason Reason `json:"reason"`
	Explanation
	Workloads []Difference `json:"workloads,omitempty"`
	// Objects are config objects that no workload depends on.
	Objects []Object `json:"objects,omitempty"`
}

// Difference is what differs for one workload.
type Difference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Effects are the changes of config objects that have another effect.
	Effects []Effect `json:"effects,omitempty"`
	// Problems are what is wrong in the annotations, with what to do.
	Problems []string `json:"problems,omitempty"`
}

// Effect is what follows when one config object changes.
type Effect struct {
	// Object is kind/name, Change is created, modified or deleted.
	Object string `json:"object"`
	Change string `json:"change"`
	// Reloader and Here are what follows in each program.
	Reloader Action `json:"reloader"`
	Here     Action `json:"podReloader"`
}

// permissions returns the parts of an installation that some workload needs, and that are off by default.
func (c *comparison) permissions() []Setting {
	needed := []Setting{}
	if c.runs {
		needed = append(needed, Setting{"CronJobs", "to run them, pod-reloader needs a permission of its own: use the chart value reloader.runCronJobs or the component run-cronjobs"})
	}
	if c.recreates {
		needed = append(needed, Setting{"Jobs", "to create them again, pod-reloader needs permissions of its own: use the chart value reloader.recreateJobs or the component recreate-jobs"})
	}
	return needed
}

// Object is a config object.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (c *comparison) report() Report {
	r := Report{Compared: c.compared, Different: c.differs, Settings: c.permissions(), Groups: []Group{}}
	for _, reason := range append(rules(), byPausePeriod, byPaused, byUnnamedObject, byProblem) {
		if g, ok := c.groups[reason]; ok {
			slices.SortFunc(g.Workloads, func(a, b Difference) int {
				return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
			})
			r.Groups = append(r.Groups, *g)
		}
	}
	return r
}
