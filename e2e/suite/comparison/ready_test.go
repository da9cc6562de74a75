package comparison_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// interval is how often a condition is looked at.
const interval = 100 * time.Millisecond

// SAP's readiness is a bare ping: a replica without a certificate, or one that cannot know any hash, counts as an
// endpoint, and with failurePolicy Fail that blocks every write.
func TestReadinessReportsWhatIsMissing(t *testing.T) {
	t.Parallel()
	cp := shared.ControlPlane()
	outsider := filepath.Join(t.TempDir(), "outsider")
	require.NoError(t, cp.WriteKubeconfig(outsider, controlplane.Identity{User: "without-permissions"}))
	insider := filepath.Join(t.TempDir(), "insider")
	require.NoError(t, cp.WriteKubeconfig(insider, shared.Identity()))

	tests := map[string]struct {
		kubeconfig  string
		certificate bool
		missing     []string
	}{
		"NoCertificate":    {insider, false, []string{"certificate", "webhook"}}, // no handshake without it
		"NoDigestKey":      {outsider, true, []string{"digest-key"}},
		"NeitherOfBoth":    {outsider, false, []string{"certificate", "webhook", "digest-key"}},
		"NothingIsMissing": {insider, true, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tls")
			require.NoError(t, os.Mkdir(dir, 0o700))
			if test.certificate {
				require.NoError(t, cp.ServingCert(dir, installation.ServiceName))
			}
			health := standby(t, test.kubeconfig, dir)
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				code, text := get(c, health+"/readyz")
				for _, check := range []string{"certificate", "digest-key", "webhook"} {
					if slices.Contains(test.missing, check) {
						assert.Contains(c, text, "[-] "+check)
					} else {
						assert.Contains(c, text, "[+] "+check)
					}
				}
				assert.Equal(c, len(test.missing) == 0, code == http.StatusOK, text)
				alive, _ := get(c, health+"/healthz")
				assert.Equal(c, http.StatusOK, alive, "what is not ready is alive: a restart would not help it")
			}, fixture.Patience, interval)

			if name == "NoCertificate" {
				require.NoError(t, cp.ServingCert(dir, installation.ServiceName))
				require.EventuallyWithT(t, func(c *assert.CollectT) {
					code, text := get(c, health+"/readyz")
					assert.Equal(c, http.StatusOK, code, text)
				}, fixture.Patience, interval, "ready as soon as the certificate is there")
			}
		})
	}
}

// standby runs one more process of the program, which never leads and no balancer knows, and returns where its probes are.
func standby(t *testing.T, kubeconfig, tlsDirectory string) string {
	t.Helper()
	cp := shared.ControlPlane()
	var addresses []string
	for range 2 {
		port, err := cp.FreePort()
		require.NoError(t, err)
		addresses = append(addresses, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	process, err := cp.StartProcess(t.Context(), controlplane.Program{
		Name: "standby-" + strings.ToLower(filepath.Base(t.Name())), Path: shared.Executable(),
		Env: []string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + shared.Namespace()},
		Args: []string{
			"--leader-elect", "--leader-election-namespace=default", "--metrics-bind-address=0", "--shutdown-grace-period=0s",
			"--health-probe-bind-address=" + addresses[0], "--webhook-bind-address=" + addresses[1],
			"--webhook-tls-directory=" + tlsDirectory,
		},
	})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	return "http://" + addresses[0]
}

func get(c *assert.CollectT, url string) (int, string) {
	response, err := http.Get(url)
	if !assert.NoError(c, err) {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	assert.NoError(c, err)
	return response.StatusCode, string(body)
}
