package oracle

import (
	"fmt"
	"time"
)

// Violation is a promise that was broken.
type Violation struct {
	// Law is the name of the promise.
	Law string
	// Subject is what it was broken on, e.g. "deployments/shop/cart".
	Subject string
	// Text says what happened.
	Text string
	// Signature is the same for what has probably the same cause: the law and the kind of act that led to it.
	Signature string
	At        time.Time
}

// broken says which law was broken, on what, and how: the rest of the signature.
type broken struct{ law, subject, how string }

// findings has what the laws have found, and how much was seen, judged and excused.
type findings struct {
	violations []Violation
	reported   map[string]bool
	counters   map[string]int
}

func newFindings() *findings {
	return &findings{reported: map[string]bool{}, counters: map[string]int{}}
}

// violate reports a violation once for each law, subject and signature.
func (l *findings) violate(at time.Time, b broken, format string, args ...any) {
	signature := b.law
	if b.how != "" {
		signature += "/" + b.how
	}
	l.count("violations of " + b.law)
	if key := signature + " " + b.subject; !l.reported[key] {
		l.reported[key] = true
		l.violations = append(l.violations, Violation{
			Law: b.law, Subject: b.subject, Text: fmt.Sprintf(format, args...), Signature: signature, At: at,
		})
	}
}

func (l *findings) count(what string) { l.counters[what]++ }
