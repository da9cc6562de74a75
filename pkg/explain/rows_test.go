package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	listOfConfigMaps = "pod-reloader.cs.sap.com/configmaps"
	listOfSecrets    = "pod-reloader.cs.sap.com/secrets"
	configRecord     = "pod-reloader.cs.sap.com/config-record"
)

// A row says whether an object differs from what is recorded, also where the difference triggers no reload.
func TestRowsSayWhatDiffers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		change  func(*fixture)
		verdict string
		why     string
		differs []string
	}{
		"modified beside what is held": {
			reason: "Only the missing Secret is in the verdict.",
			change: func(f *fixture) {
				f.in.States[app], f.in.States[db] = f.state("2", "b"), digest.State{Absent: true}
			},
			verdict: "hold", why: "secret/db deleted", differs: []string{"modified", "deleted"},
		},
		"deleted where deletions do not trigger": {
			reason: "That is the default of Reloader's annotations.",
			change: func(f *fixture) {
				f.reloaderTracksApp()
				f.in.States[app] = digest.State{Absent: true}
			},
			verdict: "nothing", why: "what differs does not trigger a reload", differs: []string{"deleted", ""},
		},
		"the record is gone, and the hash differs": {
			reason: "The hash does not say which one.",
			change: func(f *fixture) {
				delete(f.annotations(), configRecord)
				f.in.States[app] = f.state("2", "b")
			},
			verdict: "reload", why: "a tracked object modified", differs: []string{"unknown", "unknown"},
		},
		"a newer version has recorded": {
			reason:  "It cannot be read.",
			change:  func(f *fixture) { f.annotations()[configRecord] = "v2:x" },
			verdict: "nothing", why: "upgrade", differs: []string{"unknown", "unknown"},
		},
		"first seen": {
			reason: "It is not recorded yet.",
			change: func(f *fixture) {
				f.annotations()[listOfConfigMaps] = "app,more"
				f.in.States[reference.Ref{Kind: reference.ConfigMap, Name: "more"}] = f.state("1", "m")
			},
			verdict: "nothing", why: "first seen", differs: []string{"", "unknown", ""},
		},
		"held": {
			reason:  "Its state cannot be trusted.",
			change:  func(f *fixture) { f.in.States[app] = digest.State{Hold: &digest.Hold{Reason: "not-ready"}} },
			verdict: "nothing", why: "current configuration", differs: []string{"unknown", ""},
		},
		"created": {
			reason: "The optional object was recorded as absent.",
			change: func(f *fixture) {
				f.record(app, digest.State{Absent: true})
				f.in.States[app] = f.state("2", "a")
			},
			verdict: "reload", why: "configmap/app created", differs: []string{"created", ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tc.change(f)
			report := f.explain()
			assert.Equal(t, tc.verdict, report.Verdict, tc.reason)
			assert.Contains(t, report.Reason, tc.why, tc.reason)
			assert.Equal(t, tc.differs, differs(report), tc.reason)
		})
	}
}

// A hash that is the one of the present state proves it for each object.
func TestRowsOfAProvenHash(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	delete(f.annotations(), configRecord)
	for _, row := range f.explain().Configuration {
		assert.Equal(t, row.Now, row.Known, row.Ref)
		assert.Empty(t, row.Differs, row.Ref)
	}
}

func differs(report explain.Report) []string {
	var all []string
	for _, row := range report.Configuration {
		all = append(all, row.Differs)
	}
	return all
}

const keyless = "the config-hash is not made with a key of the Secret tools/keys: it is another program's, a revision digest, or made under a lost key"

// A key that the ring lacks may be lost, or the Secret that was read is that of another installation.
func TestForeignDigestKeyIsAProblem(t *testing.T) {
	t.Parallel()
	newest, _ := newFixture(t).ring.Newest()
	for what, tc := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"config-record": {
			change: func(*fixture) {},
			want:   "the config-record is under digest key " + string(newest.ID) + ", which is not in the Secret tools/keys",
		},
		"config-hash": {change: func(f *fixture) { delete(f.annotations(), configRecord) }, want: keyless},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			other := digesttest.Ring(t, "8")
			f.ring, f.in.Ring, f.in.KeySecret = other, other, "tools/keys"
			f.in.States = map[reference.Ref]digest.State{app: f.state("2", "a"), db: {Absent: true}}
			tc.change(f)
			report := f.explain()
			assert.Equal(t, "unknown", report.Verdict)
			assert.Equal(t, tc.want, report.Reason)
			require.Len(t, report.Problems, 2, "secret/db is missing, too")
			for _, want := range []string{
				tc.want + ": name the Secret",
				"--installation-namespace", "--digest-key-secret", "give both the same digest key Secret",
				"If the key is lost, or there was none, pod-reloader adopts the workload again, and nothing restarts",
			} {
				assert.Contains(t, report.Problems[1], want)
			}
			if what == "config-record" {
				assert.Equal(t, []string{"unknown", "deleted"}, differs(report))
			}
		})
	}
}

// A revision digest, such as that of SAP's program, has the form of a config-hash and no key.
func TestRevisionDigestIsUnderNoKey(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change   func(*fixture)
		verdict  string
		reason   string
		differs  []string
		problems int
	}{
		"proven": {change: func(*fixture) {}, verdict: "nothing", reason: "current configuration", differs: []string{"", ""}},
		"not proven": {
			change:  func(f *fixture) { f.in.States[app] = f.state("2", "b") },
			verdict: "unknown", reason: keyless, differs: []string{"unknown", "unknown"}, problems: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			delete(f.annotations(), configRecord)
			f.template()[f.in.Keys.ConfigHash] = digest.Revision("shop", []string{app.Name}, []string{db.Name}, f.in.States)
			f.in.KeySecret = "tools/keys"
			tc.change(f)
			report := f.explain()
			assert.Equal(t, tc.verdict, report.Verdict)
			assert.Contains(t, report.Reason, tc.reason)
			assert.Equal(t, tc.differs, differs(report))
			assert.Len(t, report.Problems, tc.problems)
		})
	}
}

// What needs no digest key is said all the same.
func TestForeignDigestKeyBesideACreation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.record(app, digest.State{Absent: true})
	other := digesttest.Ring(t, "8")
	f.ring, f.in.Ring = other, other
	f.in.States[app] = f.state("2", "a")
	report := f.explain()
	assert.Equal(t, "reload", report.Verdict)
	assert.Contains(t, report.Reason, "configmap/app created")
	assert.Len(t, report.Problems, 1)
}

// reloaderTracksApp has an annotation of Reloader select the ConfigMap in place of the list.
func (f *fixture) reloaderTracksApp() {
	delete(f.annotations(), listOfConfigMaps)
	f.annotations()["configmap.reloader.stakater.com/reload"] = app.Name
}
