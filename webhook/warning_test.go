package webhook_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// mostOfAWarning is how many characters of a warning the API server passes on where there are too many.
const mostOfAWarning = 256

// warningRow is a row of docs/warnings.md with the text of a warning.
var warningRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \|$`)

// documentedWarnings are the texts of docs/warnings.md, in which "…" stands for what differs.
func documentedWarnings(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/warnings.md")
	require.NoError(t, err)
	var texts []string
	for _, row := range warningRow.FindAllStringSubmatch(string(page), -1) {
		text := row[1]
		if text == "message" || strings.HasPrefix(text, "409") || strings.HasPrefix(text, "503") {
			continue
		}
		if !strings.HasPrefix(text, "pod-reloader") {
			text = "pod-reloader: " + text
		}
		texts = append(texts, text)
	}
	require.Greater(t, len(texts), 30)
	return texts
}

// A warning says at first what it is about, and at last what to do.
func TestLongWarningKeepsBothEnds(t *testing.T) {
	t.Parallel()
	for _, text := range documentedWarnings(t) {
		first, last := text[:strings.Index(text+"…", "…")], text[strings.LastIndex("…"+text, "…"):]
		for _, filling := range []string{"x", "é"} {
			limited := webhook.LimitWarnings([]string{strings.ReplaceAll(text, "…", strings.Repeat(filling, 3000))})
			require.Len(t, limited, 1)
			assert.LessOrEqual(t, utf8.RuneCountInString(limited[0]), mostOfAWarning)
			assert.True(t, strings.HasPrefix(limited[0], first), "%s\nis the beginning of %s", limited[0], text)
			assert.True(t, strings.HasSuffix(limited[0], last), "%s\nis the end of %s", limited[0], text)
		}
	}
}

func TestWarningsAreLimited(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("a", mostOfAWarning)
	for name, fit := range map[string][]string{
		"none": nil, "one": {strings.Repeat("a", 2048)},
		"five": slices.Repeat([]string{strings.Repeat("é", 409)}, 5), "no long one": slices.Repeat([]string{full}, 8),
	} {
		assert.Equal(t, fit, webhook.LimitWarnings(fit), name)
	}
	assert.Equal(t, []string{"a; b"}, webhook.LimitWarnings([]string{"a\nb"}))
	cut := webhook.LimitWarnings([]string{strings.Repeat("a", 2049)})[0]
	assert.Len(t, []rune(cut), mostOfAWarning)
	assert.Contains(t, cut, "a…a")
	more := "pod-reloader: 2 more warnings"
	assert.Equal(t, append(slices.Repeat([]string{full}, 8), more), webhook.LimitWarnings(slices.Repeat([]string{full}, 10)))
	assert.Equal(t, append(slices.Repeat([]string{cut}, 8), more), webhook.LimitWarnings(slices.Repeat([]string{strings.Repeat("a", 400)}, 10)))
}

const errorOfPermission = `read configmap/cart-config in namespace shop: configmaps "cart-config" is forbidden: User ` +
	`"system:serviceaccount:pod-reloader:pod-reloader" cannot get resource "configmaps" in API group "" in the namespace "shop"`

// versionOf returns a Deployment with annotations and labels as JSON, and an image.
func versionOf(annotations, labels, image string) string {
	return `{"metadata":{"annotations":{` + annotations + `},"labels":{` + labels + `}},` +
		`"spec":{"template":{"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}}}`
}

// stampedVersion returns a Deployment with a config-hash and a variable for each of some names.
func stampedVersion(hash, value string, names ...string) string {
	variables := make([]string, 0, len(names))
	for _, name := range names {
		variables = append(variables, fmt.Sprintf(`{"name":"STAKATER_%s_CONFIGMAP","value":%q}`, name, value))
	}
	return `{"metadata":{"annotations":{` + listed("app") + `}},"spec":{"template":{"metadata":{"annotations":{` +
		`"pod-reloader.cs.sap.com/config-hash":"` + hash + `"}},"spec":{"containers":[{"name":"c","env":[` + strings.Join(variables, ",") + `]}]}}}}`
}

func TestAdviceOfALongWarningIsShown(t *testing.T) {
	t.Parallel()
	const excluded = `"pod-reloader.cs.sap.com/ignored":"true"`
	hash := strings.Repeat("0", 64)
	long := func(n int) string { return fmt.Sprintf("%d%s", n, strings.Repeat("x", 250)) }
	for name, c := range map[string]struct {
		old, current, advice string
		err                  error
	}{
		"edit of the lists": {
			old: versionOf(listed("app"), "", "1"), current: versionOf(listed("app,db"), "", "1"),
			err: errors.New(errorOfPermission), advice: "this edit of the lists restarts no pods: edit them again, or restart the workload",
		},
		"release": {
			old: versionOf(listed("app"), "", "1"), current: versionOf(listed("app"), "", "2"),
			err: errors.New(errorOfPermission + errorOfPermission), advice: "it retries by itself",
		},
		"release of an excluded workload": {
			old: versionOf(listed("app"), excluded, "1"), current: versionOf(listed("app"), excluded, "2"),
			err: errors.New(errorOfPermission), advice: "a change until the exclusion ends does not restart them",
		},
		"undo of several variables": {
			old: stampedVersion(hash, "1", "A", "B", "C", "D", "E", "F"), current: stampedVersion("1"+hash[1:], "2", "A", "B", "C", "D", "E", "F"),
			advice: "if a manifest has them, remove them there; after rollout undo, change the ConfigMaps and Secrets instead: it does not roll them back",
		},
		"missing objects": {
			old: versionOf(listed("app"), "", "1"), current: versionOf(listed(long(1)+","+long(2)+","+long(3)), "", "1"), advice: "check the name, or create it",
		},
		"impossible name": {
			old: versionOf(listed("app"), "", "1"), current: versionOf(listed("app,"+strings.Repeat(`\u0001`, 80)), "", "1"), advice: "correct the name or remove it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fail = c.err
			s := newHandler(t, w, func(o *webhook.Options) { o.Reader.Strategy = annotation.EnvVars }, logr.Discard())
			answer := responseOf(t, post(s.handler, []byte(review(`"operation":"UPDATE","oldObject":`+c.old+`,"object":`+c.current))))
			require.NotEmpty(t, answer.Warnings)
			assert.True(t, slices.ContainsFunc(answer.Warnings, func(w string) bool { return strings.HasSuffix(w, c.advice) }), answer.Warnings)
		})
	}
}

// listed returns the annotation that lists ConfigMaps.
func listed(names string) string { return `"pod-reloader.cs.sap.com/configmaps":"` + names + `"` }
