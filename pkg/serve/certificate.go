package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// Certificate is what the webhook serves with.
type Certificate interface {
	// Start follows the certificate until the context ends.
	Start(context.Context) error
	// Get is for tls.Config.
	Get(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Valid says why TLS clients cannot trust us now, or nil.
	Valid() error
	// NotAfter returns the end of the certificate's validity; zero if there is none.
	NotAfter() time.Time
}

// certificatePoll is how often the certificate's files are looked for while they are not watched, and for another chain while they are.
const certificatePoll = 2 * time.Second

// FileCertificate serves a key pair out of a directory by a CertWatcher, which follows its changes and keeps the last good pair.
// What a CertWatcher cannot do is start without the files, which may come later than the program, with cert-manager's; and do without
// inotify, of which a node gives all containers of a user so much together (fs.inotify.max_user_instances and max_user_watches): then the
// files are read. Nor does it take another chain of the same certificate: then a new CertWatcher begins.
type FileCertificate struct {
	certFile, keyFile string
	// names are those by which the API server calls the webhook; a certificate without one of them is reported. It is not valid
	// where they are required.
	names    []string
	required bool
	poll     time.Duration
	log      logr.Logger
	watcher  atomic.Pointer[certwatcher.CertWatcher]
	// watch is certwatcher.New. read is the pair that was read last where the files are not watched, logged the last one that was logged.
	watch  func(certFile, keyFile string) (*certwatcher.CertWatcher, error)
	read   atomic.Pointer[tls.Certificate]
	logged atomic.Pointer[tls.Certificate]
	// unwatched is set once a CertWatcher could not start: it has kept its inotify instance, and so would the next one.
	unwatched bool
}

// errNoCertificate says that there has been no certificate since the start.
var errNoCertificate = errors.New("no certificate is loaded yet")

// NewFileCertificate returns the key pair in the files tls.crt and tls.key of a directory. Start loads and follows them.
func NewFileCertificate(directory string, o options.Certificate, log logr.Logger) *FileCertificate {
	return &FileCertificate{
		certFile: filepath.Join(directory, "tls.crt"), keyFile: filepath.Join(directory, "tls.key"),
		names: o.DNSNames, required: o.NamesRequired, poll: certificatePoll, log: log, watch: certwatcher.New,
	}
}

// Start waits for the files and follows them until the context ends. Each problem is logged once.
func (c *FileCertificate) Start(ctx context.Context) error {
	var logged string
	for {
		if err := c.follow(ctx); err != nil && ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			c.report(logged)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.poll):
		}
	}
}

// report logs why the files are not watched.
func (c *FileCertificate) report(reason string) {
	if _, err := c.Get(nil); err != nil {
		c.log.Info("no certificate yet; retrying", "error", reason)
		return
	}
	c.log.Info("cannot watch the certificate files; polling them", "error", reason, "every", c.poll)
}

// follow follows the files until the context ends or they have another chain, or reads them once. The error says what is wrong with them
// at its start.
func (c *FileCertificate) follow(ctx context.Context) error {
	if c.unwatched {
		return c.readInstead()
	}
	watcher, err := c.watch(c.certFile, c.keyFile)
	if err != nil {
		_ = c.readInstead() // CertWatcher says why
		return fmt.Errorf("load %s and %s: %w", c.certFile, c.keyFile, err)
	}
	watcher.RegisterCallback(c.loaded)
	c.watcher.Store(watcher)
	c.read.Store(nil)
	following, stop := context.WithCancel(ctx)
	defer stop()
	go wait.UntilWithContext(following, func(context.Context) {
		if c.outdated(watcher) {
			stop()
		}
	}, c.poll)
	if err := watcher.Start(following); err != nil {
		c.unwatched = true
		return fmt.Errorf("follow %s and %s: %w", c.certFile, c.keyFile, err)
	}
	return nil
}

// outdated reports whether the files have a pair with another chain than a CertWatcher serves.
func (c *FileCertificate) outdated(watcher *certwatcher.CertWatcher) bool {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return false // the CertWatcher logs it
	}
	served, _ := watcher.GetCertificate(nil)
	return !sameChain(&pair, served)
}

func sameChain(a, b *tls.Certificate) bool {
	return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
}

// loaded logs which certificate is served from now on, unless that is still the same.
func (c *FileCertificate) loaded(pair tls.Certificate) {
	if last := c.logged.Swap(&pair); last != nil && sameChain(last, &pair) {
		return
	}
	c.log.Info("loaded the certificate", "file", c.certFile, "notAfter", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	if err := c.misnamed(pair.Leaf); err != nil {
		c.log.Info("the certificate does not cover all names of the webhook", "error", err.Error())
	}
}

// readInstead reads the files once, if they have a pair.
func (c *FileCertificate) readInstead() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("load %s and %s: %w", c.certFile, c.keyFile, err)
	}
	c.loaded(pair)
	c.read.Store(&pair)
	return nil
}

// Get is for tls.Config.
func (c *FileCertificate) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := c.read.Load(); pair != nil {
		return pair, nil
	}
	watcher := c.watcher.Load()
	if watcher == nil {
		return nil, errNoCertificate
	}
	return watcher.GetCertificate(hello)
}

// Valid says why TLS clients cannot trust us now, or nil.
func (c *FileCertificate) Valid() error {
	pair, err := c.Get(nil)
	if err != nil {
		return fmt.Errorf("%w: waiting for %s and %s", err, c.certFile, c.keyFile)
	}
	now := time.Now()
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate in %s expired at %s", c.certFile, leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate in %s is not valid before %s", c.certFile, leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	if c.required {
		return c.misnamed(pair.Leaf)
	}
	return nil
}

// misnamed says which name a certificate lacks, or nil.
func (c *FileCertificate) misnamed(leaf *x509.Certificate) error {
	for _, name := range c.names {
		if err := leaf.VerifyHostname(name); err != nil {
			return fmt.Errorf("the certificate in %s is not for %s (--certificate-dns-names): %w", c.certFile, name, err)
		}
	}
	return nil
}

// NotAfter returns the end of the certificate's validity; zero if there is none.
func (c *FileCertificate) NotAfter() time.Time {
	pair, err := c.Get(nil)
	if err != nil {
		return time.Time{}
	}
	return pair.Leaf.NotAfter
}
