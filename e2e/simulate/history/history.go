// Package history has the form in which the simulator keeps what happens in a run: a seed, the installation, and steps.
//
// A step is an act of a user or a fault. The runner gives each step to the Doer that knows its name; act and simulate
// register theirs in a Catalogue, from which random histories are drawn. A history is data: it is drawn, shortened, written
// to a file, read again and replayed.
package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Form is the version of the file format. A file of another form is refused.
const Form = 1

// History is one run of the simulator.
type History struct {
	Form int `json:"form"`
	// Law and About say why a kept history is kept: the signature of the law that it broke once, and in which way. Older files
	// have the name of the law alone.
	Law   string `json:"law,omitempty"`
	About string `json:"about,omitempty"`
	// Seed drives every choice of the scheduler that Trace does not fix.
	Seed  uint64 `json:"seed"`
	Setup Setup  `json:"setup"`
	Steps []Step `json:"steps"`
	// Trace has the scheduler's decisions, for replays; a decision that cannot be followed is made by the seed.
	Trace []string `json:"trace,omitempty"`
}

// Setup is the installation at the beginning.
type Setup struct {
	// Replicas of pod-reloader; each is started with Flags.
	Replicas int      `json:"replicas"`
	Flags    []string `json:"flags,omitempty"`
	// FailurePolicy of the webhook configuration: Ignore (default) or Fail.
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// NoStreamingLists makes the API server one that does not know sendInitialEvents.
	NoStreamingLists bool `json:"noStreamingLists,omitempty"`
	// TrackFields makes the API server track managedFields, which server-side apply needs.
	TrackFields bool `json:"trackFields,omitempty"`
	// CrashAtWrite kills the replica that makes the n-th write of the program, leases not counted, when the write is stored
	// and not answered; 0 means never.
	CrashAtWrite int `json:"crashAtWrite,omitempty"`
	// OtherWebhooks says where other mutating webhooks are: "before", "after" or "around" ours; empty means nowhere. With
	// "checksum" there is one after ours that changes the workload whenever ours has changed the template.
	OtherWebhooks string `json:"otherWebhooks,omitempty"`
	// Graph has custom resources that refer to each other, and an operator that looks after them.
	Graph bool `json:"graph,omitempty"`
	// Latency is how long each request of the program is under way, whatever faults add.
	Latency Duration `json:"latency,omitzero"`
	// Second is another installation with the same digest key; nil means that there is none.
	Second *Second `json:"second,omitempty"`
	// Slack is how much longer than its gates a reload may take; 0 means what the laws give it.
	Slack Duration `json:"slack,omitzero"`
}

// Second is an installation beside the first one.
type Second struct {
	// Replicas of it come after those of the first: where that has two, they begin with "replica-2".
	Replicas int `json:"replicas"`
	// Scope is the flag that says which workloads it selects; empty selects all. It has the other flags of the first one.
	Scope string `json:"scope,omitempty"`
	// Before means that its webhook is called before that of the first one.
	Before bool `json:"before,omitempty"`
}

// All is how many replicas there are, of both installations.
func (s Setup) All() int {
	if s.Second == nil {
		return max(s.Replicas, 1)
	}
	return max(s.Replicas, 1) + s.Second.Replicas
}

// Step is one act or fault.
type Step struct {
	// Wait is the fake time between the beginning of the step before and that of this one.
	Wait Duration `json:"wait,omitempty"`
	// Do names the act or fault, e.g. "edit-config" or "kill".
	Do string `json:"do"`
	// On is what it is done to, e.g. "configmaps/shop/app", "deployments/shop/cart", "replica-1", "namespaces/shop".
	On string `json:"on,omitempty"`
	// With has its parameters.
	With map[string]string `json:"with,omitempty"`
}

// Entry is one kind of step in a Catalogue.
type Entry struct {
	// Name is Step.Do.
	Name string
	// Fault means that a history without faults must not have it.
	Fault bool
	// Weight is how often it is drawn, relative to others; 0 means never by chance.
	Weight int
	// WeightSSA is added to Weight where DrawOptions.SSA is set: for steps that need server-side apply, whose Weight is 0.
	WeightSSA int
	// WeightGraph is the same where DrawOptions.Graph is set: for steps about custom resources.
	WeightGraph int
	// Draw makes a step; Wait is set by the caller. It sees the steps drawn so far.
	Draw func(r *rand.Rand, before []Step) Step
	// Words says in a short English sentence what the step does, e.g. `user sets key "a" of configmaps/shop/app to "7"`.
	Words func(Step) string
	// Check returns an error if a step read from a file makes no sense.
	Check func(Step) error
}

// Catalogue has the entries by name.
type Catalogue []Entry

// Find returns an entry.
func (c Catalogue) Find(name string) (Entry, bool) {
	i := slices.IndexFunc(c, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return c[i], true
}

// Duration is a time.Duration that is written as text.
type Duration time.Duration

// MarshalText writes e.g. "1.5s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	if parsed < 0 {
		return fmt.Errorf("negative duration %q", text)
	}
	*d = Duration(parsed)
	return nil
}

// Words returns the history as text, a line for each step with its time.
func (h History) Words(c Catalogue) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %s\n", h.Seed, strings.Join(h.Setup.words(), ", "))
	if len(h.Trace) > 0 {
		fmt.Fprintf(&b, "follows a trace of %d decisions\n", len(h.Trace))
	}
	at := time.Duration(0)
	for i, s := range h.Steps {
		at += time.Duration(s.Wait)
		text := s.Do
		if e, ok := c.Find(s.Do); ok {
			text = e.Words(s)
		}
		fmt.Fprintf(&b, "%4d  %10s  %s\n", i+1, at, text)
	}
	return b.String()
}

// words says what the installation is: how many replicas, and what is not as usual.
func (s Setup) words() []string {
	words := []string{"1 replica"}
	if s.Replicas > 1 {
		words[0] = fmt.Sprintf("%d replicas", s.Replicas)
	}
	say := func(is bool, text string, values ...any) {
		if is {
			words = append(words, fmt.Sprintf(text, values...))
		}
	}
	say(len(s.Flags) > 0, "flags %s", strings.Join(s.Flags, " "))
	if second := s.Second; second != nil {
		say(true, "a second installation with %d more replicas", second.Replicas)
		say(second.Scope != "", "flag %s", second.Scope)
		say(second.Before, "its webhook is called first")
	}
	say(s.FailurePolicy != "", "failurePolicy %s", s.FailurePolicy)
	say(s.OtherWebhooks == "checksum", "another webhook after ours that writes a checksum of the template")
	say(s.OtherWebhooks != "" && s.OtherWebhooks != "checksum", "other webhooks %s ours", s.OtherWebhooks)
	say(s.Graph, "custom resources that refer to each other")
	say(s.TrackFields, "field managers are tracked")
	say(s.NoStreamingLists, "no streaming lists")
	say(s.Latency > 0, "each request takes %s", time.Duration(s.Latency))
	say(s.CrashAtWrite > 0, "the replica is killed that makes write %d", s.CrashAtWrite)
	return words
}
