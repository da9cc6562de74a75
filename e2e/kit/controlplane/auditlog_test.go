package controlplane

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// auditFile is an audit log that a test writes line by line.
type auditFile struct {
	t    *testing.T
	path string
}

func newAuditFile(t *testing.T) (*auditFile, *AuditLog) {
	t.Helper()
	file := &auditFile{t: t, path: filepath.Join(t.TempDir(), "audit.log")}
	return file, newAuditLog(file.path)
}

func (f *auditFile) append(text string) {
	f.t.Helper()
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(f.t, err)
	_, err = file.WriteString(text)
	require.NoError(f.t, err)
	require.NoError(f.t, file.Close())
}

func (f *auditFile) received(id string) {
	f.append(`{"auditID":"` + id + `","stage":"RequestReceived","verb":"get","requestURI":"/` + id + `"}` + "\n")
}

func (f *auditFile) answered(id string) {
	f.append(`{"auditID":"` + id + `","stage":"ResponseComplete","verb":"get","responseStatus":{"code":200}}` + "\n")
}

func TestSinceWaitsForTheOutcome(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		how  func(*auditFile, *AuditLog)
		code int
	}{
		"the answer comes late":                    {func(f *auditFile, _ *AuditLog) { f.answered("slow") }, 200},
		"the answer never comes: the server ended": {func(_ *auditFile, l *AuditLog) { l.abandon() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				file, log := newAuditFile(t)
				file.received("slow")
				result := make(chan Requests)
				go func() {
					requests, err := log.All(t.Context())
					assert.NoError(t, err)
					result <- requests
				}()
				synctest.Wait()
				select {
				case <-result:
					require.Fail(t, "it did not wait")
				default:
				}
				end.how(file, log)
				requests := <-result
				require.Len(t, requests, 1)
				assert.Equal(t, end.code, requests[0].Code)
			})
		})
	}
}

func TestSinceDoesNotWaitForWhatIsNotAsked(t *testing.T) {
	t.Parallel()
	file, log := newAuditFile(t)
	requests, err := log.All(t.Context())
	require.NoError(t, err, "no file is an empty log")
	assert.Empty(t, requests)

	file.received("slow")
	mark, err := log.Mark()
	require.NoError(t, err)
	file.received("quick")
	file.answered("quick")
	requests, err = log.Since(t.Context(), mark)
	require.NoError(t, err, "what came before the mark may be open")
	assert.Equal(t, map[string]int{"get /quick": 1}, requests.Count())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = log.All(ctx)
	require.ErrorContains(t, err, "get /slow by  is not answered")
}

func TestAuditLogReadsWholeLinesOnly(t *testing.T) {
	t.Parallel()
	file, log := newAuditFile(t)
	file.append(`{"auditID":"halved","stage":"RequestRec`)
	mark, err := log.Mark()
	require.NoError(t, err)
	assert.Zero(t, mark)
	file.append(`eived","verb":"get","requestURI":"/halved"}` + "\n")
	file.answered("halved")
	requests, err := log.All(t.Context())
	require.NoError(t, err)
	assert.Len(t, requests, 1)

	file.append("not JSON\n")
	_, err = log.Mark()
	require.ErrorContains(t, err, "no event")
}
