package alert

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cart is a reload with all that an alert may have.
func cart() Reload {
	return Reload{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), Kind: "Deployment", Namespace: "shop", Name: "cart", Cause: "config-change",
		Changes: []Change{{"configmap", "app", "modified"}, {"secret", "db", "created"}}, More: 3, Pending: "paused",
	}
}

// The payloads are in testdata, as the sink receives them, but indented.
func TestPayloads(t *testing.T) {
	t.Parallel()
	for _, sink := range []Sink{Slack, Teams, GChat, Webhook} {
		t.Run(string(sink), func(t *testing.T) {
			t.Parallel()
			payload, err := Config{Sink: sink, Info: "prod-1"}.payload(cart())
			require.NoError(t, err)
			var indented bytes.Buffer
			require.NoError(t, json.Indent(&indented, payload, "", "  "))
			want, err := os.ReadFile(filepath.Join("testdata", string(sink)+".json"))
			require.NoError(t, err)
			assert.Equal(t, string(want), indented.String()+"\n")
		})
	}
}

func TestTextOfAReload(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reload Reload
		want   string
	}{
		"not reloaded": {
			Reload{Kind: "StatefulSet", Namespace: "a", Name: "b", NotReloaded: true, Changes: []Change{{"secret", "c", "modified"}}},
			"not reloaded StatefulSet a/b: secret/c modified",
		},
		"no change is known": {Reload{Kind: "DaemonSet", Namespace: "a", Name: "b", Cause: "verified-reload"}, "reloaded DaemonSet a/b: verified reload"},
		"one": {
			Reload{Kind: "StatefulSet", Namespace: "a", Name: "b", Changes: []Change{{"secret", "c", "deleted"}}},
			"reloaded StatefulSet a/b: secret/c deleted",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, Config{}.text(tt.reload, ""))
		})
	}
	_, err := Config{Sink: "pager"}.payload(Reload{})
	require.Error(t, err)
	payload, err := Config{Sink: Webhook}.payload(Reload{})
	require.NoError(t, err)
	assert.Contains(t, string(payload), `"changes":[]`, "a list in any case")
}

func TestParseSink(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Sink{"": Webhook, "raw": Webhook, " Slack": Slack, "teams": Teams, "gchat": GChat, "webhook": Webhook} {
		sink, err := ParseSink(name)
		require.NoError(t, err)
		assert.Equal(t, want, sink, name)
	}
	_, err := ParseSink("pager")
	require.ErrorContains(t, err, `"pager": want slack, teams, gchat or webhook`)
}

func TestPayloadOfAChangeWithoutAReload(t *testing.T) {
	t.Parallel()
	r := cart()
	r.NotReloaded, r.Pending = true, ""
	payload, err := Config{Sink: Webhook}.payload(r)
	require.NoError(t, err)
	var got struct{ Event, Text string }
	require.NoError(t, json.Unmarshal(payload, &got))
	assert.Equal(t, "change", got.Event)
	assert.Equal(t, "not reloaded Deployment shop/cart: configmap/app modified, secret/db created, 3 more", got.Text)
	r.Changes = nil
	assert.Equal(t, "not reloaded Deployment shop/cart: 3 changes", Config{}.text(r, ""), "their names were too long")
}
