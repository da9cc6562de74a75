package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// readable is a Store with the states of config objects; it counts its reads.
type readable struct {
	Store

	states map[reference.Ref]digest.State
	err    error
	reads  int
	// learned are the objects whose labels and annotations were read.
	learned []reference.Ref
}

func (r *readable) Learn(_ context.Context, _ string, refs []reference.Ref) error {
	r.learned = append(r.learned, refs...)
	return r.err
}

func (r *readable) ReadIfChanged(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	r.reads++
	return r.states, r.err
}

func (r *readable) ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return r.ReadIfChanged(ctx, namespace, refs)
}

func TestReadAddsContents(t *testing.T) {
	t.Parallel()
	app, db := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.Secret, Name: "db"}
	seen, read := digest.State{UID: "seen"}, digest.State{UID: "read"}
	for name, tc := range map[string]struct {
		refs  []reference.Ref
		err   error
		want  digest.State
		reads int
	}{
		"one":                        {refs: []reference.Ref{app}, want: read, reads: 1},
		"none":                       {want: seen},
		"the content cannot be read": {refs: []reference.Ref{app}, err: errors.New("away"), want: seen, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &readable{states: map[reference.Ref]digest.State{app: read}, err: tc.err}
			in := policy.Input{Current: map[reference.Ref]digest.State{app: seen, db: seen}}
			require.ErrorIs(t, Gatherer{Store: store}.Read(t.Context(), Subject{}, in, tc.refs), tc.err)
			assert.Equal(t, map[reference.Ref]digest.State{app: tc.want, db: seen}, in.Current)
			assert.Equal(t, tc.reads, store.reads)
		})
	}
}

func TestWhatIsUnknownOfAnObjectThatExistsIsRead(t *testing.T) {
	t.Parallel()
	app, db, away := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.Secret, Name: "db"}, errors.New("away")
	there := digest.State{Entries: map[digest.KeyID]digest.Entry{"k": {}}}
	for name, tc := range map[string]struct {
		unseen  map[reference.Ref]bool
		current map[reference.Ref]digest.State
		err     error
		want    []reference.Ref
	}{
		"one of two exists": {map[reference.Ref]bool{app: true, db: true}, map[reference.Ref]digest.State{app: there, db: {Absent: true}}, nil, []reference.Ref{app}},
		"it cannot be read": {map[reference.Ref]bool{app: true}, map[reference.Ref]digest.State{app: there}, away, []reference.Ref{app}},
		"it was seen":       {nil, map[reference.Ref]digest.State{app: there}, nil, nil},
		"none exists":       {map[reference.Ref]bool{app: true}, map[reference.Ref]digest.State{app: {Absent: true}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &readable{err: tc.err}
			in := policy.Input{Intent: annotation.Intent{Unseen: tc.unseen}, Current: tc.current}
			learned, err := Gatherer{Store: store}.Learn(t.Context(), Subject{}, in)
			require.ErrorIs(t, err, tc.err)
			assert.Equal(t, tc.want != nil, learned, "the workload is read again")
			assert.Equal(t, tc.want, store.learned)
		})
	}
}

