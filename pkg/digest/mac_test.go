package digest_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

func TestMACIsAnHMACOverLengthPrefixedValues(t *testing.T) {
	t.Parallel()
	key, _ := ringOf(t, map[string][]byte{"1": secretOf('a')}).Newest()
	mac := key.MAC("test v1")
	mac.Number(2)
	mac.Text("ab")
	mac.Bytes([]byte("c"))

	want := hmac.New(sha256.New, secretOf('a'))
	for _, part := range []string{
		"\x00\x00\x00\x00\x00\x00\x00\x07test v1", "\x00\x00\x00\x00\x00\x00\x00\x02",
		"\x00\x00\x00\x00\x00\x00\x00\x02ab", "\x00\x00\x00\x00\x00\x00\x00\x01c",
	} {
		want.Write([]byte(part))
	}
	assert.Equal(t, digest.Entry(want.Sum(nil)), mac.Sum())

	other := key.MAC("test v1")
	other.Number(2)
	other.Text("a")
	other.Text("bc")
	assert.NotEqual(t, mac.Sum(), other.Sum(), "where one value ends counts")
}
