package installation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEndOfAReplicaIsAnErrorUnlessItLostItsLease(t *testing.T) {
	t.Parallel()
	const lost = "pod-reloader: run the manager: leader election lost"
	const stopped = `{"level":"error","msg":"error received after stop sequence was engaged","error":"leader election lost"}`
	for name, tt := range map[string]struct {
		code int
		log  string
		want string
	}{
		"killed":        {code: -1, log: "panic: x"},
		"lost lease":    {code: 1, log: lost},
		"panic":         {code: 2, log: "panic: x", want: "exit code 2; the end of its log:\npanic: x"},
		"another error": {code: 1, log: stopped + "\npod-reloader: boom", want: "exit code 1; the end of its log:"},
		"without error": {code: 0, log: lost, want: "exit code 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := endOf(tt.code, tt.log)
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tt.want)
		})
	}
}
