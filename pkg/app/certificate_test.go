package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// project puts a pair into a directory in the way of the kubelet: a new directory behind a symbolic link that is swapped.
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

func serial(t *testing.T, c *certificate) int64 {
	t.Helper()
	got, err := c.Get(nil)
	require.NoError(t, err)
	return got.Leaf.SerialNumber.Int64()
}

func TestCertificateIsWaitedForAndFollowed(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	var lines []string
	c := newCertificate(directory, os.ReadFile, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))

	c.load()
	c.load()
	require.Len(t, lines, 1, "a missing certificate is told once")
	assert.ErrorContains(t, c.Valid(), "waiting for "+filepath.Join(directory, "tls.crt"))
	_, err := c.Get(&tls.ClientHelloInfo{})
	assert.ErrorIs(t, err, errNoCertificate)
	assert.Zero(t, c.NotAfter())

	certPEM, keyPEM := pair(t, 1, time.Hour, time.Hour)
	project(t, directory, "v1", certPEM, keyPEM)
	c.load()
	assert.Equal(t, int64(1), serial(t, c))
	require.NoError(t, c.Valid())
	assert.False(t, c.NotAfter().IsZero())

	certPEM, keyPEM = pair(t, 2, time.Hour, time.Hour)
	project(t, directory, "v2", certPEM, keyPEM)
	c.load()
	assert.Equal(t, int64(2), serial(t, c), "a Secret volume swaps symbolic links")

	_, other := pair(t, 3, time.Hour, time.Hour)
	project(t, directory, "v3", certPEM, other)
	c.load()
	assert.Equal(t, int64(2), serial(t, c), "what is no pair leaves the last good one")
	require.NoError(t, c.Valid())
	assert.Contains(t, lines[len(lines)-1], "no key pair")

	told := len(lines)
	c.load()
	assert.Len(t, lines, told, "the same trouble is told once")
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
			c := newCertificate(directory, os.ReadFile, logr.Discard())
			c.load()
			if tt.want == "" {
				assert.NoError(t, c.Valid(), tt.why)
			} else {
				assert.ErrorContains(t, c.Valid(), tt.want, tt.why)
			}
		})
	}
}
