package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
)

// patience bounds the wait for what the API server learns a little later.
const patience = 2 * time.Minute

// cluster is the control plane that all tests share: an API server alone, so that nothing else changes what is stored.
var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	// The model follows the newest release only.
	options := controlplane.Options{Version: controlplane.Newest, Without: []string{controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK}}
	os.Exit(controlplane.Main(m, options, func(cp *controlplane.ControlPlane) { cluster = cp }))
}

// step is one request. In path and body NS is the namespace, and $NAME.rv and $NAME.uid are those of the answer that an
// earlier step saved under a name.
type step struct {
	method, path, contentType, body string
	save                            string
	// unlike says in which way the model is known to differ; then only the codes are compared.
	unlike string
}

// side is one of the two servers in a test.
type side struct {
	send      func(r *http.Request) (*http.Response, error)
	namespace string
	saved     []string // pairs for a Replacer
	// names has what replaces versions and identities in answers.
	names map[string]string
	// manager says how the field manager of the last step differs from that of most.
	manager string
}

// play sends the steps to both servers and compares the answers.
func play(t *testing.T, steps []step) {
	t.Helper()
	sides, _ := servers(t)
	for n, s := range steps {
		compare(t, sides, n, s)
	}
}

// servers returns the model, which is the first side, and the API server.
func servers(t *testing.T) ([2]*side, *apiserver.Server) {
	t.Helper()
	model, err := apiserver.New(apiserver.Options{TrackFields: true})
	require.NoError(t, err)
	t.Cleanup(model.Stop)
	client, err := rest.HTTPClientFor(cluster.Admin())
	require.NoError(t, err)
	sides := [2]*side{
		{send: func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			model.ServeHTTP(w, r)
			return w.Result(), nil
		}, namespace: "model", names: map[string]string{}},
		{send: func(r *http.Request) (*http.Response, error) {
			r.URL.Scheme, r.URL.Host, r.RequestURI = "https", cluster.Address(), ""
			return client.Do(r)
		}, namespace: cluster.Namespace(t), names: map[string]string{}},
	}
	sides[0].do(t, step{method: http.MethodPost, path: "/api/v1/namespaces", body: `{"metadata":{"name":"model"}}`})
	clear(sides[0].names)
	return sides, model
}

// compare sends a step to both servers.
func compare(t *testing.T, sides [2]*side, n int, s step) {
	t.Helper()
	var codes [2]int
	var bodies [2]string
	awaitSecond(t, sides[0], s)
	send := func() error {
		for i, side := range sides {
			codes[i], bodies[i] = side.do(t, s)
		}
		if codes[0] != codes[1] || bodies[0] != bodies[1] {
			return fmt.Errorf("%s: the model says %d %s, the API server says %d %s", s.path, codes[0], bodies[0], codes[1], bodies[1])
		}
		return nil
	}
	if strings.Contains(s.path, "timeoutSeconds=") {
		_ = poll.Steadily(t, send, answer) // judged below; a machine that stalls has a watch end before its first events are sent
	} else {
		_ = send() // judged below
	}
	about := fmt.Sprintf("step %d: %s %s %s", n, s.method, s.path, s.body[:min(len(s.body), 200)])
	assert.Equal(t, codes[1], codes[0], "%s\nthe model says: %s\nthe API server says: %s", about, bodies[0], bodies[1])
	if s.unlike == "" && codes[0] == codes[1] {
		assert.Equal(t, bodies[1], bodies[0], about)
	}
}

// answer asks the API server for something.
func answer(ctx context.Context) error {
	return cluster.Client().Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})
}

// awaitSecond waits for the next whole second where another field manager writes than in the step before. The managers'
// entries are sorted by time, in whole seconds, and a write that changes their order alone is stored: two servers that
// take one step in the two halves of a second would store another number of versions.
func awaitSecond(t *testing.T, first *side, s step) {
	t.Helper()
	manager := fieldManager.FindString(s.path)
	if manager != first.manager {
		now := time.Now()
		time.Sleep(now.Truncate(time.Second).Add(time.Second).Sub(now)) //nolint:forbidigo // the entries have whole seconds, and nothing reports a new one
	}
	first.manager = manager
}

