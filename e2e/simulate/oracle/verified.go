package oracle

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// revisionOf returns UID.RESOURCEVERSION, or nothing for an object that does not exist.
func revisionOf(object world.Object) string {
	if object == nil {
		return ""
	}
	metadata := world.Section(object, "metadata")
	return world.Text(metadata, "uid") + "." + world.Text(metadata, "resourceVersion")
}

// revisionDigest is the digest that docs/verified-reload.md describes: SHA-256 over a line for each listed name, ConfigMaps first.
func (l *configLog) revisionDigest(w *workload) string {
	var lines strings.Builder
	annotations := world.Annotations(w.object)
	for _, list := range []struct{ annotation, kind, plural string }{
		{configMapList, "configmap", "configmaps"}, {secretList, "secret", "secrets"},
	} {
		for name := range strings.SplitSeq(world.Text(annotations, l.options.Prefix+list.annotation), ",") {
			if name = strings.TrimSpace(name); name != "" {
				lines.WriteString(list.kind + "/" + w.id.namespace + "/" + name + "/" + l.revisions[id{list.plural, w.id.namespace, name}] + "\n")
			}
		}
	}
	sum := sha256.Sum256([]byte(lines.String()))
	return hex.EncodeToString(sum[:])
}

// isRight reports whether an answer is one to a request for a reload that must not be rejected: the digest is that of what the workload
// lists, and of all that matters nothing has changed for a while.
func (l *unharmedLaw) isRight(r world.Reply) bool {
	w := l.workloads[idOf(r.Call.Key)]
	if w == nil || !l.asksForReload(r.Call, w) || !l.sawNoDisturbance(w, r) {
		return false
	}
	value, known := requested(r.Call, l.options.Prefix+requestAnnotation)
	if !known || value == nil {
		return false
	}
	digest, generation, bound := strings.Cut(*value, "@")
	stored, _ := numberOf(world.Section(w.object, "metadata")["generation"])
	return digest == l.revisionDigest(w) && (!bound || generation == strconv.FormatInt(int64(stored), 10))
}

// sawNoDisturbance reports whether nothing has disturbed the program, or changed what a workload depends on, since some time before
// a request. What else a workload tracks besides its lists is not judged.
func (l *unharmedLaw) sawNoDisturbance(w *workload, r world.Reply) bool {
	from := r.Call.Arrived.Add(-rest)
	switch {
	case !w.eligible || w.dynamic || len(w.listed) != len(w.refs), l.options.Direct, !l.healthy(w, from):
		return false
	case w.last() != nil && w.last().at.After(from), w.changed.After(from) || w.acts[2].After(from) || l.versionAt(from) < w.keyChanged:
		return false
	case l.slow.during(w.id.namespace, r.Call.Arrived, r.At):
		return false
	}
	return !slices.ContainsFunc(w.refs, func(of ref) bool {
		h := l.contents.of(w.id.namespace, of)
		return isReferent(of.plural) || h != nil && h.touchedWithin(l.versionAt(from), l.version)
	})
}
