package explain_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

var (
	app = reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	db  = reference.Ref{Kind: reference.Secret, Name: "db"}
	now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func TestExplain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func(*fixture)
		verdict string
		reason  string
		differs []string
		problem string
	}{
		"in order": {
			change: func(*fixture) {}, verdict: "nothing", reason: "current configuration", differs: []string{"", ""},
		},
		"a config map changed": {
			change:  func(f *fixture) { f.in.States[app] = f.state("2", "b") },
			verdict: "reload", reason: "configmap/app modified", differs: []string{"modified", ""},
		},
		"a config map changed, and is posted": {
			change: func(f *fixture) {
				f.in.States[app] = f.state("2", "b")
				f.in.NotifyOnly = true
			},
			verdict: "reload", reason: "configmap/app modified; the installation posts that to --webhook-url, and restarts nothing", differs: []string{"modified", ""},
		},
		"only its label changed": {
			change:  func(f *fixture) { f.in.States[app] = f.state("2", "a") },
			verdict: "nothing", reason: "current configuration", differs: []string{"", ""},
		},
		"a required secret is gone": {
			change:  func(f *fixture) { f.in.States[db] = digest.State{Absent: true} },
			verdict: "hold", reason: "could not start", differs: []string{"", "deleted"},
			problem: "not found in this namespace: secret/db; check the name, or create it",
		},
		"a listed config map does not exist": {
			change: func(f *fixture) {
				f.in.States[app] = digest.State{Absent: true}
				f.record(app, f.in.States[app])
			},
			verdict: "nothing", reason: "current configuration", differs: []string{"", ""},
			problem: "not found in this namespace: configmap/app; check the name, or create it",
		},
		"what a workload that is not handled lists does not exist": {
			change: func(f *fixture) {
				f.in.States[app] = digest.State{Absent: true}
				f.record(app, f.in.States[app])
				f.in.Outside = "--namespaces does not name shop"
			},
			verdict: "nothing", reason: "not handled", differs: []string{"", ""},
		},
		"a secret that we may not read": {
			change: func(f *fixture) {
				delete(f.in.States, db)
				f.in.ReadErrors = map[reference.Ref]error{db: errors.New("forbidden")}
			},
			verdict: "unknown", differs: []string{"", "unknown"},
			reason: "1 of 2 tracked objects cannot be read here; nothing restarts if the installation cannot read them either: run this in its pod",
		},
		"a custom resource that is not compared, since we may not read the digest key": {
			change: func(f *fixture) {
				f.in.Ring = digest.Ring{}
				delete(f.in.States, db)
				f.in.ReadErrors = map[reference.Ref]error{db: errors.New("it cannot be compared without the digest key")}
			},
			verdict: "unknown", reason: "run this in the installation's pod, or as a user who may read its Secret", differs: []string{"", "unknown"},
		},
		"no digest key, and a secret that we may not read": {
			change: func(f *fixture) {
				f.in.Ring, f.in.NoKey = digest.Ring{}, "the Secret is not there: start it"
				delete(f.in.States, db)
				f.in.ReadErrors = map[reference.Ref]error{db: errors.New("forbidden")}
			},
			verdict: "unknown", reason: "there is no digest key to compare with", differs: []string{"", "unknown"},
		},
		"no digest key, and resourceVersions differ": {
			change: func(f *fixture) {
				f.in.Ring = digest.Ring{}
				f.in.States[app] = digest.State{UID: "u", ResourceVersion: "2"}
			},
			verdict: "unknown", reason: "digest key", differs: []string{"unknown", ""},
		},
		"no digest key, and resourceVersions are the recorded ones": {
			change: func(f *fixture) {
				f.in.Ring = digest.Ring{}
				for ref, state := range f.in.States {
					f.in.States[ref] = digest.State{UID: state.UID, ResourceVersion: state.ResourceVersion}
				}
			},
			verdict: "nothing", reason: "recorded resourceVersion", differs: []string{"", ""},
		},
		"no digest key, and nothing is recorded": {
			change: func(f *fixture) {
				f.in.Ring = digest.Ring{}
				delete(f.annotations(), "pod-reloader.cs.sap.com/config-record")
				delete(f.template(), "pod-reloader.cs.sap.com/config-hash")
			},
			verdict: "unknown", reason: "digest key", differs: []string{"unknown", "unknown"},
		},
		"no digest key, and the record is gone": {
			change: func(f *fixture) {
				f.in.Ring = digest.Ring{}
				delete(f.annotations(), "pod-reloader.cs.sap.com/config-record")
			},
			verdict: "unknown", reason: "digest key", differs: []string{"unknown", "unknown"},
		},
		"no digest key for any namespace": {
			change: func(f *fixture) {
				f.in.Ring = digest.Ring{}
				f.in.NoKey = "the Secret is not there: start it"
				for ref, state := range f.in.States {
					f.in.States[ref] = digest.State{UID: state.UID, ResourceVersion: state.ResourceVersion}
				}
			},
			verdict: "unknown", reason: "there is no digest key to compare with: the Secret is not there: start it",
			differs: []string{"", ""},
		},
		"no digest key, and a secret is gone": {
			change: func(f *fixture) {
				f.in.Ring = digest.Ring{}
				f.in.States[db] = digest.State{Absent: true}
			},
			verdict: "unknown", reason: "digest key", differs: []string{"", "deleted"}, problem: "not found in this namespace: secret/db",
		},
		"the record is gone, and nothing changed": {
			change:  func(f *fixture) { delete(f.annotations(), "pod-reloader.cs.sap.com/config-record") },
			verdict: "nothing", reason: "first seen", differs: []string{"", ""},
		},
		"the record is gone, and something changed": {
			change: func(f *fixture) {
				delete(f.annotations(), "pod-reloader.cs.sap.com/config-record")
				f.in.States[app] = f.state("2", "b")
			},
			verdict: "reload", reason: "a tracked object modified", differs: []string{"unknown", "unknown"},
		},
		"the record is not readable": {
			change:  func(f *fixture) { f.annotations()["pod-reloader.cs.sap.com/config-record"] = "v1:x" },
			verdict: "nothing", reason: "first seen", differs: []string{"", ""}, problem: "only the config-hash is compared",
		},
		"a newer version has recorded": {
			change:  func(f *fixture) { f.annotations()["pod-reloader.cs.sap.com/config-record"] = "v2:x" },
			verdict: "nothing", reason: "upgrade", differs: []string{"unknown", "unknown"}, problem: "upgrade this one; until then, nothing is compared",
		},
		"never opted in": {
			change: func(f *fixture) {
				delete(f.annotations(), "pod-reloader.cs.sap.com/configmaps")
				delete(f.annotations(), "pod-reloader.cs.sap.com/secrets")
			},
			verdict: "nothing", reason: "no annotation asks for reloads",
		},
		"the list is on the pod template": {
			change: func(f *fixture) {
				delete(f.annotations(), "pod-reloader.cs.sap.com/configmaps")
				delete(f.annotations(), "pod-reloader.cs.sap.com/secrets")
				f.template()["pod-reloader.cs.sap.com/configmaps"] = "app"
			},
			verdict: "nothing", reason: "on the workload itself", problem: "on the pod template has no effect",
		},
		"disabled by label": {
			change: func(f *fixture) {
				f.metadata()["labels"] = map[string]any{"pod-reloader.cs.sap.com/disabled": "true"}
			},
			verdict: "nothing", reason: "a label excludes", differs: []string{"", ""},
		},
		"the pod template is elsewhere": {
			change: func(f *fixture) {
				spec := f.raw["spec"].(map[string]any)
				spec["workloadRef"] = map[string]any{"name": "cart"}
				delete(spec, "template")
			},
			verdict: "nothing", reason: "the workload cannot be stamped: the pod template is that of the workload at spec.workloadRef",
			differs: []string{"unknown", "unknown"}, problem: "is not valid for a Deployment",
		},
		"what the annotations select is not known": {
			change: func(f *fixture) {
				f.in.States[app] = f.state("2", "b")
				f.unlisted = errors.New("list configmaps: you may not")
			},
			verdict: "unknown", reason: "list configmaps: you may not", differs: []string{"modified", ""},
		},
		"what the annotations select is not known, and it does not matter": {
			change: func(f *fixture) {
				f.metadata()["labels"] = map[string]any{"pod-reloader.cs.sap.com/ignored": "true"}
				f.unlisted = errors.New("list configmaps: you may not")
			},
			verdict: "nothing", reason: "a label excludes", differs: []string{"", ""},
		},
		"being deleted": {
			change: func(f *fixture) {
				f.metadata()["deletionTimestamp"] = "2026-01-02T03:04:05Z"
				f.in.States[app] = f.state("2", "b")
			},
			verdict: "nothing", reason: "is being deleted", differs: []string{"modified", ""},
		},
		"paused: the pods may still have what was before": {
			change:  func(f *fixture) { f.raw["spec"].(map[string]any)["paused"] = true },
			verdict: "nothing", reason: "the pod template has the current configuration", differs: []string{"", ""},
		},
		"out of scope": {
			change:  func(f *fixture) { f.in.Outside = "--namespaces does not name shop" },
			verdict: "nothing", reason: "not handled: --namespaces does not name shop", differs: []string{"", ""},
		},
		"a required secret is gone, and the installation does not mind": {
			change: func(f *fixture) {
				f.in.States[db] = digest.State{Absent: true}
				f.in.ReloadMissingRequired = true
			},
			verdict: "reload", reason: "secret/db deleted", differs: []string{"", "deleted"}, problem: "not found in this namespace: secret/db",
		},
		"a name that cannot exist": {
			change:  func(f *fixture) { f.annotations()["pod-reloader.cs.sap.com/configmaps"] = "app,App!" },
			verdict: "nothing", reason: "current configuration", differs: []string{"", ""}, problem: "App!",
		},
		"a dummy is stored": {
			change:  func(f *fixture) { f.annotations()["pod-reloader.cs.sap.com/config-hash"] = "x@1" },
			verdict: "nothing", reason: "current configuration", differs: []string{"", ""}, problem: "no webhook has handled the last reload request, or it could not check it: ",
		},
		"a dummy is left to another installation": {
			change: func(f *fixture) {
				f.trackNothing()
				f.annotations()["pod-reloader.cs.sap.com/config-hash"] = "x@1"
			},
			verdict: "nothing", reason: "no configmap that is not ignored or excluded has a name that an expression matches",
			problem: "no webhook has handled the last reload request, or it left it to another installation: this one tracks no object of the workload",
		},
		"a dummy is left to another installation, without a Record": {
			change: func(f *fixture) {
				f.trackNothing()
				delete(f.annotations(), "pod-reloader.cs.sap.com/config-record")
				f.annotations()["pod-reloader.cs.sap.com/config-hash"] = "x@1"
			},
			verdict: "nothing", reason: "no configmap that is not ignored or excluded", problem: "names some, or is missing beside a config-hash",
		},
		"a dummy is stored where nothing is recorded": {
			change: func(f *fixture) {
				f.trackNothing()
				f.annotations()["pod-reloader.cs.sap.com/config-record"] = record.New(f.hash, "", nil).String()
				f.annotations()["pod-reloader.cs.sap.com/config-hash"] = "x@1"
			},
			verdict: "nothing", reason: "no configmap that is not ignored or excluded", problem: "or it could not check it: ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tc.change(f)
			report := f.explain()
			assert.Equal(t, tc.verdict, report.Verdict, report.Reason)
			assert.Contains(t, report.Reason, tc.reason)
			assert.Equal(t, tc.differs, differs(report))
			if tc.problem != "" {
				require.NotEmpty(t, report.Problems)
				assert.Contains(t, report.Problems[0], tc.problem)
			} else {
				assert.Empty(t, report.Problems)
			}
		})
	}
}