// fieldManager finds what makes the field manager of a request another one than that of the other steps.
var fieldManager = regexp.MustCompile(`/status|fieldManager=\w*`)

// do sends one request and returns the code and the comparable form of the answer.
func (s *side) do(t *testing.T, st step) (int, string) {
	t.Helper()
	replace := strings.NewReplacer(append([]string{"NS", s.namespace}, s.saved...)...)
	r := httptest.NewRequestWithContext(t.Context(), st.method, replace.Replace(st.path), strings.NewReader(replace.Replace(st.body)))
	r.Header.Set("User-Agent", "conformance/1")
	r.Header.Set("Accept", "application/json")
	if st.contentType != "" {
		r.Header.Set("Content-Type", st.contentType)
	}
	answer, err := s.send(r)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode, s.comparable(t, st, body)
}

// comparable returns an answer, or the events of a watch, without what differs between any two servers.
func (s *side) comparable(t *testing.T, st step, body []byte) string {
	t.Helper()
	var decoded map[string]any
	if strings.Contains(st.path, "watch=true") {
		decoded = map[string]any{"events": watched(t, body)}
	} else if json.Unmarshal(body, &decoded) != nil {
		return string(body)
	}
	if st.save != "" {
		meta, _ := decoded["metadata"].(map[string]any)
		s.saved = append(s.saved, "$"+st.save+".rv", fmt.Sprint(meta["resourceVersion"]), "$"+st.save+".uid", fmt.Sprint(meta["uid"]))
	}
	s.normalize(decoded)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(decoded))
	return strings.ReplaceAll(out.String(), s.namespace, "NS")
}

// watched decodes the events of a watch. The version in a bookmark is that of the whole server, and how many follow each
// other, also after the one that ends the initial events, depends on the moment at which the watch begins.
func watched(t *testing.T, body []byte) []any {
	t.Helper()
	var all []any
	decoder := json.NewDecoder(bytes.NewReader(body))
	for bookmark := false; decoder.More(); {
		var e map[string]any
		require.NoError(t, decoder.Decode(&e))
		afterBookmark := bookmark
		if bookmark = e["type"] == "BOOKMARK"; bookmark {
			object, _ := e["object"].(map[string]any)
			meta, _ := object["metadata"].(map[string]any)
			delete(meta, "resourceVersion")
			if _, marked := meta["annotations"]; !marked && afterBookmark {
				continue
			}
		}
		all = append(all, e)
	}
	return all
}

// normalize removes times, sorts managed fields, and gives versions and identities names by the order of their appearance.
func (s *side) normalize(value any) {
	switch value := value.(type) {
	case map[string]any:
		kind, _ := value["kind"].(string)
		if meta, _ := value["metadata"].(map[string]any); strings.HasSuffix(kind, "List") {
			delete(meta, "resourceVersion") // that of the whole server
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if text, ok := value[key].(string); ok {
				value[key] = s.text(key, text)
			}
		}
		if managed, ok := value["managedFields"].([]any); ok {
			slices.SortFunc(managed, byText)
		}
		if causes, ok := value["causes"].([]any); ok {
			// kube-apiserver validates metadata several times.
			value["causes"] = slices.CompactFunc(slices.SortedFunc(slices.Values(causes), byText), func(a, b any) bool { return byText(a, b) == 0 })
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			s.normalize(value[key])
		}
	case []any:
		for _, v := range value {
			s.normalize(v)
		}
	}
}

func byText(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }

func (s *side) text(key, text string) string {
	switch key {
	case "creationTimestamp", "deletionTimestamp", "time":
		return "<time>"
	case "resourceVersion", "uid":
		if s.names[text] == "" && text != "" {
			s.names[text] = fmt.Sprintf("<%s %d>", key, len(s.names))
		}
		return s.names[text]
	case "controller-uid", "batch.kubernetes.io/controller-uid":
		return s.names[text]
	case "message":
		text = current.ReplaceAllString(text, "current: <version>")
		return versions.ReplaceAllStringFunc(text, func(found string) string {
			return cmp.Or(s.names[strings.Trim(found, "()")], found)
		})
	}
	return text
}

// current finds the version of the whole server in a message.
var current = regexp.MustCompile(`current: [0-9]+`)

// versions finds what may be a version or an identity in a message.
var versions = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\([0-9]+\)`)
