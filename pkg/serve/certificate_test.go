package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// pair makes a key pair that is valid around now for so long before and after.
func pair(t *testing.T, serial int64, before, after time.Duration) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "pod-reloader"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-before), NotAfter: time.Now().Add(after),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// project puts a pair into a directory as the kubelet does: a new directory behind a symbolic link that is swapped.
func project(t *testing.T, directory, version string, certPEM, keyPEM []byte) {
	t.Helper()
	data := filepath.Join(directory, ".."+version)
	require.NoError(t, os.Mkdir(data, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "tls.crt"), certPEM, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(data, "tls.key"), keyPEM, 0o600))
	next := filepath.Join(directory, "..data_tmp")
	require.NoError(t, os.Symlink(".."+version, next))
	require.NoError(t, os.Rename(next, filepath.Join(directory, "..data")))
	for _, file := range []string{"tls.crt", "tls.key"} {
		link := filepath.Join(directory, file)
		if _, err := os.Lstat(link); err != nil {
			require.NoError(t, os.Symlink(filepath.Join("..data", file), link))
		}
	}
}

// serial returns the serial number of what is served; 0 if there is nothing.
func serial(c *FileCertificate) int64 {
	got, err := c.Get(nil)
	if err != nil {
		return 0
	}
	return got.Leaf.SerialNumber.Int64()
}

// follow follows the certificate in a directory until the test ends.
func follow(t *testing.T, directory string, log logr.Logger, names ...string) *FileCertificate {
	t.Helper()
	c := NewFileCertificate(directory, options.Certificate{DNSNames: names}, log)
	c.poll = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return c
}

func awaitSerial(t *testing.T, c *FileCertificate, want int64, why string) {
	t.Helper()
	require.Eventually(t, func() bool { return serial(c) == want }, patience, 10*time.Millisecond, why)
}

func TestMissingCertificateIsWaitedForAndLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := make(chan string, 10)
		directory := t.TempDir()
		c := follow(t, directory, funcr.New(func(_, args string) { lines <- args }, funcr.Options{}))
		<-time.After(20 * c.poll)
		synctest.Wait()
		require.Len(t, lines, 1, "not at each look")
		assert.Contains(t, <-lines, filepath.Join(directory, "tls.crt"))
		assert.ErrorContains(t, c.Valid(), "waiting for "+filepath.Join(directory, "tls.crt"))
		_, err := c.Get(&tls.ClientHelloInfo{})
		assert.ErrorIs(t, err, errNoCertificate)
		assert.Zero(t, c.NotAfter())
	})
}

func TestCertificateIsFollowed(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	certPEM, keyPEM := pair(t, 1, time.Hour, time.Hour)
	_, other := pair(t, 2, time.Hour, time.Hour)
	project(t, directory, "v0", certPEM, other)
	lines := make(chan string, 100)
	c := follow(t, directory, funcr.New(func(_, args string) { lines <- args }, funcr.Options{}))
	assert.Contains(t, <-lines, "private key does not match", "what is no pair is waited for to change")
	project(t, directory, "v1", certPEM, keyPEM)
	awaitSerial(t, c, 1, "the pair is loaded")
	assert.Contains(t, <-lines, "loaded the certificate")
	require.NoError(t, c.Valid())
	assert.NotZero(t, c.NotAfter())

	certPEM, keyPEM = pair(t, 3, time.Hour, time.Hour)
	project(t, directory, "v2", certPEM, keyPEM)
	require.NoError(t, os.RemoveAll(filepath.Join(directory, "..v1")), "so does the kubelet")
	awaitSerial(t, c, 3, "a Secret volume swaps symbolic links")

	project(t, directory, "v3", certPEM, other)
	require.ErrorContains(t, c.watcher.Load().ReadCertificate(), "private key does not match")
	assert.Equal(t, int64(3), serial(c), "what is no pair leaves the last good one")
	require.NoError(t, c.Valid())
}

// An operator corrects a chain that lacks its intermediate: the leaf and the key stay.
func TestIntermediateThatIsAddedIsServed(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	certPEM, keyPEM := pair(t, 1, time.Hour, time.Hour)
	intermediate, _ := pair(t, 2, time.Hour, time.Hour)
	project(t, directory, "v1", certPEM, keyPEM)
	lines := make(chan string, 100)
	c := follow(t, directory, funcr.New(func(_, args string) { lines <- args }, funcr.Options{}))
	awaitSerial(t, c, 1, "the leaf is served")
	assert.Contains(t, <-lines, "loaded the certificate")
	first := c.watcher.Load()

	project(t, directory, "v2", slices.Concat(certPEM, intermediate), keyPEM)
	require.Eventually(t, func() bool {
		got, err := c.Get(nil)
		return err == nil && len(got.Certificate) == 2
	}, patience, 10*time.Millisecond, "the chain is served")
	assert.Contains(t, <-lines, "loaded the certificate", "it is logged, as a renewal is")
	assert.NotSame(t, first, c.watcher.Load(), "it is watched")
	assert.Empty(t, lines)

	certPEM, keyPEM = pair(t, 3, time.Hour, time.Hour)
	project(t, directory, "v3", certPEM, keyPEM)
	awaitSerial(t, c, 3, "a renewal is seen")
}

