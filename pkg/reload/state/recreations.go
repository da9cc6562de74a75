package state

import (
	"slices"
	"sync/atomic"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Recreations has the Secrets with Jobs that are to be created again. They outlive the Job: nothing but the Secret ends one, so that
// State.Forget keeps them.
type Recreations struct {
	secrets perWorkload[[]manifestSecret]
	listed  atomic.Bool
}

// manifestSecret is a Secret with the manifest of a Job.
type manifestSecret struct {
	name string
	// created says that the Job was created again, and that the Secret could not be deleted yet.
	created bool
	// left says that nothing is done about it while this process leads.
	left bool
}

// Add records that a Secret has the manifest of a Job.
func (r *Recreations) Add(key workload.Key, secret string) {
	r.secrets.with(key, func(all *[]manifestSecret) {
		if !slices.ContainsFunc(*all, named(secret)) {
			*all = append(*all, manifestSecret{name: secret})
		}
	})
}

func named(secret string) func(manifestSecret) bool {
	return func(s manifestSecret) bool { return s.name == secret }
}

// Listed records that all Secrets of earlier leaders were added.
func (r *Recreations) Listed() { r.listed.Store(true) }

// AreListed reports whether the Secrets of earlier leaders are known.
func (r *Recreations) AreListed() bool { return r.listed.Load() }

// Created records that the Job of a Secret was created again.
func (r *Recreations) Created(key workload.Key, secret string) {
	r.secrets.find(key, func(all *[]manifestSecret) {
		if i := slices.IndexFunc(*all, named(secret)); i >= 0 {
			(*all)[i].created = true
		}
	})
}

// Leave records that a Secret stays, and that nothing is done about it any more.
func (r *Recreations) Leave(key workload.Key, secret string) {
	r.secrets.find(key, func(all *[]manifestSecret) {
		if i := slices.IndexFunc(*all, named(secret)); i >= 0 {
			(*all)[i].left = true
		}
	})
}

// IsCreated reports whether the Job of a Secret was created again: where it does not exist, a user has deleted it.
func (r *Recreations) IsCreated(key workload.Key, secret string) (created bool) {
	r.secrets.find(key, func(all *[]manifestSecret) {
		created = slices.Contains(*all, manifestSecret{name: secret, created: true})
	})
	return created
}

// Done forgets a Secret that is deleted.
func (r *Recreations) Done(key workload.Key, secret string) {
	r.secrets.mu.Lock()
	defer r.secrets.mu.Unlock()
	all, ok := r.secrets.entries[key]
	if !ok {
		return
	}
	*all = slices.DeleteFunc(*all, named(secret))
	if len(*all) == 0 {
		delete(r.secrets.entries, key)
	}
}

// Left is a Secret that stays, and the Job that it is for.
type Left struct {
	Job    workload.Key
	Secret string
}

// In returns how many Secrets there are for Jobs of a namespace, and any of them that is left; empty if none is.
func (r *Recreations) In(namespace string) (count int, left Left) {
	r.secrets.mu.Lock()
	defer r.secrets.mu.Unlock()
	for key, all := range r.secrets.entries {
		if key.Namespace != namespace {
			continue
		}
		count += len(*all)
		if i := slices.IndexFunc(*all, func(s manifestSecret) bool { return s.left }); i >= 0 {
			left = Left{key, (*all)[i].name}
		}
	}
	return count, left
}

// First returns the first Secret for a Job that something is to be done about; empty if there is none.
func (r *Recreations) First(key workload.Key) (secret string) {
	r.secrets.find(key, func(all *[]manifestSecret) {
		if i := slices.IndexFunc(*all, func(s manifestSecret) bool { return !s.left }); i >= 0 {
			secret = (*all)[i].name
		}
	})
	return secret
}
