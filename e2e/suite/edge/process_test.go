package edge_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// A command line that makes no sense is refused at once, with all that is wrong in it.
func TestBadFlagsAreAllNamedAtOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args  []string
		named []string
	}{
		"One": {[]string{"--settle=soon"}, []string{"--settle"}},
		"Several": {
			[]string{
				"--bogus=1", "--refractory=-5s", "--namespaces=UPPER", "--workload-kinds=Deployment", "--hash=md5",
				"--namespace-selector=a in (", "--webhook-bind-address=nowhere", "--workers=0", "--tls-min-version=1",
			},
			[]string{
				"--bogus", "--refractory", "--namespaces", "--workload-kinds", "--hash",
				"--namespace-selector", "--webhook-bind-address", "--workers", "--tls-min-version",
			},
		},
		"Argument": {[]string{"manager", "--settle=soon"}, []string{"manager", "--settle"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), shared.Executable(), append([]string{"--namespace=tools"}, test.args...)...)
			command.Env = []string{"KUBECONFIG=" + shared.ControlPlane().AdminKubeconfig()}
			output, err := command.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "it started: %s", output)
			assert.Equal(t, 2, exit.ExitCode(), string(output))
			for _, named := range test.named {
				assert.Contains(t, string(output), named, "every bad flag is named at once")
			}
			assert.Len(t, strings.Split(strings.TrimSpace(string(output)), "\n"), len(test.named), "one line each, and nothing else: %s", output)
		})
	}
}

// cert-manager renews the certificate in the mounted files: every replica serves the new one, and no write in between
// goes without its stamp.
func TestCertificateIsReloaded(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	before := map[string]string{}
	pids := map[string]int{}
	for _, replica := range shared.Replicas() {
		serial, err := served(replica)
		require.NoError(t, err)
		before[replica.Name()], pids[replica.Name()] = serial, replica.PID()
	}
	require.NoError(t, shared.RenewCertificate())
	created := 0
	for _, replica := range shared.Replicas() {
		s.Await("the new certificate of "+replica.Name(), func() error {
			w := s.Deployment(fmt.Sprintf("web-%d", created), fixture.Uses{ConfigMaps: []string{"app"}})
			created++
			assert.NotEmpty(t, fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash], "%s was created during the change of certificates", w)
			serial, err := served(replica)
			if err == nil && serial == before[replica.Name()] {
				err = errors.New("the old one is served")
			}
			return err
		})
		assert.Equal(t, pids[replica.Name()], replica.PID(), "without a restart")
	}
	after := s.Deployment("after", fixture.Uses{ConfigMaps: []string{"app"}})
	assert.NotEmpty(t, fixture.TemplateAnnotations(s.Get(after))[fixture.ConfigHash], "the API server trusts the new one")
}

// served is the serial number of the certificate that a replica shows, if the cluster's CA vouches for it.
func served(replica *installation.Replica) (string, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(shared.ControlPlane().CA())
	connection, err := tls.Dial("tcp", replica.WebhookAddress, &tls.Config{
		RootCAs: roots, ServerName: installation.ServiceName, MinVersion: tls.VersionTLS13,
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}
