package state

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// recreations has the Secrets with Jobs that are to be created again. They outlive the Job: nothing but the Secret ends one, so that
// State.Forget keeps them.
type recreations struct{ secrets perWorkload[[]string] }

// Add records that a Secret has the manifest of a Job.
func (r *recreations) Add(key workload.Key, secret string) {
	r.secrets.with(key, func(names *[]string) {
		if !slices.Contains(*names, secret) {
			*names = append(*names, secret)
		}
	})
}

// Done forgets a Secret that is deleted.
func (r *recreations) Done(key workload.Key, secret string) {
	r.secrets.mu.Lock()
	defer r.secrets.mu.Unlock()
	names, ok := r.secrets.entries[key]
	if !ok {
		return
	}
	*names = slices.DeleteFunc(*names, func(name string) bool { return name == secret })
	if len(*names) == 0 {
		delete(r.secrets.entries, key)
	}
}

// First returns the first Secret for a Job; empty if there is none.
func (r *recreations) First(key workload.Key) (secret string) {
	r.secrets.find(key, func(names *[]string) { secret = (*names)[0] })
	return secret
}
