package controlplane

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// admissionConfiguration makes the API server show a client certificate to mutating webhooks. There is no flag for that.
const admissionConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: MutatingAdmissionWebhook
    configuration:
      apiVersion: apiserver.config.k8s.io/v1
      kind: WebhookAdmissionConfiguration
      kubeConfigFile: %s
`

// webhookClientArgs writes the certificate of the option WebhookClient, and returns the flags of the API server for it.
func (cp *ControlPlane) webhookClientArgs() ([]string, error) {
	name := cp.options.WebhookClient
	if name == "" {
		return nil, nil
	}
	pair, err := cp.authority.client(Identity{User: name})
	if err != nil {
		return nil, err
	}
	// The users of this kubeconfig are named by the hosts of webhooks.
	kubeconfig, err := clientcmd.Write(api.Config{AuthInfos: map[string]*api.AuthInfo{
		"*": {ClientCertificateData: pair.certificate, ClientKeyData: pair.key},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig for webhooks: %w", err)
	}
	file, users := cp.layout.file("admission.yaml"), cp.layout.file("webhooks.kubeconfig")
	if err := os.WriteFile(users, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("write the kubeconfig for webhooks: %w", err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, admissionConfiguration, users), 0o600); err != nil {
		return nil, fmt.Errorf("write the admission configuration: %w", err)
	}
	return []string{"--admission-control-config-file=" + file}, nil
}

// CAFile is the path of [ControlPlane.CA].
func (cp *ControlPlane) CAFile() string { return cp.layout.file("ca.crt") }
