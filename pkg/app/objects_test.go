package app

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestObjectThatNoWatchHasListedIsUnseen(t *testing.T) {
	t.Parallel()
	store, err := configstate.New(configstate.Options{
		Config: &rest.Config{Host: "http://api.example.com"}, Namespaces: []string{"shop"}, Ring: func() digest.Ring { return digest.Ring{} },
	})
	require.NoError(t, err)
	db := reference.Ref{Kind: reference.Secret, Name: "db"}
	traits, exists := (&objects{store: store, namespace: "shop"}).Traits(db)
	assert.Equal(t, annotation.Traits{Unseen: true}, traits)
	assert.False(t, exists, "no watch has listed it")
	traits, exists = (&objects{store: store, namespace: "bank"}).Traits(db)
	assert.Zero(t, traits, "nothing looks there")
	assert.False(t, exists, "the namespace is not in scope")
}