// What is recorded already, the pods have: only a creation without a Record is looked up.
func TestAsCreated(t *testing.T) {
	t.Parallel()
	app, db := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.Secret, Name: "db"}
	seen, past := digest.State{ResourceVersion: "3"}, digest.State{ResourceVersion: "4"}
	same, changed := digest.State{ResourceVersion: "5"}, digest.State{ResourceVersion: "6"}
	for name, tc := range map[string]struct {
		born     string
		managed  stamp.Managed
		known    policy.Known
		live     map[reference.Ref]digest.State
		err      error
		want     map[reference.Ref]digest.State
		outdated bool
		reads    int
	}{
		"nothing has changed": {
			born: "5", live: map[reference.Ref]digest.State{app: same, db: same}, want: map[reference.Ref]digest.State{app: same, db: same}, reads: 1,
		},
		"one of two has changed": {
			born: "5", live: map[reference.Ref]digest.State{app: changed, db: same}, want: map[reference.Ref]digest.State{app: past, db: same},
			outdated: true, reads: 1,
		},
		"both have changed": {
			born: "5", live: map[reference.Ref]digest.State{app: changed, db: changed}, want: map[reference.Ref]digest.State{app: past, db: past},
			outdated: true, reads: 1,
		},
		"the state cannot be read":  {born: "5", err: errors.New("away"), reads: 1},
		"the creation was not seen": {live: map[reference.Ref]digest.State{app: changed}},
		"there is a Record":         {born: "5", managed: stamp.Managed{stamp.Record: "v1"}, live: map[reference.Ref]digest.State{app: changed}},
		"the hash is known":         {born: "5", known: policy.Known{Hash: "x"}, live: map[reference.Ref]digest.State{app: changed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, creations, store := workload.Key{Namespace: "shop", Name: "web"}, &state.Creations{}, &readable{states: tc.live, err: tc.err}
			if tc.born != "" {
				creations.Created(key, tc.born)
			}
			g := Gatherer{Creations: creations, Store: store, Past: func(context.Context, string, reference.Ref, string) (digest.State, error) {
				return past, nil
			}}
			before := map[reference.Ref]digest.State{app: seen, db: seen}
			in := policy.Input{Known: tc.known, Current: before}
			created, outdated, err := g.AsCreated(t.Context(), Subject{Key: key, View: stamp.View{Managed: tc.managed}}, in, []reference.Ref{app, db})
			require.ErrorIs(t, err, tc.err)
			if tc.want == nil {
				tc.want = before
			}
			assert.Equal(t, tc.want, created.Current)
			assert.Equal(t, tc.outdated, outdated)
			assert.Equal(t, tc.reads, store.reads)
			assert.Equal(t, map[reference.Ref]digest.State{app: seen, db: seen}, in.Current, "the input is not written to")
		})
	}
}

// A write may be refused for as long as a permission is missing, while an API server keeps old versions for some minutes.
func TestWhatWasReadOfACreationIsKeptUntilItIsRecorded(t *testing.T) {
	t.Parallel()
	app, db := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.Secret, Name: "db"}
	ring, rotated := digesttest.Ring(t, "a"), digesttest.Ring(t, "b")
	at := func(version string, ring digest.Ring) digest.State {
		return digest.StateOf(digest.OfConfigMap(&corev1.ConfigMap{Data: map[string]string{"a": version}}), "uid", version, ring)
	}
	key, creations, absent := workload.Key{Namespace: "shop", Name: "web"}, &state.Creations{}, digest.State{Absent: true}
	store := &readable{}
	g := Gatherer{Creations: creations, Store: store, Past: func(context.Context, string, reference.Ref, string) (digest.State, error) {
		return digest.State{}, errors.New("the version has expired")
	}}
	created := func(now map[reference.Ref]digest.State, ring digest.Ring) (map[reference.Ref]digest.State, bool) {
		store.states = now
		in, outdated, err := g.AsCreated(t.Context(), Subject{Key: key}, policy.Input{Current: now, Ring: ring}, []reference.Ref{app, db})
		require.NoError(t, err)
		return in.Current, outdated
	}
	creations.Created(key, "5")
	first := map[reference.Ref]digest.State{app: at("4", ring), db: absent}
	for range 2 {
		found, outdated := created(first, ring)
		assert.Equal(t, first, found)
		assert.False(t, outdated, "what the pods have started with is still current")
		assert.Equal(t, 1, store.reads)
	}
	found, outdated := created(map[reference.Ref]digest.State{app: at("6", ring), db: absent}, ring)
	assert.Equal(t, first, found, "the pods have started with this")
	assert.True(t, outdated, "the ConfigMap has changed since")
	assert.Equal(t, 1, store.reads)
	_, _ = created(map[reference.Ref]digest.State{app: at("6", rotated), db: absent}, rotated)
	assert.Equal(t, 2, store.reads, "no Entry is known under the new key")
	creations.Created(key, "7")
	found, _ = created(map[reference.Ref]digest.State{app: at("6", ring), db: at("7", ring)}, ring)
	assert.Equal(t, at("7", ring), found[db], "it is another workload")
}

// paged is an API server with pages of one object each, which are numbered.
type paged struct {
	client.Reader
	pages int
	// fails is the page that cannot be read.
	fails int
	kind  string
	limit int64
}

var errPage = errors.New("away")

