// Package keyring keeps the ring of digest keys that all replicas of an installation share in one Secret.
//
// It reads the API server and passes the pure digest.Ring to configstate, the webhook and the loop. The
// first replica that starts creates the Secret; all watch it. A lost key must restart
// nothing: where the content of the Secret is invalid the last valid ring is used on, and a Secret that is deleted by
// accident is created again with the keys that are still in memory.
package keyring

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// The reasons of the Events about the Secret, on the installation's own Deployment.
const (
	EventUnusable = "DigestKeyUnusable"
	EventUsable   = "DigestKeyUsable"
)

const (
	// firstKey is the data key of a key that is created here. A newer key is added under a name that sorts behind it.
	firstKey = "0001"
)

// Options say which Secret holds the keys and how to reach it.
type Options struct {
	// Config leads to the API server, HTTPClient sends the requests.
	Config     *rest.Config
	HTTPClient *http.Client
	// Namespace and Name are the Secret's.
	Namespace, Name string
	// Log gets a line for every change of the ring, and for every problem with the Secret.
	Log logr.Logger
	// Random is where a new key comes from; nil is crypto/rand.Reader.
	Random io.Reader
	// Now is the clock by which Refresh says when it has read; nil is time.Now.
	Now func() time.Time
}

// Keyring follows the digest-key Secret. Its methods are safe for concurrent use.
type Keyring struct {
	secrets secrets
	log     logr.Logger
	random  io.Reader
	now     func() time.Time

	missing chan struct{} // holds one signal that the Secret is gone
	contest contest
	ring    atomic.Pointer[digest.Ring]

	mu sync.Mutex
	// changed are called after each change of the ring.
	changed []func()
	// data is what the ring was made of, to create the Secret again from.
	data  map[string][]byte
	known known
	// logged are the problems that were logged last, by message, so that the same are not logged again. problem is the last one of them.
	logged  map[string]string
	problem string

	// refreshed is the last read that Refresh has begun; nil if it has begun none.
	refreshed *refresh
}

// known is what is known of the Secret.
type known struct {
	// version is the resourceVersion of the newest content; empty where the Secret is gone or is being listed.
	version string
	// listings counts the times that the watch has listed the Secret, or has seen it go.
	listings uint64
}

// New makes a Keyring. It does no I/O; Start does.
func New(o Options) (*Keyring, error) {
	if o.Config == nil || o.HTTPClient == nil || o.Namespace == "" || o.Name == "" {
		return nil, errors.New("a keyring needs a Config, an HTTPClient, and the namespace and name of its Secret")
	}
	s, err := newSecrets(o)
	if err != nil {
		return nil, err
	}
	k := &Keyring{
		secrets: s,
		log:     o.Log.WithValues("namespace", o.Namespace, "secret", o.Name),
		random:  o.Random,
		now:     o.Now,
		missing: make(chan struct{}, 1),
		contest: newContest(),
		logged:  make(map[string]string),
	}
	if k.random == nil {
		k.random = rand.Reader
	}
	if k.now == nil {
		k.now = time.Now
	}
	k.ring.Store(&digest.Ring{})
	return k, nil
}

// Ring returns the current ring, without a lock; it is empty until Ready.
func (k *Keyring) Ring() digest.Ring {
	return *k.ring.Load()
}

// Ready reports whether there is a key to sign with.
func (k *Keyring) Ready() bool {
	return !k.Ring().Empty()
}

// Problem returns what is wrong with the Secret, and what to do; empty if nothing is, as far as is known.
func (k *Keyring) Problem() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problem
}

// OnChange registers a function that is called after each change of the ring, the first key included. It must return soon.
func (k *Keyring) OnChange(changed func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = append(k.changed, changed)
}

// Start reads the Secret, or creates it where there is none, and follows it until the context ends. Failures are retried
// until then.
func (k *Keyring) Start(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { k.follow(ctx) })
	defer running.Wait()
	for {
		k.retry(ctx, k.ensure)
		select {
		case <-ctx.Done():
			return nil
		case <-k.missing:
			k.contest.wait(ctx, k.now, k.log)
		}
	}
}

// retry repeats an attempt until it succeeds or the context ends.
func (k *Keyring) retry(ctx context.Context, do func(context.Context) error) {
	var forbidden time.Time
	_ = listwatch.Pause().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := do(ctx)
		missing := listwatch.Lasts(&forbidden, apierrors.IsForbidden(err))
		// An unusable Secret is logged, and one that was overtaken is read again soon.
		if err != nil && ctx.Err() == nil && !errors.Is(err, errUnusable) && !errors.Is(err, errOvertaken) {
			k.logFailure(err, missing)
		}
		return err == nil, nil
	})
}

var (
	// errCreate is an attempt to create the Secret that failed.
	errCreate = errors.New("create the Secret of the digest key")
	// errUnusable is a Secret whose content is invalid; why is logged.
	errUnusable = errors.New("the Secret of the digest key is not usable")
	// errOvertaken is a read of the Secret during which the watch has listed it again, or has seen it go: which is newer is not known.
	errOvertaken = errors.New("the Secret of the digest key was listed again or removed while it was read")
)

