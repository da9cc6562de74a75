package options_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
)

func TestAlertsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	o, err := completeIn(t, map[string]string{
		"POD_NAMESPACE": "tools", "ALERT_ON_RELOAD": "true", "ALERT_SINK": "Teams", "ALERT_WEBHOOK_URL": " https://chat.example/hook ",
		"ALERT_WEBHOOK_PROXY": "http://user:secret@proxy:3128", "ALERT_ADDITIONAL_INFO": "prod",
	})
	require.NoError(t, err)
	require.NotNil(t, o.Alerts)
	assert.Equal(t, alert.Teams, o.Alerts.Sink)
	assert.Equal(t, "https://chat.example/hook", o.Alerts.URL.String())
	assert.Equal(t, "proxy:3128", o.Alerts.Proxy.Host)
	assert.Equal(t, "prod", o.Alerts.Info)

	for _, off := range []string{"", "false"} {
		o, err = completeIn(t, map[string]string{"POD_NAMESPACE": "tools", "ALERT_ON_RELOAD": off, "ALERT_SINK": "pager"})
		require.NoError(t, err)
		assert.Nil(t, o.Alerts, "they are off")
	}
}

// What is wrong is reported at once, and nothing of a URL with it.
func TestAlertProblems(t *testing.T) {
	t.Parallel()
	_, err := completeIn(t, map[string]string{
		"POD_NAMESPACE": "tools", "ALERT_ON_RELOAD": "true", "ALERT_SINK": "pager", "ALERT_WEBHOOK_URL": "ftp://t0ken", "ALERT_WEBHOOK_PROXY": "http://%t0ken",
	})
	require.ErrorContains(t, err, `environment variable ALERT_SINK: "pager": want slack, teams, gchat or webhook`)
	require.ErrorContains(t, err, "environment variable ALERT_WEBHOOK_URL: want an http or https URL")
	require.ErrorContains(t, err, "environment variable ALERT_WEBHOOK_PROXY: want an http, https or socks5 URL")
	assert.NotContains(t, err.Error(), "t0ken")
}

func TestWebhookURLReportsInsteadOfReloading(t *testing.T) {
	t.Parallel()
	tools := map[string]string{"POD_NAMESPACE": "tools"}
	for name, args := range map[string][]string{
		"joined": {"--webhook-url=https://ci.example/t0ken"}, "of the chart": {"--webhook-url", `"https://ci.example/t0ken"`},
	} {
		o, err := completeIn(t, tools, args...)
		require.NoError(t, err, name)
		assert.True(t, o.Reload.NotifyOnly, name)
		require.NotNil(t, o.Alerts, name)
		assert.Equal(t, alert.Webhook, o.Alerts.Sink, name)
		assert.Equal(t, "https://ci.example/t0ken", o.Alerts.URL.String(), name)
	}
	o, err := completeIn(t, tools, "--webhook-url=")
	require.NoError(t, err)
	assert.False(t, o.Reload.NotifyOnly, "an empty URL is none")
	assert.Nil(t, o.Alerts)
	_, err = completeIn(t, tools, "--webhook-url=t0ken")
	require.EqualError(t, err, "--webhook-url: want an http or https URL")
	_, err = completeIn(t, map[string]string{
		"POD_NAMESPACE": "tools", "ALERT_ON_RELOAD": "true", "ALERT_WEBHOOK_URL": "https://chat.example",
	}, "--webhook-url=https://ci.example")
	require.ErrorContains(t, err, "unset ALERT_ON_RELOAD")
}