func (p *paged) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	number, _ := strconv.Atoi(o.Continue)
	number++
	if number == p.fails || number > p.pages {
		return errPage
	}
	u := list.(*unstructured.UnstructuredList)
	p.kind, p.limit = u.GetKind(), o.Limit
	page := unstructured.Unstructured{Object: map[string]any{}}
	page.SetName(strconv.Itoa(number))
	u.Items = []unstructured.Unstructured{page}
	if number < p.pages {
		u.SetContinue(strconv.Itoa(number))
	}
	return nil
}

// sized lists so many objects, some of which are large.
type sized struct {
	client.Reader
	objects int
	large   func(object int) bool
	// size is that of a large one.
	size   int
	limits []int64
}

func (s *sized) RoundTrip(r *http.Request) (*http.Response, error) {
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	count, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	size := 0
	for object := from; object < min(from+count, s.objects); object++ {
		if size++; s.large(object) {
			size += s.size
		}
	}
	body := bytes.NewReader(make([]byte, size))
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
}

func (s *sized) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if s.limits = append(s.limits, o.Limit); len(s.limits) > 100 {
		return errPage // else a loop has no end
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://api/?limit=%d&continue=%s", o.Limit, o.Continue), http.NoBody)
	if err != nil {
		return err
	}
	response, err := largeread.Wrap(s).RoundTrip(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	number, _ := strconv.Atoi(o.Continue)
	end := min(number+int(o.Limit), s.objects)
	list.(*unstructured.UnstructuredList).Items = make([]unstructured.Unstructured, end-number)
	if end < s.objects {
		list.SetContinue(strconv.Itoa(end))
	}
	return nil
}

func TestPagesWithLargeObjectsAreSmaller(t *testing.T) {
	t.Parallel()
	const half, whole = largeread.Size/2 + 1, largeread.Size + 1
	for name, tc := range map[string]struct {
		objects int
		large   func(object int) bool
		size    int
		want    []int64
	}{
		"all are large":              {10, func(int) bool { return true }, half, []int64{7, 1, 1, 1, 1, 1, 1, 1, 7, 1, 1, 1}},
		"none is":                    {10, func(int) bool { return false }, 0, []int64{7, 7}},
		"two, among many small ones": {100, func(object int) bool { return object < 2 }, half, []int64{25, 5, 1, 1, 1, 1, 1, 25, 25, 25, 25}},
		"one is large by itself":     {3, func(object int) bool { return object == 1 }, whole, []int64{7, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, used := &sized{objects: tc.objects, large: tc.large, size: tc.size}, 0
			err := Gatherer{APIReader: api}.List(t.Context(), corev1.SchemeGroupVersion.WithKind("Secret"), tc.want[0], func(unstructured.Unstructured) { used++ })
			require.NoError(t, err)
			assert.Equal(t, tc.want, api.limits)
			assert.Equal(t, tc.objects, used)
		})
	}
}

func TestLargeObjectThatIsRefusedEndsTheList(t *testing.T) {
	t.Parallel()
	api := &sized{objects: 1, large: func(int) bool { return true }, size: largeread.Size + 1}
	err := Gatherer{APIReader: api}.List(largeread.Refuse(t.Context()), corev1.SchemeGroupVersion.WithKind("Secret"), 1, func(unstructured.Unstructured) {})
	require.ErrorIs(t, err, largeread.ErrLarge)
}

func TestListReadsAllPages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		api  paged
		err  error
		used []string
	}{
		"one page":                  {api: paged{pages: 1}, used: []string{"1"}},
		"some":                      {api: paged{pages: 3}, used: []string{"1", "2", "3"}},
		"a later one is unreadable": {api: paged{pages: 3, fails: 2}, err: errPage, used: []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var used []string
			err := Gatherer{APIReader: &tc.api}.List(t.Context(), corev1.SchemeGroupVersion.WithKind("Secret"), 7, func(o unstructured.Unstructured) {
				used = append(used, o.GetName())
			})
			require.ErrorIs(t, err, tc.err)
			assert.Equal(t, tc.used, used)
			assert.Equal(t, "SecretList", tc.api.kind)
			assert.Equal(t, int64(7), tc.api.limit)
		})
	}
}

func TestReportedHasTheStrategyThatRestartsNothing(t *testing.T) {
	t.Parallel()
	s := Subject{View: stamp.View{InPlace: workload.InPlaceOnly}}
	assert.Equal(t, workload.InPlaceOnly, s.Reported().InPlace)
}
