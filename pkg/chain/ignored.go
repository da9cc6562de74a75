package chain

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// EventReferenceIgnored is the reason of the Event on a custom resource with references that are ignored.
const EventReferenceIgnored = "ReferenceIgnored"

// OnIgnored registers a handler of references that are ignored, before Start. It is called with what is wrong with those of an object,
// while this process leads; in an hour, ten times at most for a namespace. It must return soon, and not change the object, which has no
// content.
func (c *Chain) OnIgnored(handler func(object *unstructured.Unstructured, problems string)) {
	c.evaluator.publisher.ignored.handlers = append(c.evaluator.publisher.ignored.handlers, handler)
}

// ignored are the references that were reported as ignored.
type ignored struct {
	handlers []func(object *unstructured.Unstructured, problems string)
	// reported are those of each namespace since begun.
	reported map[string]map[problems]struct{}
	begun    time.Time
}

// problems are the references of an object that are ignored, and why.
type problems struct {
	key  referent.Key
	text string
}

// add reports whether problems are to be reported now, and records that.
func (i *ignored) add(one problems, now time.Time) bool {
	if i.reported == nil || now.Sub(i.begun) >= reportAgain {
		i.reported, i.begun = map[string]map[problems]struct{}{}, now
	}
	of := i.reported[one.key.Namespace]
	if _, known := of[one]; known || len(of) >= maxReported {
		return false
	}
	if of == nil {
		of = map[problems]struct{}{}
		i.reported[one.key.Namespace] = of
	}
	of[one] = struct{}{}
	return true
}

// reportIgnored reports the references of an object that are ignored; out of scope, when the namespace comes into scope.
func (u *publisher) reportIgnored(key referent.Key) {
	text := strings.Join(u.graphState.graph.Problems(key), "; ")
	if text == "" {
		return
	}
	if !u.publishes(key.Namespace) {
		u.of(key.Namespace).due[key] = struct{}{}
		return
	}
	object := u.sources.stored(key)
	if object == nil || !u.ignored.add(problems{key, text}, u.now()) {
		return
	}
	u.log.Info("references of a custom resource are ignored", "namespace", key.Namespace, "referent", key.String(), "problems", text)
	for _, handler := range u.ignored.handlers {
		handler(object, text)
	}
}
