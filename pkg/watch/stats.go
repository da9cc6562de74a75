package watch

import "fmt"

// ChangeStats counts the changes of one debounce window. An object that is
// created and deleted within a window counts in both.
type ChangeStats struct {
	// Created counts objects that appeared, or began to match the field selector.
	Created int
	// Modified counts updates of objects that were and stay in the store.
	Modified int
	// Deleted counts objects that vanished, or ceased to match the field
	// selector. An object that was replaced by another of the same name
	// between two looks counts as deleted and as created.
	Deleted int
	// IsInitialSync is true where the callback fires during the initial sync.
	IsInitialSync bool
}

// Total is the number of changes.
func (s ChangeStats) Total() int {
	return s.Created + s.Modified + s.Deleted
}

// Empty reports whether nothing has changed; no callback is made for it.
func (s ChangeStats) Empty() bool {
	return s.Total() == 0
}

// String is for logs: "+2 ~0 -1".
func (s ChangeStats) String() string {
	return fmt.Sprintf("+%d ~%d -%d", s.Created, s.Modified, s.Deleted)
}

// plus adds the counts and leaves the phase alone.
func (s ChangeStats) plus(other ChangeStats) ChangeStats {
	s.Created += other.Created
	s.Modified += other.Modified
	s.Deleted += other.Deleted
	return s
}
