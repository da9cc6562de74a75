package edge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// The mounted certificate is replaced by one for another name, which the API server does not accept: writes pass, the loop
// stamps directly, and each replica says what is wrong. With the correct certificate all is as before.
func certificateForAnotherName(t *testing.T, in *installation.Installation) {
	t.Helper()
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	require.NoError(t, in.MisnameCertificate())
	for _, replica := range in.Replicas() {
		s.Await("the readiness of "+replica.Name(), func() error {
			text, err := readiness(s, replica)
			if err == nil && !strings.Contains(text, "is not for "+installation.ServiceName) {
				err = errors.New(text)
			}
			return err
		})
		s.Await("the log of "+replica.Name(), func() error { // it follows the readiness
			const reason = "valid for elsewhere.example.com, not " + installation.ServiceName
			log, err := replica.Log()
			if err == nil && !strings.Contains(log, reason) {
				err = errors.New("it does not say: " + reason)
			}
			return err
		})
	}
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "the loop stamps directly")

	require.NoError(t, in.RenewCertificate())
	require.NoError(t, in.Balancer().AwaitReady(s.Patiently(), len(in.Replicas())))
	created := 0
	s.Await("the webhook", func() error {
		created++
		after := s.Deployment("after-"+strconv.Itoa(created), fixture.Uses{ConfigMaps: []string{"app"}})
		if fixture.TemplateAnnotations(s.Get(after))[fixture.ConfigHash] == "" {
			return errors.New("no stamp")
		}
		return nil
	})
	s.AwaitExactly(1, "one change is one restart", w)
}