// A node that has no inotify left for the user of the container still serves, and sees renewals.
func TestCertificateThatCannotBeWatchedIsRead(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	var lines []string
	c := NewFileCertificate(directory, options.Certificate{}, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	full := true
	c.watch = func(certFile, keyFile string) (*certwatcher.CertWatcher, error) {
		if full {
			return nil, errors.New("too many open files")
		}
		return certwatcher.New(certFile, keyFile)
	}
	attempt := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return c.follow(ctx)
	}
	require.ErrorContains(t, attempt(), "too many open files")
	require.Error(t, c.Valid(), "there are no files")
	for version := range int64(2) {
		certPEM, keyPEM := pair(t, version+1, time.Hour, time.Hour)
		project(t, directory, strconv.FormatInt(version, 10), certPEM, keyPEM)
		require.ErrorContains(t, attempt(), "too many open files")
		require.ErrorContains(t, attempt(), "too many open files")
		require.NoError(t, c.Valid())
		assert.Equal(t, version+1, serial(c))
		assert.Len(t, lines, int(version)+1, "each certificate is logged once")
	}
	full = false
	certPEM, keyPEM := pair(t, 3, time.Hour, time.Hour)
	project(t, directory, "watched", certPEM, keyPEM)
	require.NoError(t, attempt())
	assert.EqualValues(t, 3, serial(c), "it is watched from now on")
}

// A node that has no inotify watches left fails the start of a CertWatcher, which then keeps its inotify instance.
func TestCertificateIsReadForGoodOnceItCouldNotBeWatched(t *testing.T) {
	t.Parallel()
	directory, gone := t.TempDir(), t.TempDir()
	certPEM, keyPEM := pair(t, 1, time.Hour, time.Hour)
	project(t, directory, "1", certPEM, keyPEM)
	project(t, gone, "1", certPEM, keyPEM)
	failing, err := certwatcher.New(filepath.Join(gone, "tls.crt"), filepath.Join(gone, "tls.key"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(gone), "its Start fails")
	synctest.Test(t, func(t *testing.T) {
		lines := make(chan string, 10)
		c := NewFileCertificate(directory, options.Certificate{}, funcr.New(func(_, args string) { lines <- args }, funcr.Options{}))
		var calls atomic.Int32
		c.watch = func(string, string) (*certwatcher.CertWatcher, error) {
			calls.Add(1)
			return failing, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		defer cancel()
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		pass(time.Minute)
		assert.EqualValues(t, 1, serial(c))
		require.Len(t, lines, 2, "the certificate is logged once, and so is the failure")
		assert.Contains(t, <-lines, "loaded the certificate")
		assert.Contains(t, <-lines, "cannot watch the certificate files; polling them")

		certPEM, keyPEM := pair(t, 2, time.Hour, time.Hour)
		project(t, directory, "2", certPEM, keyPEM)
		pass(certificatePoll)
		assert.EqualValues(t, 2, serial(c), "a renewal is seen")
		pass(time.Hour)
		require.Len(t, lines, 1, "the renewal is logged once")
		assert.Contains(t, <-lines, "loaded the certificate")
		assert.EqualValues(t, 1, calls.Load(), "each call would leave an inotify instance")

		require.NoError(t, os.Remove(filepath.Join(directory, "..data")))
		pass(certificatePoll)
		assert.EqualValues(t, 2, serial(c), "the last pair is served")
		require.Len(t, lines, 1)
		assert.Contains(t, <-lines, "no such file")
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestCertificateForAnotherName(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	certPEM, keyPEM := pair(t, 1, time.Hour, time.Hour)
	project(t, directory, "v1", certPEM, keyPEM)
	logged := make(chan string, 10)
	log := funcr.New(func(_, args string) { logged <- args }, funcr.Options{})
	c := follow(t, directory, log, "localhost", "pod-reloader.tools.svc")
	awaitSerial(t, c, 1, "it is served nevertheless")
	require.NoError(t, c.Valid(), "the names are a guess")
	assert.Contains(t, <-logged, "loaded the certificate")
	warning := <-logged
	assert.Contains(t, warning, "is not for pod-reloader.tools.svc")
	assert.Contains(t, warning, filepath.Join(directory, "tls.crt"))
	assert.Contains(t, warning, "valid for localhost", "the user sees which names it has")
	assert.Contains(t, warning, "--certificate-dns-names", "and which flag has the expected ones")

	c.required = true
	assert.ErrorContains(t, c.Valid(), "is not for pod-reloader.tools.svc")
}

func TestCertificateValid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before, after time.Duration
		want          string
		why           string
	}{
		"now":       {time.Hour, time.Hour, "", "clients trust it"},
		"expired":   {2 * time.Hour, -time.Hour, "expired at", "no client trusts it"},
		"too early": {-time.Hour, 2 * time.Hour, "is not valid before", "a clock is wrong"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := t.TempDir()
			certPEM, keyPEM := pair(t, 1, tt.before, tt.after)
			project(t, directory, "v1", certPEM, keyPEM)
			c := follow(t, directory, logr.Discard())
			awaitSerial(t, c, 1, "it is served nevertheless")
			if tt.want == "" {
				assert.NoError(t, c.Valid(), tt.why)
			} else {
				assert.ErrorContains(t, c.Valid(), tt.want, tt.why)
			}
		})
	}
}
