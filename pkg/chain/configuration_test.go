package chain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// The configuration file is checked before. Definitions that are not valid in spite of that replace none that are.
func TestInvalidDefinitionsLeaveThoseThatWait(t *testing.T) {
	t.Parallel()
	log, lines := logtest.New()
	c := New(Options{Log: log})
	c.Configure(onlyProxies())
	waiting := c.rules.Load()
	c.Configure(append(onlyProxies(), onlyProxies()...))
	assert.Equal(t, 1, lines.Count("the resources of the configuration are not valid"))
	assert.Same(t, waiting, c.rules.Load())
	assert.Same(t, waiting, c.inbox.take(true).schema)
}

func TestStateOfAResourceThatIsNotInTheSchema(t *testing.T) {
	t.Parallel()
	_, schema, _ := proxiesAlone(t)
	began := time.Now()
	now := began.Add(time.Hour)
	for name, c := range map[string]struct {
		configured, rejected bool
		rules                *referent.Schema
		kind                 reference.Kind
		reason               string
		unread               bool
		since                time.Time
	}{
		"not configured": {kind: "kafkaproxies.kroxylicious.io", reason: "the configuration has not been read yet", unread: true, since: began},
		"rejected": {
			rejected: true, kind: "kafkaproxies.kroxylicious.io", since: began,
			reason: "the configuration of --config is missing or not valid: its Event and the log say why",
		},
		"rejected later": {
			configured: true, rejected: true, rules: schema, kind: "widgets.example.org",
			reason: `the referents of the configuration have no resource "widgets.example.org"`,
		},
		"not in force": {
			configured: true, rules: schema, kind: "kafkaproxies.kroxylicious.io",
			reason: "its configuration is not in force yet", unread: true, since: now,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configuration := &configuration{began: began, configured: c.configured, schema: &referent.Schema{}}
			configuration.rules.Store(c.rules)
			if c.rejected {
				configuration.Reject()
			}
			_, known := configuration.key("ns", reference.Ref{Kind: c.kind, Name: "p"})
			assert.False(t, known, "the resource is not in the schema")
			hold := configuration.unknownState(c.kind, now).Hold
			assert.Equal(t, c.reason, hold.Reason)
			assert.Equal(t, c.unread, hold.NotReadYet)
			assert.Equal(t, c.since, hold.Since)
		})
	}
}
