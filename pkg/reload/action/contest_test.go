package action

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestContestIsReportedOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]func(n int) string{
		"removed": func(int) string { return "" },
		"spoiled": func(n int) string { return fmt.Sprint("junk ", n) },
	}
	for name, present := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, lines := &reloadtest.Outbox{}, []string(nil)
			ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}}, out)
			for n := range 6 {
				managed := stamp.Managed{stamp.Record: present(n)}
				s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: stamp.View{Managed: managed}}
				actions.RecordContested(ctx, s)
				actions.state.Contests.Wrote(s.Key, managed[stamp.Record], now)
				InOrder{s}.close(ctx, actions.base)
			}
			require.Len(t, out.Messages, 1)
			assert.Equal(t, "another writer removes or overwrites the annotation config-record after each write; "+
				"pod-reloader writes it less and less often, and may miss changes of configuration meanwhile: "+
				"find the writer in metadata.managedFields, and make it keep annotations that it does not own", out.Notes()[0])
			require.Len(t, lines, 1)
			assert.Contains(t, lines[0], `"msg"="another writer undoes each write of an annotation" "workload"=" shop/web" "event"="RecordContested" "after"="1s"`)
		})
	}
}
