package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
	"github.com/pod-reloader/pod-reloader/webhook"
)

func TestLog(t *testing.T) {
	t.Parallel()
	log, lines := logtest.New()
	s := newHandler(t, newWorld(t), nil, log)
	responseOf(t, post(s.handler, fixture(t, "scale/request.yaml")))
	assert.Empty(t, lines(), "nothing was done, so nothing is logged")
	responseOf(t, post(s.handler, fixture(t, "create/request.yaml")))
	require.Len(t, lines(), 1, "one line a decision")
	for _, want := range []string{`"rule"="create"`, `"outcome"="stamped"`, `"workload"="apps/v1/Deployment shop/cart"`} {
		assert.Contains(t, lines()[0], want)
	}
	assert.NotContains(t, lines()[0], "image", "never an object")
}

// Any pod that reaches the port can send what no API server sends.
func TestInvalidRequestsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	noUID := strings.Replace(string(fixture(t, "create/request.yaml")), `"uid":"fixture"`, `"uid":""`, 1)
	for name, tt := range map[string]struct{ contentType, body, want string }{
		"long names, no uid": {"application/json", strings.NewReplacer(`"name":"cart"`, `"name":"`+long+`"`, `"namespace":"shop"`, `"namespace":"`+long+`"`).Replace(noUID), `"outcome"="malformed"`},
		"long operation":     {"application/json", strings.Replace(noUID, `"CREATE"`, `"`+long+`"`, 1), `"outcome"="malformed"`},
		"long number":        {"application/json", review(`"dryRun":` + strings.Repeat("7", 64<<10)), "unable to decode the request"},
		"long content type":  {long, noUID, "unknown content type"},
		"no review":          {"application/json", "hello", "unable to read the body"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, lines := logtest.New()
				s := newHandler(t, newWorld(t), nil, log)
				send := func(times int) int {
					before := len(lines())
					for range times {
						r := httptest.NewRequest(http.MethodPost, webhook.Path, strings.NewReader(tt.body))
						r.Header.Set("Content-Type", tt.contentType)
						s.handler.ServeHTTP(httptest.NewRecorder(), r)
					}
					return len(lines()) - before
				}
				assert.Equal(t, 10, send(12), "the first ones are logged")
				<-time.After(time.Second)
				assert.Equal(t, 1, send(3), "then one a second")
				assert.Equal(t, 15, decisions(t, s, "none", "malformed"), "all of them are counted")
				for _, line := range lines() {
					require.Less(t, len(line), 2000, "a line is short, whatever is sent")
					assert.Contains(t, line, tt.want)
				}
				responseOf(t, post(s.handler, fixture(t, "create/request.yaml")))
				assert.Contains(t, lines()[len(lines())-1], `"outcome"="stamped"`, "a valid request has its line")
			})
		})
	}
}
