package workloadstate

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func (d *definitions) hide(hidden bool) {
	d.hideSome(func(string, bool) bool { return hidden })
}

func (d *definitions) hideSome(hides func(namespace string, watch bool) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hides = hides
}

// monitored runs the watch of a kind, of all namespaces or of some, as the program does.
func monitored(t *testing.T, d *definitions, namespaces ...string) (*watchhealth.Monitor, *Watch) {
	t.Helper()
	m := &watchhealth.Monitor{}
	s := New(Options{
		Mapper: d, Config: &rest.Config{Host: "http://server", QPS: -1}, HTTPClient: &http.Client{Transport: m.Wrap(d)},
		Discovered: m.Discovered, Log: logr.Discard(), Namespaces: namespaces,
	})
	w := s.Watch(gadget(), func(_, _ workload.Summary, _ string) {})
	go w.Run(t.Context())
	return m, w
}

// healthy returns how much of some minutes, in seconds, no watch has failed.
func healthy(m *watchhealth.Monitor, minutes int) (seconds int) {
	for range minutes * 60 {
		<-time.After(time.Second)
		if !m.AnyFailing() {
			seconds++
		}
	}
	return seconds
}

// One API server of several does not have the definition, or a proxy does not pass the requests on: the workloads exist, and are not seen.
func TestResourceThatIsFoundAndAnsweredWith404IsAFailure(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"from the start": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &definitions{served: resource("v1", "gadgets")}
				d.hide(!later)
				m, w := monitored(t, d)
				if later {
					<-time.After(61 * time.Second) // the watch has ended once
					d.hide(true)
					<-time.After(time.Minute)
				}
				assert.Less(t, healthy(m, 1), 30, "two lookups, with pauses in between")
				assert.Zero(t, healthy(m, 60), "it stays a failure")
				assert.Contains(t, m.Statuses()[0].Detail, "answers its lists or watches with 404")
				_, known := w.Get("shop", "gadgets")
				assert.Equal(t, later, known, "the workloads that are known exist")

				d.hide(false)
				healthy(m, 1)
				assert.Equal(t, 60, healthy(m, 1), "it works again")
			})
		})
	}
}

func TestContradictionEndsWhenTheKindIsUninstalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &definitions{served: resource("v1", "gadgets")}
		d.hide(true)
		m, _ := monitored(t, d)
		<-time.After(10 * time.Minute)
		assert.True(t, m.AnyFailing(), "the kind is served, and its lists are not found")
		d.set(schema.GroupVersionResource{}, nil)
		<-time.After(2 * time.Minute)
		assert.False(t, m.AnyFailing(), "what is not installed has nothing to see")
	})
}

// Its first request can come before the API server serves a definition that is in its discovery.
func TestOneContradictionIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &definitions{served: resource("v1", "gadgets")}
		m, _ := monitored(t, d)
		for range 5 {
			<-time.After(30 * time.Second)
			d.hide(true)
			d.awaitRequestAfterLookup()
			d.hide(false)
			assert.Equal(t, 300, healthy(m, 5))
		}
	})
}

// Another API server answers there, or a proxy: the watches of the others work, and are open for minutes.
func TestContradictionOfOneNamespaceIsNoFailureOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &definitions{served: resource("v1", "gadgets")}
		d.hideSome(func(namespace string, _ bool) bool { return namespace == "bank" })
		m, _ := monitored(t, d, "bank", "shop")
		<-time.After(time.Minute)
		for range 3600 {
			<-time.After(time.Second)
			require.True(t, m.Failing("gadgets.example.com", "bank"), "the lists of this namespace are not found")
			require.False(t, m.Failing("gadgets.example.com", "shop"), "the lists of this namespace are found")
		}
	})
}

// Its watches end now and then. The lookups before its one answer of 404 were about another namespace, whether they have failed or not.
func TestOneContradictionIsNoFailureBesideThoseOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]error{"contradictions": nil, "lookups that fail": errors.New("away")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &definitions{served: resource("v1", "gadgets")}
				one := false // d.mu is held
				d.hideSome(func(namespace string, _ bool) bool {
					hides := namespace == "bank" || one
					one = one && namespace == "bank"
					return hides
				})
				m, _ := monitored(t, d, "bank", "shop")
				for range 10 {
					<-time.After(6 * time.Minute)
					d.set(resource("v1", "gadgets"), away)
					<-time.After(6 * time.Minute)
					d.mu.Lock()
					one = true
					d.mu.Unlock()
					for d.mayHide(&one) {
						<-time.After(time.Second)
					}
					for range 60 {
						require.False(t, m.Failing("gadgets.example.com", "shop"))
						<-time.After(time.Second)
					}
					d.set(resource("v1", "gadgets"), nil)
				}
			})
		})
	}
}

// mayHide reads what a test decides by, under the lock.
func (d *definitions) mayHide(one *bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *one
}

// What the list has is seen late.
func TestWatchThatIsAnsweredWith404BehindAListIsAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &definitions{served: resource("v1", "gadgets")}
		d.hideSome(func(_ string, watch bool) bool { return watch })
		m, _ := monitored(t, d)
		<-time.After(time.Minute)
		assert.Zero(t, healthy(m, 60), "it stays a failure")
		d.hide(false)
		healthy(m, 1)
		assert.Equal(t, 60, healthy(m, 1), "it works again")
	})
}

func TestContradictionLastsWhereALookupFailsInBetween(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &definitions{served: resource("v1", "gadgets")}
		d.hide(true)
		m, _ := monitored(t, d)
		<-time.After(5 * time.Minute)
		since := m.Statuses()[0].Since
		d.set(resource("v1", "gadgets"), errors.New("away"))
		assert.Zero(t, healthy(m, 2))
		d.set(resource("v1", "gadgets"), nil)
		assert.Zero(t, healthy(m, 5), "no request was accepted")
		assert.Equal(t, since, m.Statuses()[0].Since)
	})
}
