package configuration_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

const inConfigMap = "configmap:pod-reloader/settings"

// settings is the ConfigMap of the configuration, as Events name it.
var settings = observe.Workload{Kind: "ConfigMap", Namespace: "pod-reloader", Name: "settings"}

// write puts a configuration into the ConfigMap.
func (r *fleetFixture) write(text string) {
	r.Helper()
	require.NoError(r, r.Update(r.Context(), settingsWith(map[string]string{"config.yaml": text})))
}

func settingsWith(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: settings.Name}, Data: data}
}

// A kind of workload is added, made invalid, corrected and removed while two replicas run on without a restart.
func TestChangedConfigurationConfigMapIsApplied(t *testing.T) {
	t.Parallel()
	r := newFleetFixture(t, "--config="+inConfigMap)
	r.ConfigMap("app", fixture.Data{"key": "1"})

	// There is no configuration at the start: this is reported, and the built-in kinds are reloaded.
	r.AwaitEvent(settings, "ConfigurationUnreadable", "there is no ConfigMap pod-reloader/settings")
	r.valid(0)
	builtin := r.Deployment("builtin", fixture.Uses{ConfigMaps: []string{"app"}})
	assert.NotEmpty(t, fixture.TemplateAnnotations(r.Get(builtin))[fixture.ConfigHash])
	require.NoError(t, r.Create(t.Context(), settingsWith(map[string]string{"config.yml": header})))
	r.AwaitEvent(settings, "ConfigurationRejected", "data[config.yaml]: Required value")
	r.write(header)
	r.AwaitEvent(settings, "ConfigurationApplied", "nothing changes")
	r.valid(1)

	// A fleet is ignored until the configuration has its kind.
	early := r.fleet("early")
	r.Settled()
	assert.Empty(t, r.get("early").GetAnnotations()[fixture.ConfigRecord])
	assert.Empty(t, fixture.TemplateAnnotations(r.get("early")))
	started := time.Now()
	r.write(withFleet)
	r.awaitStamps()
	stamped := time.Since(started)
	r.Await("the adoption of what was there before", func() error {
		if r.get("early").GetAnnotations()[fixture.ConfigRecord] == "" {
			return errors.New("it has no Record")
		}
		return nil
	})
	t.Logf("the new kind is stamped by the webhook after %s and adopted by the loop after %s", stamped, time.Since(started))
	r.serving(1, `"added":["`+fleetText+`"]`)
	r.AwaitEvent(settings, "ConfigurationApplied", "added "+fleetText)
	late := r.fleet("late")
	assert.Contains(t, r.get("late").GetAnnotations()[fixture.ConfigRecord], "configmap/app=", "stamped at admission")
	r.AwaitExactly(0, "adding its kind restarts nothing", early)
	r.change("2", 1, "one change is one restart", early, late, builtin)
	r.explained("late", inConfigMap)

	// What is invalid is rejected as a whole, and the last good one stays in force.
	r.write(invalid)
	event := r.AwaitEvent(settings, "ConfigurationRejected", invalid0, invalid1, "the last valid configuration stays in force")
	assert.Equal(t, corev1.EventTypeWarning, event.Type)
	r.valid(0)
	r.change("3", 2, "the kind is reloaded as before", early, late, builtin)
	r.write(withFleet)
	r.valid(1)
	require.NoError(t, r.Delete(t.Context(), settingsWith(nil)))
	r.valid(0)
	r.change("4", 3, "a deleted configuration stays in force", early, late, builtin)

	// A kind that is removed is left as it is; when it is added again, what has changed meanwhile is reloaded.
	require.NoError(t, r.Create(t.Context(), settingsWith(map[string]string{"config.yaml": header})))
	r.serving(1, `"removed":["`+fleetText+`"]`)
	r.fleet("unknown")
	assert.Empty(t, fixture.TemplateAnnotations(r.get("unknown")), "no longer stamped")
	r.change("5", 3, "no longer reloaded", early, late)
	r.AwaitChanges(builtin, 4, "what is built in is reloaded as ever")
	r.write(withFleet)
	for _, w := range []observe.Workload{early, late} {
		r.AwaitChanges(w, 4, "a change that was missed")
	}
	r.change("6", 5, "and from then on as before, as what is built in all the time", early, late, builtin)
	r.undisturbed()
}
