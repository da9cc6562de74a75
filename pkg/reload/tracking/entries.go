package tracking

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// entries enters workloads into the index. The callers hold the lock of the watch of the workload, so that no older version of it is
// entered after a newer one.
type entries struct {
	reader stamp.Reader
	index  *index.Index
	recent *index.Recent
	state  *state.State
	// direct is as in Options.
	direct bool
	now    func() time.Time
	// inScopeSince has the versions of the namespaces whose labels brought them into scope.
	inScopeSince sync.Map
	// rereads counts how often all workloads were to be read again.
	rereads atomic.Uint64
}

// update enters a version of a workload, and records since when the workload is as it is. before is the version that was seen last, by the
// watch or by a live read. listed is as in Options.Workloads.
func (x *entries) update(key workload.Key, before, s workload.Summary, listed string) {
	intent := x.enter(key, s)
	defer x.startInScope(s) // of what is recorded here
	x.followBack(before, s)
	if !matters(before, s) {
		return
	}
	x.state.Deferrals.Written(key)
	// A workload of which nothing is recorded starts from what it finds, when a label first selects it, which starts no pod, or when the
	// first listing brings it.
	recorded, since := s.Annotations()[x.reader.Keys.ConfigRecord] != "", s.ResourceVersion()
	if !recorded && listed != "" {
		since = listed
	}
	if (intent.Appearing() || x.direct && intent.Asked) && (s.Written(before) || !recorded) {
		x.state.Versions.Changed(key, since)
	}
}

// followBack takes in that an older version of a workload follows a newer one, as after a restore of etcd: what is later than the older
// one would count as older than the pods until the revisions have passed those of before the restore.
func (x *entries) followBack(before, s workload.Summary) {
	if before.UID() == s.UID() && reference.Later(before.ResourceVersion(), s.ResourceVersion()) {
		x.state.Versions.NotAfter(s.Key(), s.ResourceVersion())
	}
}

// startInScope has a workload of which nothing is recorded start from what it finds when its namespace enters the scope. A workload that was
// created later is not concerned: the watches of namespaces and of workloads do not wait for each other.
func (x *entries) startInScope(s workload.Summary) {
	version, entered := x.inScopeSince.Load(s.Namespace())
	if entered && s.Annotations()[x.reader.Keys.ConfigRecord] == "" {
		x.state.Creations.ForgetBefore(s.Key(), version.(string))
		x.state.Versions.NotBefore(s.Key(), version.(string))
	}
}

// enter puts into the index what a workload asks for, and returns that. What the index did not have before may have changed recently.
func (x *entries) enter(key workload.Key, s workload.Summary) annotation.Intent {
	intent, added := x.indexIntent(key, s)
	for _, ref := range added {
		if change, ok := x.recent.Get(index.Object{Namespace: key.Namespace, Ref: ref}, x.now()); ok && !startsWith(s, change) {
			x.state.Changes.EventArrived(key, change.At)
		}
	}
	return intent
}

// startsWith reports whether a workload is a Job whose pods start with a change: it was made before this version of the Job. Such a
// change is no reason to look at the Job once more after it has finished.
func startsWith(s workload.Summary, change index.Change) bool {
	if !s.Kind.CreateOnly {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(change.ResourceVersion, s.ResourceVersion())
	return err == nil && order < 0
}

// indexIntent puts into the index what a workload asks for, and returns that, and what the index did not have before. Where all are reread
// meanwhile, the workload may have been read as before, and not be among all yet: it is read again.
func (x *entries) indexIntent(key workload.Key, s workload.Summary) (intent annotation.Intent, added []reference.Ref) {
	for {
		reads := x.rereads.Load()
		intent = x.intent(s)
		added = append(added, x.index.Set(key, intent)...)
		if x.rereads.Load() == reads {
			return intent, added
		}
	}
}

// intent returns what can cause a reload of a workload, with what it selects unresolved.
func (x *entries) intent(s workload.Summary) annotation.Intent {
	if s.Kind.CreateOnly {
		return x.reader.Intent(s).AtOnce()
	}
	return x.reader.Intent(s)
}
