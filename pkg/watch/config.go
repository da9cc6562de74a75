package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
)

// Config configures a Bulk.
type Config struct {
	// GVR is the resource to watch; version and resource are required.
	GVR schema.GroupVersionResource
	// Namespace to watch; empty for all, and for cluster-scoped resources.
	Namespace string
	// LabelSelector is applied by the API server, in its syntax.
	LabelSelector string
	// FieldSelector is applied to any field: see Selector. What does not match
	// is not kept in memory, and not even sent where the API server evaluates the
	// term: PATH=VALUE, with a value, of a field that it supports. That is
	// metadata.name for every resource, others for some (metadata.namespace of
	// what has a namespace, "type" of a Secret, selectableFields of a
	// CustomResourceDefinition). If it does not support one of them, it selects by
	// the name alone. It evaluates PATH!=VALUE for metadata.name and
	// metadata.namespace only: with "type!=x" all Secrets are sent.
	FieldSelector string
	// IndexBy are the JSONPath expressions of the store's composite key; at
	// least one.
	IndexBy []string
	// IgnoreFields are JSONPath expressions of fields that are removed before
	// anything is stored, "metadata.managedFields" for example, to save memory.
	// Those that IndexBy, FieldSelector or the watcher itself reads are rejected.
	IgnoreFields []string
	// Transform, if set, may change every object before IgnoreFields are
	// removed. It runs on the goroutine that reads from the API server, once
	// for every state of an object that comes from there, one call at a time,
	// and must not block: before sync, WaitForSync cannot return there. Not every
	// state is delivered: of a list that breaks off, none is. Transform must leave
	// alone what IndexBy and FieldSelector read, and name, namespace, uid and
	// resourceVersion. Panics are logged.
	Transform func(object *unstructured.Unstructured)

	// DebounceInterval is the least time between two OnChange. 0 means
	// DefaultDebounceInterval; NoDebounce switches debouncing off.
	DebounceInterval time.Duration
	// CallOnChangeDuringSync calls OnChange during the initial sync too, with
	// IsInitialSync true; else its changes are delivered once, at its end.
	CallOnChangeDuringSync bool

	// OnChange, if set, is called when the store has changed. It runs on the
	// watcher's callback goroutine, never beside itself or OnSyncComplete, and
	// may block and call every method of the watcher: events go on arriving,
	// their counts accumulate. The context has the values of Start's, and ends
	// when the watcher is to stop. Errors and panics are logged, but for the error
	// of the context after its end.
	OnChange func(ctx context.Context, store Reader, stats ChangeStats) error
	// OnSyncComplete, if set, is called once, on the same goroutine, after the
	// initial sync and the OnChange for its objects, with their number.
	OnSyncComplete func(ctx context.Context, store Reader, initialCount int) error
	// OnObject, if set, gets every change at once, also during the initial
	// sync, before debouncing: (nil, new) for an object that is added to the
	// store, (old, new) for an update, (old, nil) for a removal. It feeds work
	// queues. It runs on the informer's goroutine: it must only enqueue, as
	// long as it blocks, events pile up in memory. Before sync, WaitForSync
	// cannot return there. Panics are logged.
	OnObject func(before, now *unstructured.Unstructured)

	// TooLarge, if set, reports whether a transport of the client has refused the
	// answer to a list, an error of which this is, because it is too large. If it
	// was a page of several objects, these are listed in smaller pages. It runs on
	// the goroutine that reads from the API server. After a panic, which is logged,
	// the error is one like others.
	TooLarge func(err error) bool

	// OnWatchError, if set, gets every error of list and watch, as
	// LastWatchError returns it: the latest one only of those that come while it
	// runs. It runs on a goroutine of its own, one call at a time, also beside
	// other callbacks, and may block. The watcher tries again by itself, with
	// pauses of up to a minute. An attempt may last for minutes until it fails:
	// the age of the last error does not show whether the watch works. Panics
	// are logged.
	OnWatchError func(ctx context.Context, err error)

	// Logger may be the zero value, which discards everything.
	Logger logr.Logger
}

