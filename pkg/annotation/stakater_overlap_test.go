package annotation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// counted are objects that count how often they are looked at.
type counted struct {
	annotation.Listed

	looks *int
}

func (c counted) Traits(ref reference.Ref) (annotation.Traits, bool) {
	*c.looks++
	return c.Listed.Traits(ref)
}

// A list may have hundreds of expressions that match thousands of names each: the cost of a reading is not their product.
func TestObjectThatManyExpressionsMatchIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	objects := counted{annotation.Listed{}, new(int)}
	for i := range 20 {
		objects.Listed[configMap(fmt.Sprintf("app-%02d", i))] = annotation.Traits{}
	}
	list := ""
	for i := range 15 {
		list += fmt.Sprintf("app-.*%d?,", i)
	}
	intent, problems := annotation.Parse(annotation.Source{
		Workload: map[string]string{"configmap.reloader.stakater.com/reload": list},
	}, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	require.Empty(t, problems)
	intent, problems = annotation.Resolve(intent, objects, recorded{}, nil)
	require.Empty(t, problems)
	assert.Len(t, intent.Tracked, 20)
	assert.LessOrEqual(t, *objects.looks, 2*20)
}
