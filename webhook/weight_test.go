package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

// reviewOf returns a review of a new Deployment that tracks a ConfigMap and has a field x with the given JSON.
func reviewOf(namespace, x string) string {
	return inNamespace(review(`"operation":"CREATE","object":`+deploymentOf(x)), namespace)
}

func deploymentOf(x string) string {
	return `{"metadata":{"annotations":{"pod-reloader.cs.sap.com/configmaps":"app"}},"spec":{"template":{}},"x":` + x + `}`
}

// list returns a JSON list with so many bytes of an element, or a little more.
func list(element string, size int) string {
	return "[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]"
}

// What takes much memory for its text counts accordingly.
//
//nolint:paralleltest // it measures the memory of the process
func TestReviewsOfManySmallPartsAreBounded(t *testing.T) {
	unraced.Test(t)
	const (
		depth = 9_000
		parts = 8 // of the memory, which five reviews of 200 KiB or more use up
	)
	deep := strings.Repeat(`{"":`, depth) + "0" + strings.Repeat("}", depth)
	for name, x := range map[string]string{
		"objects in objects":  list(deep, 200<<10),
		"objects of a number": list(`{"":0}`, 200<<10),
		"lists in lists":      list(strings.Repeat("[", depth)+strings.Repeat("]", depth), 200<<10),
	} {
		t.Run(name, func(t *testing.T) {
			body := func(namespace string) []byte { return []byte(reviewOf(namespace, x)) }
			assert.Less(t, heapOfReviews(t, 5, parts, body), 240<<20/parts)
		})
	}
}

// The account of the request is never used: it takes no memory while the review is decided. The text of the request does.
//
//nolint:paralleltest // it measures the memory of the process
func TestAccountOfARequestIsNotKept(t *testing.T) {
	unraced.Test(t)
	for name, account := range map[string]string{
		"groups": `"groups":` + list(`""`, 400<<10),
		"extra":  `"extra":{"x":` + list(`""`, 400<<10) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			fields := `"operation":"CREATE","userInfo":{` + account + `},"object":` + deploymentOf("0")
			body := func(namespace string) []byte { return []byte(inNamespace(review(fields), namespace)) }
			assert.Less(t, heapOfReviews(t, 5, 1, body), 8<<20)
		})
	}
}

// A Deployment of 1.5 MiB is decided, whatever it consists of.
func TestLargestWorkloadsAreDecided(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	const size = 3 << 19 // what etcd holds of a custom kind; of the built-in ones, more in JSON
	element := func(format string) string {
		var list strings.Builder
		for i := 0; list.Len() < size; i++ {
			fmt.Fprintf(&list, format+",", i)
		}
		return strings.TrimSuffix(list.String(), ",")
	}
	for name, x := range map[string]string{
		"variables":      "[" + element(`{"name":"VARIABLE_%d","value":"1"}`) + "]",
		"volumes":        "[" + element(`{"configMap":{"name":"app-%d"}}`) + "]",
		"managed fields": `{"f:env":{` + element(`"k:{\"name\":\"VARIABLE_%d\"}":{".":{},"f:name":{},"f:value":{}}`) + "}}",
		"empty objects":  list("{}", size),
		"one text":       `"` + strings.Repeat("x", size) + `"`,
		"a text of braces, quotes and backslashes": `"` + strings.Repeat(`{\"{{{{\\`, size/9) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHandler(t, newWorld(t), nil, logr.Discard())
			object := deploymentOf(x)
			responseOf(t, post(s.handler, []byte(review(`"operation":"UPDATE","object":`+object+`,"oldObject":`+object))))
			assert.Zero(t, decisions(t, s, "none", "malformed"))
			assert.Zero(t, decisions(t, s, "none", "busy"))
		})
	}
}

// A review that takes more than its namespace may use passes at once: no wait would change that.
func TestReviewThatIsTooLargePassesUnchecked(t *testing.T) {
	t.Parallel()
	for name, element := range map[string]string{
		"objects":                             `{"":0}`,
		"objects after a text of a quote":     `"\"",{"":0},{"":0},{"":0}`,
		"objects after a text of a backslash": `"\\",{"":0},{"":0},{"":0}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHandler(t, newWorld(t), nil, logr.Discard())
			response := responseOf(t, post(s.handler, []byte(reviewOf("shop", list(element, 3<<20)))))
			assert.True(t, response.Allowed, "a write passes where it is too large to be checked")
			assert.Empty(t, response.Patch)
			assert.Equal(t, []string{"pod-reloader could not check this write: the workload is too large; it retries by itself"}, response.Warnings)
			assert.Equal(t, 1, decisions(t, s, "none", "busy"))
		})
	}
}
