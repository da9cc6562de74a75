package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// In a pod of the installation, be it one of Reloader's chart, the digest key is where the manager has it.
func TestWhyLooksForTheDigestKeyInTheNamespaceOfTheManager(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"POD_NAMESPACE", "RELOADER_NAMESPACE"} {
		cmd := newWhy(Process{Getenv: func(name string) string { return map[string]string{variable: "tools"}[name] }})
		assert.Equal(t, "tools", cmd.Flag("installation-namespace").Value.String(), variable)
	}
}
