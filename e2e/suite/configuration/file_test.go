package configuration_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// mount is a directory with a configuration as the kubelet keeps the volume of a ConfigMap: config.yaml is a symbolic
// link into ..data, which is one to a directory that is swapped as a whole.
type mount struct{ dir string }

func (m mount) path() string { return filepath.Join(m.dir, "config.yaml") }

func (m mount) write(t *testing.T, version, text string) {
	t.Helper()
	require.NoError(t, os.Mkdir(filepath.Join(m.dir, version), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, version, "config.yaml"), []byte(text), 0o600))
	require.NoError(t, os.Symlink(version, filepath.Join(m.dir, "..data_tmp")))
	require.NoError(t, os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data")))
	if _, err := os.Lstat(m.path()); err != nil {
		require.NoError(t, os.Symlink(filepath.Join("..data", "config.yaml"), m.path()))
	}
}

// The same with a file, in short; Events are about the leader's own pod.
func TestChangedConfigurationFileIsApplied(t *testing.T) {
	t.Parallel()
	files := mount{t.TempDir()}
	r := newFleetFixture(t, "--config="+files.path())
	r.ConfigMap("app", fixture.Data{"key": "1"})
	leader, err := r.Installation.Leader(t.Context())
	require.NoError(t, err)
	pod := observe.Workload{Kind: "Pod", Namespace: "pod-reloader", Name: leader.Name()}
	r.AwaitEvent(pod, "ConfigurationUnreadable", "there is no file "+files.path())
	r.valid(0)

	files.write(t, "v1", withFleet)
	r.serving(1, `"added":["`+fleetText+`"]`)
	r.AwaitEvent(pod, "ConfigurationApplied", "added "+fleetText)
	r.valid(1)
	r.awaitStamps()
	w := r.fleet("web")
	assert.Contains(t, r.get("web").GetAnnotations()[fixture.ConfigRecord], "configmap/app=", "stamped at admission")
	r.change("2", 1, "one change is one restart", w)
	r.explained("web", files.path())

	files.write(t, "v2", invalid)
	r.AwaitEvent(pod, "ConfigurationRejected", invalid0, invalid1)
	files.write(t, "v3", header+"workloadKind: []\n")
	r.AwaitEvent(pod, "ConfigurationRejected", "workloadKind: Forbidden: this field is unknown")
	r.valid(0)
	r.change("3", 2, "the kind is reloaded as before", w)

	files.write(t, "v4", header)
	r.serving(1, `"removed":["`+fleetText+`"]`)
	r.valid(1)
	r.fleet("unknown")
	assert.Empty(t, fixture.TemplateAnnotations(r.get("unknown")), "no longer stamped")
	r.change("4", 2, "no longer reloaded", w)

	// The template of the kind is elsewhere, and then where it was: each workload is read by the path of the moment.
	files.write(t, "v5", strings.Replace(withFleet, "spec.template", "spec.pods", 1))
	r.serving(1, `"added":["road.example.com/v1/Fleet=spec.pods"]`)
	moved := r.manifest("moved")
	moved.Object["spec"] = map[string]any{"pods": moved.Object["spec"].(map[string]any)["template"]}
	r.CreatePromptly(moved)
	hash := func() string {
		annotations, _, _ := unstructured.NestedStringMap(r.get("moved").Object, "spec", "pods", "metadata", "annotations")
		return annotations[fixture.ConfigHash]
	}
	before := hash()
	require.NotEmpty(t, before, "stamped where its template is")
	r.SetConfigMap("app", "key", "5")
	r.Await("the reload where its template is", func() error {
		if hash() == before {
			return errors.New("its digest is the old one")
		}
		return nil
	})
	files.write(t, "v6", withFleet)
	r.serving(2, `"added":["`+fleetText+`"]`)
	r.AwaitChanges(w, 3, "what has changed meanwhile")
	r.change("6", 4, "as before", w)
	r.undisturbed()
}