// readiness returns what a replica says about it.
func readiness(s *fixture.Fixture, replica *installation.Replica) (string, error) {
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, replica.HealthURL+"/readyz", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// Changes before, during and after restarts of the API server, graceful and killed: none is missed and none is followed
// twice. What the observer cannot see while the server is away shows in the generation: no other client changes these specs.
func changesDuringRestartsOfTheAPIServer(t *testing.T, in *installation.Installation) {
	t.Helper()
	cp, s := in.ControlPlane(), fixture.New(t, in)
	const restarts, each = 4, 15
	var workloads []observe.Workload
	for n := range restarts * each {
		name := "app" + strconv.Itoa(n)
		s.ConfigMap(name, fixture.Data{"key": "1"})
		workloads = append(workloads, s.Workload(fixture.Kinds[n%len(fixture.Kinds)], name, fixture.Uses{ConfigMaps: []string{name}}))
	}
	s.Settled()
	generations := map[observe.Workload]int64{}
	for _, w := range workloads {
		generations[w] = s.Get(w).GetGeneration()
	}

	for n := range restarts {
		var changing sync.WaitGroup
		for i := range each {
			changing.Go(func() { insist(s, workloads[n*each+i].Name) })
			if i == each/3 {
				restart(s, cp.Component(controlplane.APIServer), n%2 == 0)
			}
		}
		changing.Wait()
	}
	s.Settled()
	for _, w := range workloads {
		s.AwaitWorkload(w, "a reload for the change", func(u *unstructured.Unstructured) bool {
			return u.GetGeneration() > generations[w]
		})
	}
	s.Settled()
	late, judged := lateWrites(s), 0
	for _, w := range workloads {
		if late[w.Name] {
			continue
		}
		judged++
		assert.Equal(t, generations[w]+1, s.Get(w).GetGeneration(), "%s: one change is one restart", w)
	}
	assert.Positive(t, judged, "each workload has a write that took too long")
}

// lateWrites has the names of the workloads with a write of the installation that was not answered in time: it may have been
// stored without the webhook, and followed by another one.
func lateWrites(s *fixture.Fixture) map[string]bool {
	s.Helper()
	requests, err := s.Installation.ControlPlane().Audit().All(s.Patiently())
	require.NoError(s, err)
	late := map[string]bool{}
	for _, r := range requests.By(s.Installation.Identity().User).In(s.Namespace).Writes() {
		late[r.Name] = late[r.Name] || len(controlplane.Requests{r}.Within(fixture.Prompt)) == 0
	}
	return late
}

// insist changes a ConfigMap, again and again until the API server has taken it.
func insist(s *fixture.Fixture, name string) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"2"}}`))
	s.Await("a change of configmap/"+name, func() error { return s.Patch(s.Context(), object, patch) })
}

// restart stops a component, by force or in order, and starts it again.
func restart(s *fixture.Fixture, component *controlplane.Process, force bool) {
	s.Helper()
	if force {
		component.Kill()
	} else {
		require.NoError(s, component.Stop(s.Patiently()))
	}
	require.NoError(s, component.Start(s.Patiently()))
}

// Replicas stop one after the other, as in an upgrade, while users write all the time; the cluster is slow to take a
// stopping replica out of the Service. No write fails and none passes without its stamp. Where the cluster is even slower
// than the time that a stopping replica gives it, as on an overloaded machine, that shows nothing.
func TestReplicasStopUnderLoad(t *testing.T) {
	t.Parallel()
	cp := controlplane.New(t, controlplane.Podless())
	in := installation.New(t, cp, installation.Options{
		Replicas: 2, LongLease: true, Args: []string{"--refractory=0s", "--settle=200ms", "--shutdown-grace-period=4s"},
	})
	in.Balancer().SetEndpointDelay(1500 * time.Millisecond)
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})

	load := write(s, 4)
	judged := 0
	for range 2 {
		for _, replica := range in.Replicas() {
			load.progress(s)
			inTime := stopInService(s, replica)
			load.progress(s)
			require.NoError(t, replica.Start(s.Patiently()))
			require.NoError(t, in.Balancer().AwaitReady(s.Patiently(), 2))
			written, failed := load.take(s)
			if !inTime {
				poll.Note(t, fmt.Sprintf("%s had ended before the cluster took it out of the Service; of %d writes: %v",
					replica.Name(), written, failed))
				continue
			}
			judged++
			assert.Empty(t, failed, "of %d writes", written)
		}
	}
	assert.Empty(t, load.end(), "when all replicas are there")
	assert.Positive(t, judged, "no replica was taken out of the Service before it ended")
	s.Settled()
}

// stopInService stops a replica, and reports whether the cluster took it out of the Service before it ended.
func stopInService(s *fixture.Fixture, replica *installation.Replica) bool {
	s.Helper()
	out := make(chan error, 1)
	go func() { out <- s.Installation.Balancer().AwaitReady(s.Patiently(), 1) }()
	exited := replica.Exited()
	stopped := make(chan error, 1)
	go func() { stopped <- replica.Stop(s.Patiently()) }()
	inTime := false
	select {
	case <-exited:
	case err := <-out:
		inTime = err == nil && replica.PID() != 0
	}
	require.NoError(s, <-stopped, "%s ends by itself after SIGTERM", replica.Name())
	return inTime
}

// load is constant writes of users.
type load struct {
	stop    func()
	writing sync.WaitGroup

	mutex   sync.Mutex
	written int
	failed  []string
}

// userPause is how long a user waits after some writes. Without it, four take all the processors that there are, and fewer
// writes fall into the time in which a replica stops.
const userPause = 30 * time.Millisecond

// write starts users, each of whom creates and deletes workloads and changes one, and looks at the stamps of the answers.
func write(s *fixture.Fixture, users int) *load {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	l := &load{stop: cancel}
	for user := range users {
		lasting := s.Manifest("Deployment", fmt.Sprintf("lasting-%d", user), fixture.Uses{ConfigMaps: []string{"app"}})
		require.NoError(s, s.Create(ctx, lasting))
		l.writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				short := s.Manifest("Deployment", fmt.Sprintf("short-%d-%d", user, n), fixture.Uses{ConfigMaps: []string{"app"}})
				l.note(short, func() error { return s.Create(context.WithoutCancel(ctx), short) })
				release := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":null},`+
					`"spec":{"containers":[{"name":"main","image":"example.com/app:%d"}]}}}}`, n)
				l.note(lasting, func() error {
					return s.Patch(context.WithoutCancel(ctx), lasting, client.RawPatch(types.StrategicMergePatchType, []byte(release)))
				})
				_ = s.Delete(context.WithoutCancel(ctx), short) // what stays goes with the namespace
				select {
				case <-ctx.Done():
				case <-time.After(userPause):
				}
			}
		})
	}
	return l
}

// note makes a write, counts it and notes what went wrong with it. One that the webhook may not have been asked about in
// time does not count.
func (l *load) note(answer *unstructured.Unstructured, write func() error) {
	var err error
	prompt := fixture.Promptly(func() { err = write() })
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if prompt {
		l.written++
	}
	switch {
	case err != nil:
		l.failed = append(l.failed, fmt.Sprintf("%s failed: %v", answer.GetName(), err))
	case prompt && fixture.TemplateAnnotations(answer)[fixture.ConfigHash] == "":
		l.failed = append(l.failed, fmt.Sprintf("at %s %s passed without a stamp", time.Now().Format("05.000"), answer.GetName()))
	}
}

// progress waits until some more writes are done.
func (l *load) progress(s *fixture.Fixture) {
	s.Helper()
	count := func() int {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		return l.written
	}
	before := count()
	s.Await("users to write", func() error {
		if now := count(); now < before+20 {
			return fmt.Errorf("%d writes", now-before)
		}
		return nil
	})
}

// take waits until some more writes are done, so that those that have begun are among them, and returns the writes since
// the last time.
func (l *load) take(s *fixture.Fixture) (written int, failed []string) {
	s.Helper()
	l.progress(s)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	written, failed = l.written, l.failed
	l.written, l.failed = 0, nil
	return written, failed
}

// end stops the users, and returns what has gone wrong since the last time.
func (l *load) end() (failed []string) {
	l.stop()
	l.writing.Wait()
	return l.failed
}
