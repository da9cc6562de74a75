package controlplane

import (
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
// tokens, it has exactly the rights that the manifests bind to the account.
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

// Config is the configuration of a client that the API server takes for id, by a certificate minted
// for it. There is no client-side rate limit; a test of one sets QPS. Every call returns a copy that
// the caller may change, for example its Host to reach the API server through a [Proxy].
func (cp *ControlPlane) Config(id Identity) (*rest.Config, error) {
	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	key := id.User + "\n" + strings.Join(id.Groups, "\n")
	pair, known := cp.minted[key]
	if !known {
		var err error
		if pair, err = cp.authority.client(id); err != nil {
			return nil, fmt.Errorf("mint a certificate for %s: %w", id.User, err)
		}
		cp.minted[key] = pair
	}
	return &rest.Config{
		Host: "https://" + cp.Address(),
		QPS:  -1,
		// A test of admission warnings sets a handler; the default writes them to standard error.
		WarningHandler: rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   cp.authority.pem,
			CertData: pair.certificate,
			KeyData:  pair.key,
		},
	}, nil
}

// WriteKubeconfig writes a kubeconfig for id to path, readable by its owner only.
func (cp *ControlPlane) WriteKubeconfig(path string, id Identity) error {
	config, err := cp.Config(id)
	if err != nil {
		return err
	}
	return WriteKubeconfig(path, config)
}

// WriteKubeconfig writes the kubeconfig of a configuration with in-line certificates,
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
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
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
