package comparison_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// kinds are those whose template the loop has stamped.
var kinds = []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"}

// SAP splits its lists at the comma and leaves the white space on, so that it watches for an object called " b", which
// cannot exist.
func TestListsMayHaveSpaces(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("a", fixture.Data{"key": "1"})
	s.ConfigMap("b", fixture.Data{"key": "1"})
	s.Secret("c", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{Annotations: map[string]string{
		fixture.ConfigMaps: "a, b", fixture.Secrets: "\n  c ,\n",
	}})
	record := s.Get(w).GetAnnotations()[fixture.ConfigRecord]
	for _, ref := range []string{"configmap/a=", "configmap/b=", "secret/c="} {
		assert.Contains(t, record, ref, "the name behind the white space is tracked")
	}
	s.SetConfigMap("b", "key", "2")
	s.AwaitChanges(w, 1, "the second name of the list \"a, b\" changed")
	s.SetSecret("c", "key", "2")
	s.AwaitChanges(w, 2, "a name between line breaks changed")
	s.Settled()
	s.RequireChanges(w, 2, "each change is one restart")
}
