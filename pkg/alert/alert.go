// Package alert posts a message about each reload to a chat or another HTTP endpoint. It is beside the loop and never before
// it: an alert is offered to the bounded queue of its namespace without waiting, and delivered with time-outs and retries. One
// that finds this queue full, or cannot be delivered, is dropped and counted.
//
// A message has names of objects and what happened to them, never their contents. The URL often contains a token, so it is
// in no log line and in no error.
package alert

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Sink is what receives alerts; it decides the payload.
type Sink string

// The sinks, by the names that Reloader gives them.
const (
	Slack   Sink = "slack"
	Teams   Sink = "teams"
	GChat   Sink = "gchat"
	Webhook Sink = "webhook"
)

// ParseSink returns the sink of a name in any case. An empty one is Webhook, and so is "raw", its other name in Reloader.
func ParseSink(name string) (Sink, error) {
	switch s := Sink(cmp.Or(strings.ToLower(strings.TrimSpace(name)), string(Webhook))); {
	case s == "raw":
		return Webhook, nil
	case slices.Contains([]Sink{Slack, Teams, GChat, Webhook}, s):
		return s, nil
	default:
		return "", fmt.Errorf("%q: want slack, teams, gchat or webhook", name)
	}
}

// Config says where alerts go.
type Config struct {
	Sink Sink
	// URL receives the POST requests.
	URL *url.URL
	// Proxy is the way there; nil means what HTTPS_PROXY and the like say.
	Proxy *url.URL
	// Info is put before each message, such as the name of the cluster.
	Info string
}

// String shows nothing that is secret.
func (c Config) String() string { return string(c.Sink) }

// Reload is what an alert reports.
type Reload struct {
	Time time.Time
	// Kind, Namespace and Name are those of the workload.
	Kind, Namespace, Name string
	// Cause is the cause in the last-reload annotation, such as config-change.
	Cause string
	// Changes are the config objects that caused it, as far as they are known.
	Changes []Change
	// More counts further ones.
	More int
	// NotReloaded says that the changes are reported and nothing was reloaded.
	NotReloaded bool
	// Pending says why pods do not restart yet, such as "paused"; empty if they do.
	Pending string
}

// Change is what happened to a config object.
type Change struct {
	// Kind is configmap or secret.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Type is created, modified or deleted; listed or unlisted for an edit of a list.
	Type string `json:"type"`
}
