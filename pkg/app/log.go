package app

import (
	"log"
	"strings"

	"github.com/go-logr/logr"
)

// httpErrors takes what net/http has to say about connections, such as failed handshakes: clients that do not trust us
// are worth a line, the noise of port scans is not.
func httpErrors(to logr.Logger, server string) *log.Logger {
	return log.New(lines{to.WithValues("server", server)}, "", 0)
}

type lines struct{ to logr.Logger }

func (l lines) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	log := l.to.V(1)
	if strings.Contains(text, "panic") || strings.Contains(text, "certificate") {
		log = l.to
	}
	log.Info("Connection failed", "reason", text)
	return len(p), nil
}
