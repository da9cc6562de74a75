package app

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
)

func TestRefusedCertificatesDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, lines := logtest.New()
		c := newHTTPErrorLog(log)
		write := func(text string) {
			_, err := fmt.Fprintln(c, text)
			require.NoError(t, err)
		}
		for range 1000 {
			write("http: TLS handshake error from 10.0.0.1:1: remote error: tls: bad certificate")
			write("http: TLS handshake error from 10.0.0.1:1: EOF")
		}
		assert.Len(t, lines(), 10, "the first of those that do not trust the certificate, and no port scan")
		write("http: panic serving 10.0.0.1:1")
		assert.Len(t, lines(), 11, "each panic")
		<-time.After(time.Minute)
		write("http: TLS handshake error from 10.0.0.1:2: remote error: tls: bad certificate")
		assert.Len(t, lines(), 12)
		assert.Contains(t, lines()[11], "10.0.0.1:2")
	})
}
