package app

import (
	"strings"

	"github.com/go-logr/logr"
)

// connections takes what net/http writes to the standard logger, such as failed handshakes: clients that do not trust us
// are worth a line, the noise of port scans is not.
type connections struct{ to logr.Logger }

func (c connections) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	log := c.to.V(1)
	if strings.Contains(text, "panic") || strings.Contains(text, "certificate") {
		log = c.to
	}
	log.Info("Connection failed", "reason", text)
	return len(p), nil
}
