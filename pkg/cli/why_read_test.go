package cli

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keySecret answers each read with one Secret.
type keySecret struct {
	client.Reader
	data map[string][]byte
}

func (k keySecret) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*corev1.Secret).Data = k.data
	return nil
}

// One invalid key makes the Secret unusable, whatever else it has. That is one line, and no claim about the replicas that run.
func TestWhyNamesTheInvalidDigestKey(t *testing.T) {
	t.Parallel()
	f := whyFlags{keyNamespace: "tools", key: "keys"}
	_, err := f.ring(t.Context(), keySecret{data: map[string][]byte{"0001": bytes.Repeat([]byte{7}, 32), "0002": []byte("short")}})
	require.EqualError(t, err, "the digest key in Secret tools/keys is unusable: the digest-key Secret's data key \"0002\" has 5 bytes: "+
		"at least 32 are needed; correct or remove the invalid key, and delete the Secret only if no key is valid")
	assert.Equal(t, "the Secret tools/keys is not usable; the replicas that run go on with the keys in their memory, and one that starts waits "+
		"until the Secret is corrected", f.noKey(err))
}
