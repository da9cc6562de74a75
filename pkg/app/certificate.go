package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// certificatePoll is how often the certificate's files are looked at. Polling sees every way of replacing them, the swap
// of symbolic links by which the kubelet updates a mounted Secret included, and files that are not there yet.
const certificatePoll = 2 * time.Second

// certificate serves a key pair out of a directory and follows its changes. A pair that cannot be read leaves the last
// good one in place.
type certificate struct {
	certFile, keyFile string
	readFile          func(path string) ([]byte, error)
	log               logr.Logger
	now               func() time.Time

	mu       sync.RWMutex
	current  *tls.Certificate
	read     []byte // what current was made from
	complain string // the last problem that was logged
}

// errNoCertificate says that there has been no certificate since the start.
var errNoCertificate = errors.New("no certificate is loaded yet")

func newCertificate(directory string, readFile func(path string) ([]byte, error), log logr.Logger) *certificate {
	return &certificate{
		certFile: filepath.Join(directory, "tls.crt"), keyFile: filepath.Join(directory, "tls.key"),
		readFile: readFile, log: log, now: time.Now,
	}
}

// Start follows the files until the context ends.
func (c *certificate) Start(ctx context.Context) error {
	ticker := time.NewTicker(certificatePoll)
	defer ticker.Stop()
	for {
		c.load()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Get is for tls.Config.
func (c *certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.current == nil {
		return nil, errNoCertificate
	}
	return c.current, nil
}

// Valid says why TLS clients cannot trust us now, or nil.
func (c *certificate) Valid() error {
	pair, err := c.Get(nil)
	if err != nil {
		return fmt.Errorf("%w: waiting for %s and %s", err, c.certFile, c.keyFile)
	}
	now := c.now()
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate in %s expired at %s", c.certFile, leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate in %s is not valid before %s", c.certFile, leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// NotAfter returns the end of the certificate's validity; zero if there is none.
func (c *certificate) NotAfter() time.Time {
	pair, err := c.Get(nil)
	if err != nil {
		return time.Time{}
	}
	return pair.Leaf.NotAfter
}

// load reads the files and takes over what is new. Each problem is logged once, not at every look.
func (c *certificate) load() {
	pair, content, err := c.readPair()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if text := err.Error(); text != c.complain {
			c.complain = text
			c.log.Info("Cannot load the certificate; retrying", "reason", text, "loaded", c.current != nil)
		}
		return
	}
	c.complain = ""
	if pair == nil {
		return
	}
	c.current, c.read = pair, content
	c.log.Info("Loaded the certificate", "file", c.certFile, "notAfter", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
}

// readPair returns the pair in the files, or nil if it is the current one.
func (c *certificate) readPair() (*tls.Certificate, []byte, error) {
	certPEM, err := c.readFile(c.certFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate: %w", err)
	}
	keyPEM, err := c.readFile(c.keyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate's key: %w", err)
	}
	content := bytes.Join([][]byte{certPEM, keyPEM}, []byte{0})
	c.mu.RLock()
	same := bytes.Equal(content, c.read)
	c.mu.RUnlock()
	if same {
		return nil, nil, nil
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("%s and %s are no key pair: %w", c.certFile, c.keyFile, err)
	}
	return &pair, content, nil
}