// fixture is a stamped Deployment whose pods have the current configuration.
type fixture struct {
	ring digest.Ring
	raw  map[string]any
	hash string
	in   explain.Input
	kind string
	// unlisted is why the config objects could not be listed, which annotations of Reloader need.
	unlisted error
	// classes says that SecretProviderClasses are handled.
	classes bool
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	ring := digesttest.Ring(t, "7")
	keys := annotation.DefaultKeys()
	f := &fixture{ring: ring, kind: "deployment"}
	states := map[reference.Ref]digest.State{app: f.state("1", "a"), db: f.state("1", "s")}
	id, _ := ring.Newest()
	var err error
	f.hash, err = digest.Hash(id.ID, states)
	require.NoError(t, err)
	f.raw = map[string]any{
		"metadata": map[string]any{
			"name": "cart", "namespace": "shop", "generation": int64(3),
			"annotations": map[string]any{
				keys.ConfigMaps: "app", keys.Secrets: "db",
			},
		},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{keys.ConfigHash: f.hash}},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "envFrom": []any{
				map[string]any{"secretRef": map[string]any{"name": "db"}},
			}}}},
		}},
	}
	f.in = explain.Input{Keys: keys, States: states, Ring: ring, Now: now}
	f.record(app, states[app])
	return f
}

