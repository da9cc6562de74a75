package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch/jsonpath"
)

// IndexerConfig says what an Indexer does with an object.
type IndexerConfig struct {
	// IndexBy are the JSONPath expressions of the composite key, in order; at
	// least one.
	IndexBy []string
	// IgnoreFields are JSONPath expressions of fields that are removed, in any
	// order. The last step of each is a field's name.
	IgnoreFields []string
}

// Indexer prepares objects for storage and extracts their keys. It has no
// state: any number of goroutines may use it, on different objects.
type Indexer struct {
	keys   []jsonpath.Path
	ignore []jsonpath.Path
}

// ownFields are read by the watchers themselves (and by client-go's cache).
var ownFields = []string{"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

// NewIndexer compiles the expressions. The error joins one *ConfigError for
// each fault: an empty IndexBy, an expression that does not parse, a field to
// ignore that an index, or the library itself, reads.
func NewIndexer(config IndexerConfig) (*Indexer, error) {
	indexer := &Indexer{}
	var faults []error
	if len(config.IndexBy) == 0 {
		faults = append(faults, &ConfigError{Field: "IndexBy", Reason: "is empty; name at least one field, such as metadata.namespace"})
	}
	for i, expression := range config.IndexBy {
		compiled, fault := jsonpath.Parse(expression)
		if fault != nil {
			faults = append(faults, configError(fmt.Sprintf("IndexBy[%d]", i), expression, fault))
		}
		indexer.keys = append(indexer.keys, compiled)
	}
	for i, expression := range config.IgnoreFields {
		compiled, fault := parseIgnored(expression)
		if fault != nil {
			faults = append(faults, configError(fmt.Sprintf("IgnoreFields[%d]", i), expression, fault))
		}
		indexer.ignore = append(indexer.ignore, compiled)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	for _, own := range ownFields {
		compiled, _ := jsonpath.Parse(own)
		faults = append(faults, indexer.conflicts(compiled, "every watcher")...)
	}
	for i, key := range indexer.keys {
		faults = append(faults, indexer.conflicts(key, fmt.Sprintf("IndexBy[%d] %q", i, key.String()))...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return indexer, nil
}

func parseIgnored(expression string) (jsonpath.Path, *jsonpath.Fault) {
	compiled, fault := jsonpath.Parse(expression)
	if fault != nil {
		return jsonpath.Path{}, fault
	}
	if _, _, position := compiled.Split(); position > 0 {
		return jsonpath.Path{}, &jsonpath.Fault{Position: position, Reason: "only fields are removed; end with a field's name"}
	}
	return compiled, nil
}

// conflicts reports the ignored fields that the reader needs.
func (x *Indexer) conflicts(reader jsonpath.Path, who string) []error {
	var faults []error
	for i, ignored := range x.ignore {
		for _, read := range reader.Reads() {
			if ignored.Overlaps(read) {
				faults = append(faults, &ConfigError{
					Field: fmt.Sprintf("IgnoreFields[%d]", i), Expression: ignored.String(), Position: 1,
					Reason: fmt.Sprintf("%s reads %s; it cannot be ignored", who, strings.Join(read.Names(), ".")),
				})
				break
			}
		}
	}
	return faults
}

// Prepare removes the ignored fields and turns whole float64 values between
// -2^53 and 2^53 into int64. It changes the object in place, so that nothing
// else may hold it yet; doing it twice changes nothing more.
func (x *Indexer) Prepare(object *unstructured.Unstructured) {
	jsonpath.Remove(object.Object, x.ignore)
	wholeToInt(object.Object)
}

// MaxKeys bounds the keys of one object. Several expressions that lead to
// several values each have a key for every combination of them.
const MaxKeys = 1000

// Key is a composite key: a part for each expression of IndexBy, in order.
type Key []string

// Keys extracts the composite keys of a prepared object: one where each
// expression leads to one value, else one for each value, and for each
// combination where several expressions lead to several. A missing field gives
// "", a number is written without exponent, a list or map as JSON. More than
// MaxKeys are none: the object cannot be indexed.
func (x *Indexer) Keys(object *unstructured.Unstructured) []Key {
	first := make(Key, len(x.keys))
	all := []Key{first}
	for i, path := range x.keys {
		if path.Plain() {
			value := jsonpath.Text(path.Field(object.Object))
			for _, key := range all {
				key[i] = value
			}
		} else if all = combine(all, i, values(path, object.Object)); all == nil {
			return nil
		}
	}
	return all
}

// values are the different values at the path, in their order; "" if there are
// none.
func values(path jsonpath.Path, root map[string]any) []string {
	var all []string
	seen := map[string]bool{}
	path.Find(root, func(value any) {
		if value := jsonpath.Text(value); !seen[value] {
			seen[value] = true
			all = append(all, value)
		}
	})
	if len(all) == 0 {
		return []string{""}
	}
	return all
}

// combine makes each key one for each value of the part at i.
func combine(keys []Key, i int, values []string) []Key {
	if len(keys)*len(values) > MaxKeys {
		return nil
	}
	all := make([]Key, 0, len(keys)*len(values))
	for _, key := range keys {
		for _, value := range values {
			combined := slices.Clone(key)
			combined[i] = value
			all = append(all, combined)
		}
	}
	return all
}

// Process is Prepare, then Keys.
func (x *Indexer) Process(object *unstructured.Unstructured) []Key {
	x.Prepare(object)
	return x.Keys(object)
}

// Width is the number of parts of a key.
func (x *Indexer) Width() int {
	return len(x.keys)
}
