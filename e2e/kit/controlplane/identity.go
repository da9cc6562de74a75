package controlplane

import (
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Identity is the user that a client is for the API server, in RBAC and in the audit log.
type Identity struct {
	User   string
	Groups []string
}

// Admin may do everything.
func Admin() Identity {
	return Identity{User: "admin", Groups: []string{"system:masters"}}
}

// ServiceAccount is the identity of a pod's service account: with the user and groups of its
// tokens, it has exactly the permissions that the manifests bind to the account.
func ServiceAccount(namespace, name string) Identity {
	return Identity{
		User:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// Admin is the configuration of a client that may do everything.
func (cp *ControlPlane) Admin() *rest.Config {
	return rest.CopyConfig(cp.admin)
}

// key is what identities differ by.
func (id Identity) key() string {
	return id.User + "\n" + strings.Join(id.Groups, "\n")
}

// Config is the configuration of a client that the API server takes for id, by its token or by a certificate minted
// for it. There is no client-side rate limit; a test of one sets QPS. Every call returns a copy that
// the caller may change, for example its Host to reach the API server through a [Proxy].
func (cp *ControlPlane) Config(id Identity) (*rest.Config, error) {
	config := &rest.Config{
		Host: "https://" + cp.Address(),
		QPS:  -1,
		// A test of admission warnings sets a handler; the default writes them to standard error.
		WarningHandler:  rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.authority.pem},
		BearerToken:     cp.tokens[id.key()],
	}
	if config.BearerToken != "" {
		return config, nil
	}
	pair, err := cp.mint(id)
	if err != nil {
		return nil, fmt.Errorf("mint a certificate for %s: %w", id.User, err)
	}
	config.CertData, config.KeyData = pair.certificate, pair.key
	return config, nil
}

// mint makes one certificate for an identity.
func (cp *ControlPlane) mint(id Identity) (keyPair, error) {
	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	if pair, known := cp.minted[id.key()]; known {
		return pair, nil
	}
	pair, err := cp.authority.client(id)
	if err == nil {
		cp.minted[id.key()] = pair
	}
	return pair, err
}

// writeTokens gives some identities a token. The API server looks a token up in a map; it verifies a client certificate with
// each request, which is a twentieth of its processor time.
func (cp *ControlPlane) writeTokens(ids ...Identity) error {
	var file strings.Builder
	lines := csv.NewWriter(&file)
	cp.tokens = map[string]string{}
	for _, id := range ids {
		token := rand.Text()
		cp.tokens[id.key()] = token
		_ = lines.Write([]string{token, id.User, id.User, strings.Join(id.Groups, ",")}) // Flush keeps the error
	}
	lines.Flush()
	if err := errors.Join(lines.Error(), os.WriteFile(cp.layout.file("tokens.csv"), []byte(file.String()), 0o600)); err != nil {
		return fmt.Errorf("write the tokens: %w", err)
	}
	return nil
}

// WriteKubeconfig writes a kubeconfig for id to path, readable by its owner only.
func (cp *ControlPlane) WriteKubeconfig(path string, id Identity) error {
	config, err := cp.Config(id)
	if err != nil {
		return err
	}
	return WriteKubeconfig(path, config)
}

// WriteKubeconfig writes the kubeconfig of a configuration with in-line certificates, or a token,
// readable by its owner only.
func WriteKubeconfig(path string, config *rest.Config) error {
	const name = "controlplane"
	content, err := clientcmd.Write(api.Config{
		CurrentContext: name,
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name, Namespace: "default"}},
		Clusters: map[string]*api.Cluster{name: {
			Server: config.Host, CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*api.AuthInfo{name: {
			Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
	})
	if err != nil {
		return fmt.Errorf("encode a kubeconfig: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}