// trackNothing makes the annotations ask for what does not exist.
func (f *fixture) trackNothing() {
	delete(f.annotations(), f.in.Keys.ConfigMaps)
	delete(f.annotations(), f.in.Keys.Secrets)
	f.annotations()["configmap.reloader.stakater.com/reload"] = "app-.*"
}

// record writes the Record in which one object has another state than the present one.
func (f *fixture) record(changed reference.Ref, known digest.State) {
	key, _ := f.ring.Newest()
	items := map[reference.Ref]record.Item{}
	for ref, state := range f.in.States {
		if ref == changed {
			state = known
		}
		items[ref], _ = record.ItemOf(key.ID, state)
	}
	f.annotations()[f.in.Keys.ConfigRecord] = record.New(f.hash, key.ID, items).String()
}

func (f *fixture) explain() explain.Report {
	f.in.Object = workload.Object{Kind: workload.NewKinds(workload.Builtin()...).Find(f.kind)[0], Raw: f.raw}
	stakater := annotation.Stakater{Keys: annotation.NewStakaterKeys(), SecretProviderClasses: f.classes}
	dialects := []annotation.Dialect{annotation.SAP{Keys: f.in.Keys}, stakater}
	if f.in.Unread != nil {
		dialects = dialects[:1]
	}
	reader := stamp.Reader{
		Keys: f.in.Keys, Dialects: dialects,
		Objects: func(string) (annotation.Objects, error) { return annotation.Unlisted{}, f.unlisted },
	}
	if f.unlisted != nil {
		f.annotations()["reloader.stakater.com/auto"] = "true"
	}
	f.in.View, f.in.Problems = reader.Read(f.in.Object)
	return explain.Explain(f.in)
}

func (f *fixture) state(resourceVersion, value string) digest.State {
	content := digest.OfConfigMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Data: map[string]string{"k": value},
	})
	return digest.StateOf(content, "u", resourceVersion, f.ring)
}

func (f *fixture) metadata() map[string]any { return f.raw["metadata"].(map[string]any) }

func (f *fixture) annotations() map[string]any { return f.metadata()["annotations"].(map[string]any) }

func (f *fixture) template() map[string]any {
	template := f.raw["spec"].(map[string]any)["template"].(map[string]any)
	return template["metadata"].(map[string]any)["annotations"].(map[string]any)
}