// logFailure logs once that there is no Secret, and what to do about it: without a key nothing is reloaded. While the keys of a Secret that
// was deleted are in memory, a new key would be the wrong one: what is due by the old keys would be lost. Missing says that requests are
// forbidden for so long that a permission is missing.
func (k *Keyring) logFailure(err error, missing bool) {
	switch {
	case errors.Is(err, errCreate) && k.Ready():
		k.logOnce(err, "cannot create the Secret of the digest key again; its keys stay in force until the last replica ends: "+
			"correct what the error names, or restore the Secret from a backup, and do not make a new key; retrying")
	case !missing, errors.Is(err, errCreate) && !apianswer.Unauthorized(err): // the latter may be a full quota
		k.logOnce(err, "cannot read or create the Secret of the digest key; retrying")
	case errors.Is(err, errCreate):
		k.logOnce(err, "not allowed to create the Secret of the digest key, and nothing is reloaded without it: "+
			"grant create on Secrets in this namespace, or create the Secret, with a key of 32 random bytes; retrying")
	default:
		k.logOnce(err, "not allowed to read the Secret of the digest key, and nothing is reloaded without it: grant get, list and watch on it; retrying")
	}
}

// ensure gets a key. It fails while the Secret is invalid and no key is in memory, so that the corrected one is read, also without the
// permission to watch it.
func (k *Keyring) ensure(ctx context.Context) error {
	err := k.readOrCreate(ctx)
	switch {
	case (errors.Is(err, errUnusable) || errors.Is(err, errOvertaken)) && k.Ready():
		return nil // the watch delivers what follows
	case err == nil && !k.Ready():
		return errUnusable // a newer content than the one that was read
	}
	return err
}

// readOrCreate reads the Secret, and creates it if there is none. If another replica is faster, its key is used.
func (k *Keyring) readOrCreate(ctx context.Context) error {
	err := k.read(ctx)
	if !apianswer.NotFound(err) {
		return err
	}
	data, err := k.contents()
	if err != nil {
		return err
	}
	began := k.current()
	secret, err := k.secrets.create(ctx, data)
	if apianswer.AlreadyExists(err) {
		return k.read(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errCreate, err)
	}
	k.log.Info("created the Secret of the digest key")
	return k.take(secret, began)
}

// contents are the keys that a new Secret gets: those in memory, else a fresh one.
func (k *Keyring) contents() (map[string][]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data != nil {
		return maps.Clone(k.data), nil
	}
	key, err := digest.NewKey(k.random)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{firstKey: key}, nil
}

// read reads the Secret and takes its keys. A NotFound error is returned as it is.
func (k *Keyring) read(ctx context.Context) error {
	began := k.current()
	secret, err := k.secrets.get(ctx)
	if err != nil {
		return fmt.Errorf("read the Secret of the digest key: %w", err)
	}
	return k.take(secret, began)
}

// unusable is take for invalid content. What something newer has followed is not logged: it is over.
func (k *Keyring) unusable(version string, began known, err error) error {
	message := "the Secret of the digest key is not usable, and nothing is reloaded without it: correct or remove the invalid key; " +
		"delete the Secret only if no key is valid and no other replica has one: a new key is created then"
	if k.Ready() {
		message = "the Secret of the digest key is not usable, and the keys in memory stay in force: correct or remove the invalid key; " +
			"delete the Secret only if no key is valid: it is created again with the keys in memory"
	}
	k.mu.Lock()
	newest, overtaken := k.newestLocked(version, began)
	first := newest && k.isNewLocked(err, message)
	k.mu.Unlock()
	if !newest {
		return overtaken
	}
	if first {
		k.log.Error(err, message)
	}
	return errUnusable
}

func (k *Keyring) current() known {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

// take makes the Secret's content the ring, unless something newer is known: reads and the watch overtake each other. It goes by what was
// known when the request for the Secret began. It returns errUnusable if the content is invalid, and errOvertaken if it may be newer than
// that of a listing or removal since then, or older.
func (k *Keyring) take(secret *corev1.Secret, began known) error {
	ring, err := digest.NewRing(secret.Data)
	if err != nil {
		return k.unusable(secret.ResourceVersion, began, err)
	}
	if changed, err := k.store(secret, ring, began); !changed {
		return err
	}
	newest, _ := ring.Newest()
	k.log.Info("digest keys changed", "signing", string(newest.ID), "keys", len(ring.Keys()))
	k.mu.Lock()
	changed := slices.Clone(k.changed)
	k.mu.Unlock()
	for _, f := range changed {
		f()
	}
	return nil
}

// newestLocked reports whether no content of the Secret is known that is newer than a version, and notes the version. A read that began
// after all that is known, and is older, is the newest one: etcd was restored from a backup.
func (k *Keyring) newestLocked(version string, began known) (bool, error) {
	switch {
	case reference.Later(k.known.version, version) && k.known != began:
		return false, nil
	case k.known.listings != began.listings:
		return false, errOvertaken
	}
	k.known.version = version
	return true, nil
}

// store is take under the lock. It reports whether the ring is another one now.
func (k *Keyring) store(secret *corev1.Secret, ring digest.Ring, began known) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if newest, err := k.newestLocked(secret.ResourceVersion, began); !newest {
		return false, err
	}
	k.data = secret.Data
	k.problem = ""
	clear(k.logged)
	if k.Ring().Equal(ring) {
		return false, nil
	}
	k.ring.Store(&ring)
	return true, nil
}

// logOnce logs a problem unless it is the one that was logged last.
func (k *Keyring) logOnce(err error, message string) {
	k.mu.Lock()
	first := k.isNewLocked(err, message)
	k.mu.Unlock()
	if first {
		k.log.Error(err, message)
	}
}

// isNewLocked reports whether a problem is another one than was logged last.
func (k *Keyring) isNewLocked(err error, message string) bool {
	cause := listwatch.Cause(err)
	last := k.logged[message]
	k.logged[message] = cause
	k.problem = fmt.Sprintf("%s (Secret %s/%s: %s)", message, k.secrets.namespace, k.secrets.name, cause)
	return last != cause
}

// metaOf is the metadata of a Secret that is created here.
func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{"app.kubernetes.io/managed-by": "pod-reloader"},
	}
}
