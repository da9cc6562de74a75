package reference

import "github.com/pod-reloader/pod-reloader/pkg/skim"

// part says what to keep of a value in a raw object, as a copy that shares nothing; false when that is nothing.
type part interface {
	prune(value any) (any, bool)
	shape() *skim.Shape
}

// text keeps a string, flag a boolean: a value of another type than the API's is not kept.
type (
	text struct{}
	flag struct{}
)

func (text) shape() *skim.Shape { return nil }
func (flag) shape() *skim.Shape { return nil }

func (text) prune(value any) (any, bool) {
	s, ok := value.(string)
	return s, ok
}

func (flag) prune(value any) (any, bool) {
	b, ok := value.(bool)
	return b, ok
}

// members keeps the named members of a map, if any has something to keep.
type members map[string]part

func (m members) prune(value any) (any, bool) {
	whole, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	kept := m.of(whole)
	return kept, len(kept) > 0
}

func (m members) of(whole map[string]any) map[string]any {
	var kept map[string]any
	for name, inner := range m {
		member, ok := inner.prune(whole[name])
		if !ok {
			continue
		}
		if kept == nil {
			kept = map[string]any{}
		}
		kept[name] = member
	}
	return kept
}

func (m members) shape() *skim.Shape {
	shape := &skim.Shape{Members: map[string]*skim.Shape{}}
	for name, inner := range m {
		shape.Members[name] = inner.shape()
	}
	return shape
}

// list keeps the elements of a list that have something to keep.
type list struct {
	of part
}

func (l list) prune(value any) (any, bool) {
	whole, _ := value.([]any)
	var kept []any
	for _, element := range whole {
		if pruned, ok := l.of.prune(element); ok {
			kept = append(kept, pruned)
		}
	}
	return kept, len(kept) > 0
}

func (l list) shape() *skim.Shape { return &skim.Shape{Elements: l.of.shape()} }

// podSpec is what FromPodSpec looks at. It is only ever read.
var podSpec = func() members {
	named := members{"name": text{}}
	selector := members{"name": text{}, "optional": flag{}}
	credentials := members{"secretRef": named}
	containers := list{members{
		"env":     list{members{"valueFrom": members{"configMapKeyRef": selector, "secretKeyRef": selector}}},
		"envFrom": list{members{"configMapRef": selector, "secretRef": selector}},
	}}
	return members{
		"containers":          containers,
		"initContainers":      containers,
		"ephemeralContainers": containers,
		"imagePullSecrets":    list{named},
		"volumes": list{members{
			"configMap": selector,
			"secret":    members{"secretName": text{}, "optional": flag{}},
			"projected": members{"sources": list{members{"configMap": selector, "secret": selector}}},
			"csi": members{
				"driver": text{}, "volumeAttributes": members{classAttribute: text{}}, "nodePublishSecretRef": named,
			},
			"azureFile":  members{"secretName": text{}},
			"iscsi":      credentials,
			"rbd":        credentials,
			"cephfs":     credentials,
			"cinder":     credentials,
			"flexVolume": credentials,
			"scaleIO":    credentials,
			"storageos":  credentials,
		}},
	}
}()

// PruneRaw returns a copy of a raw pod spec, as unstructured objects hold it, that is reduced to exactly what
// FromPodSpec can see: images, commands, literal values, probes and all else are gone. It is what makes it affordable
// to keep every workload of a cluster in memory. The copy shares no maps or lists with the input. A part that does not
// have the type which the API gives it is dropped, so that the copy can always be converted.
func PruneRaw(spec map[string]any) map[string]any {
	if pruned := podSpec.of(spec); pruned != nil {
		return pruned
	}
	return map[string]any{}
}

// Shape returns the parts of a pod spec that FromPodSpec can see.
func Shape() *skim.Shape { return podSpec.shape() }
