package app

import (
	"github.com/pod-reloader/pod-reloader/pkg/alert"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
)

// alerts builds the sink of alerts, and starts it with the servers: it ends after the loop, whose last reloads it reports. It
// returns nil where no alerts are wanted.
func (b *builder) alerts() report.Alerts {
	if b.options.Alerts == nil {
		return nil
	}
	n := alert.New(*b.options.Alerts, b.registry, b.log.WithName("alert"))
	b.serving = append(b.serving, n)
	return n
}
