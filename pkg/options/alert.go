package options

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
)

// The variables of alerts, as in Reloader. They are no flags, since the URL is a secret.
const (
	alertOnReload = "ALERT_ON_RELOAD"
	alertSink     = "ALERT_SINK"
	alertURL      = "ALERT_WEBHOOK_URL"
	alertProxy    = "ALERT_WEBHOOK_PROXY"
	alertInfo     = "ALERT_ADDITIONAL_INFO"
)

// alerts returns where alerts go. With --webhook-url it is there, and they are about changes: nothing is reloaded.
func (f *Flags) alerts(p *problems, env Environment) *alert.Config {
	c := completeAlerts(p, env)
	if f.stakater.webhookURL == "" {
		return c
	}
	if c != nil {
		p.add("webhook-url", errors.New("nothing is reloaded with it, and alerts are about reloads: unset "+alertOnReload))
	}
	// Reloader's chart may leave quotes inside the argument.
	u := parseURL(strings.Trim(f.stakater.webhookURL, ` "`), "http", "https")
	if u == nil {
		p.add("webhook-url", errors.New("want an http or https URL"))
	}
	return &alert.Config{Sink: alert.Webhook, URL: u}
}

// completeAlerts returns where alerts go; nil where there are none.
func completeAlerts(p *problems, env Environment) *alert.Config {
	get := func(name string) string { return strings.TrimSpace(env.Getenv(name)) }
	if !alertSwitch(env).on() {
		return nil
	}
	c := &alert.Config{Info: get(alertInfo)}
	var err error
	if c.Sink, err = alert.ParseSink(get(alertSink)); err != nil {
		p.variable(alertSink, err)
	}
	if c.URL = parseURL(get(alertURL), "http", "https"); c.URL == nil {
		p.variable(alertURL, errors.New("want an http or https URL, since "+alertOnReload+" is true"))
	}
	if proxy := get(alertProxy); proxy != "" {
		if c.Proxy = parseURL(proxy, "http", "https", "socks5"); c.Proxy == nil {
			p.variable(alertProxy, errors.New("want an http, https or socks5 URL"))
		}
	}
	return c
}

// parseURL returns nil for what is no URL of one of the schemes. Its text is in no error: it may have a token or a password.
func parseURL(text string, schemes ...string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		return nil
	}
	return u
}
