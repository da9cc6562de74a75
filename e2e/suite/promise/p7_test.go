package promise_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// planted is a Secret as `kubectl apply` leaves it: with its plain text in an annotation, too.
const planted = `
apiVersion: v1
kind: Secret
metadata: {name: NAME, namespace: SPACE}
stringData: {plain: "PLAIN"}
data: {encoded: "ENCODED"}
`

// fragment is how much of a planted text must be found in one piece: half of a key is too much already.
const fragment = 16

// secrets are texts that were planted.
type secrets []string

// plant applies a Secret with two new texts by kubectl.
func (p *secrets) plant(s *fixture.Fixture, name string) {
	s.Helper()
	plain, encoded := rand.Text()+rand.Text(), rand.Text()+rand.Text()
	*p = append(*p, plain, encoded)
	manifest := strings.NewReplacer("NAME", name, "SPACE", s.Namespace, "PLAIN", plain,
		"ENCODED", base64.StdEncoding.EncodeToString([]byte(encoded))).Replace(planted)
	_, err := s.Installation.ControlPlane().KubectlInput(s.Patiently(), manifest, "apply", "-f", "-")
	require.NoError(s, err)
}

// found returns the pieces of the planted texts, plain or in base64, that are somewhere in a content.
func (p secrets) found(content []byte) []string {
	var pieces []string
	for _, text := range p {
		for _, form := range []string{text, base64.StdEncoding.EncodeToString([]byte(text))} {
			for at := 0; at+fragment <= len(form); at += fragment / 2 {
				if piece := form[at : at+fragment]; bytes.Contains(content, []byte(piece)) {
					pieces = append(pieces, piece)
				}
			}
		}
	}
	return pieces
}

func noSecretStaysInMemoryOrLeavesTheProcess(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	program, err := installation.Build(t.Context(), "e2e/suite/promise/heapdump")
	require.NoError(t, err)
	in := installation.NewInTurn(t, cp, installation.Options{
		Program: program, Replicas: -1, LongLease: true, Args: []string{"--settle=0s", "--refractory=0s", "--log-level=127"}, // the most that is logged
	})
	dumps := map[string]*installation.Replica{}
	for _, name := range []string{"one", "two"} {
		path := filepath.Join(t.TempDir(), name)
		replica, err := in.AddReplica(t.Context(), installation.ReplicaOptions{Env: []string{"HEAP_DUMP=" + path}})
		require.NoError(t, err)
		dumps[path] = replica
	}
	s := fixture.New(t, in)
	var texts secrets
	texts.plant(s, "referenced")
	w := s.Deployment("web", fixture.Uses{Secrets: []string{"referenced"}})
	s.AwaitKnown(w)
	for n := 1; n <= 3; n++ {
		texts.plant(s, "referenced")
		s.AwaitChanges(w, n, "the Secret's content has changed")
		texts.plant(s, fmt.Sprintf("unreferenced-%d", n))
	}
	s.Settled() // ordinary traffic

	for path, replica := range dumps {
		heap := heapOf(s, replica, path, "unreferenced-2") // the search finds what is in the heap: a name may be
		assert.Empty(t, texts.found(heap), "%s keeps parts of secrets in its memory", replica.Name())
		log, err := replica.Log()
		require.NoError(t, err)
		assert.Empty(t, texts.found([]byte(log)), "%s logs parts of secrets", replica.Name())
	}
	assert.Empty(t, texts.found(encoded(t, s.Get(w))), "the workload has parts of secrets")
	events := &eventsv1.EventList{}
	require.NoError(t, s.List(t.Context(), events))
	assert.Empty(t, texts.found(encoded(t, events)), "Events have parts of secrets")
	explained, err := in.Why(t.Context(), "deployment/web", "-n", s.Namespace, "-o", "json")
	require.NoError(t, err)
	assert.Empty(t, texts.found([]byte(explained)), "why prints parts of secrets")
}

// heapOf has a replica dump its heap until it has the name of an object that the replica has to learn of.
func heapOf(s *fixture.Fixture, replica *installation.Replica, path, name string) []byte {
	s.Helper()
	var heap []byte
	s.Await("the heap of "+replica.Name()+" to have the name "+name, func() error {
		require.NoError(s, os.RemoveAll(path))
		replica.Signal(syscall.SIGUSR1)
		s.Await("the heap of "+replica.Name(), func() (err error) {
			heap, err = os.ReadFile(path)
			return err
		})
		if !bytes.Contains(heap, []byte(name)) {
			return errors.New("it has not")
		}
		return nil
	})
	return heap
}

func encoded(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return text
}

// keyID is the length of the id of the key, with which a hash begins.
const keyID = 8

// A reader of a digest cannot test guesses: computing it needs the key, which is in its Secret only.
func digestsDependOnTheKeyAndTheNamespace(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewInTurn(t, cp, installation.Options{Replicas: 1, Args: []string{"--shutdown-grace-period=0s"}})
	s, other := fixture.New(t, in), fixture.New(t, in)
	digests := func(s *fixture.Fixture, name string) (hash, entry string) {
		stored := s.Get(s.Deployment(name, fixture.Uses{Secrets: []string{"db"}}))
		_, entry, found := strings.Cut(stored.GetAnnotations()[fixture.ConfigRecord], "secret/db=")
		require.True(t, found, "the Record has the Secret")
		entry, _, _ = strings.Cut(entry, "@")
		return fixture.TemplateAnnotations(stored)[fixture.ConfigHash], entry
	}
	s.Secret("db", fixture.Data{"password": "guess me"})
	other.Secret("db", fixture.Data{"password": "guess me"})
	hash, entry := digests(s, "first")
	require.Len(t, hash, 64)
	same, _ := digests(s, "second")
	require.Equal(t, hash, same, "the same content has the same digest")
	others, othersEntry := digests(other, "first")
	assert.NotEqual(t, hash, others, "one tenant's digest does not match another's equal content")
	assert.NotEqual(t, entry, othersEntry, "nor does the Record")

	require.NoError(t, in.StopAll(s.Patiently()))
	require.NoError(t, s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace(), Name: fixture.DigestKey}}))
	require.NoError(t, in.StartAll(s.Patiently()))
	anew, entryAnew := digests(s, "third")
	assert.NotEqual(t, entry, entryAnew, "another key makes another digest of the same content")
	assert.NotEqual(t, hash[:keyID], anew[:keyID], "the hash begins with the id of the key")
	assert.NotEqual(t, hash[keyID:], anew[keyID:], "the rest of the hash differs as well")
}