// SingleConfig configures a Single.
type SingleConfig struct {
	// GVR is the resource; version and resource are required.
	GVR schema.GroupVersionResource
	// Namespace of the object; empty for a cluster-scoped one.
	Namespace string
	// Name of the object; required.
	Name string

	// OnChange, if set, gets the object immediately after every change that
	// follows the initial sync, and nil after its deletion. An update of the status
	// or metadata only is not delivered where the kind has a metadata.generation,
	// and it is as before. OnChange runs on the watcher's callback
	// goroutine, never beside itself or OnSyncComplete, and may block and call
	// every method of the watcher; what changes meanwhile is delivered afterwards,
	// the latest state only. The context has the values of Start's, and ends when
	// the watcher is to stop. Errors and panics are logged, but for the error of
	// the context after its end.
	OnChange func(ctx context.Context, object *unstructured.Unstructured) error
	// OnSyncComplete, if set, is called once, on the same goroutine and before
	// any OnChange, with the object, or nil if it does not exist.
	OnSyncComplete func(ctx context.Context, object *unstructured.Unstructured) error

	// OnWatchError, if set, gets every error of list and watch, as
	// LastWatchError returns it: the latest one only of those that come while it
	// runs. It runs on a goroutine of its own, one call at a time, also beside
	// other callbacks, and may block. The watcher tries again by itself, with
	// pauses of up to a minute. An attempt may last for minutes until it fails:
	// the age of the last error does not show whether the watch works. Panics
	// are logged.
	OnWatchError func(ctx context.Context, err error)

	// Logger may be the zero value, which discards everything.
	Logger logr.Logger
}

// checkTarget finds what is wrong with the parameters that both watchers have.
func checkTarget(gvr schema.GroupVersionResource, namespace string, client dynamic.Interface) []error {
	var faults []error
	fault := func(field, expression, reason string) {
		faults = append(faults, &ConfigError{Field: field, Expression: expression, Reason: reason})
	}
	if client == nil {
		fault("client", "", "is missing")
	}
	if gvr.Group != "" {
		if problems := validation.IsDNS1123Subdomain(gvr.Group); len(problems) > 0 {
			fault("GVR.Group", gvr.Group, strings.Join(problems, "; "))
		}
	}
	for field, part := range map[string]string{"GVR.Version": gvr.Version, "GVR.Resource": gvr.Resource} {
		if part == "" {
			fault(field, "", fmt.Sprintf("is missing in %q; write for example {Group: \"apps\", Version: \"v1\", Resource: \"deployments\"}", gvr))
		} else if problems := validation.IsDNS1123Label(part); len(problems) > 0 {
			fault(field, part, strings.Join(problems, "; "))
		}
	}
	if namespace != "" {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			fault("Namespace", namespace, strings.Join(problems, "; "))
		}
	}
	return faults
}

// check finds everything that is wrong, and compiles what is right.
func (c Config) check(client dynamic.Interface) (*Indexer, *Selector, error) {
	faults := checkTarget(c.GVR, c.Namespace, client)
	if fault := checkLabels(c.LabelSelector); fault != nil {
		faults = append(faults, fault)
	}
	if fault := checkInterval("DebounceInterval", c.DebounceInterval); fault != nil {
		faults = append(faults, fault)
	}
	selector, err := NewSelector(c.FieldSelector)
	if err != nil {
		faults = append(faults, err)
	}
	indexer, err := NewIndexer(IndexerConfig{IndexBy: c.IndexBy, IgnoreFields: c.IgnoreFields})
	if err != nil {
		faults = append(faults, err)
	}
	if indexer != nil && selector != nil {
		for _, term := range selector.terms {
			faults = append(faults, indexer.conflicts(term.path, fmt.Sprintf("FieldSelector %q", c.FieldSelector))...)
		}
	}
	return indexer, selector, errors.Join(faults...)
}

func (c SingleConfig) check(client dynamic.Interface) error {
	faults := checkTarget(c.GVR, c.Namespace, client)
	if c.Name == "" {
		faults = append(faults, &ConfigError{Field: "Name", Reason: "is missing; a Bulk watches all objects of a kind"})
	} else if problems := content.IsPathSegmentName(c.Name); len(problems) > 0 {
		faults = append(faults, &ConfigError{Field: "Name", Expression: c.Name, Reason: strings.Join(problems, "; ")})
	}
	return errors.Join(faults...)
}
