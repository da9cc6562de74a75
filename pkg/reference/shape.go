package reference

import "github.com/pod-reloader/pod-reloader/pkg/skim"

// members are the parts of interest of an object.
type members map[string]*skim.Shape

func (m members) shape() *skim.Shape { return &skim.Shape{Members: m} }

// Shape returns the parts of a pod spec that FromPodSpec can see.
func Shape() *skim.Shape {
	list := func(of members) *skim.Shape { return &skim.Shape{Elements: of.shape()} }
	named := members{"name": nil}
	selector := members{"name": nil, "optional": nil}.shape()
	containers := list(members{
		"env":     list(members{"valueFrom": members{"configMapKeyRef": selector, "secretKeyRef": selector}.shape()}),
		"envFrom": list(members{"configMapRef": selector, "secretRef": selector}),
	})
	volume := members{
		"configMap": selector,
		"secret":    members{"secretName": nil, "optional": nil}.shape(),
		"projected": members{"sources": list(members{"configMap": selector, "secret": selector})}.shape(),
		"csi":       members{"volumeAttributes": members{classAttribute: nil}.shape(), "nodePublishSecretRef": named.shape()}.shape(),
		"azureFile": members{"secretName": nil}.shape(),
	}
	for _, driver := range credentialDrivers() {
		volume[driver] = members{"secretRef": named.shape()}.shape()
	}
	return members{
		"containers":          containers,
		"initContainers":      containers,
		"ephemeralContainers": containers,
		"imagePullSecrets":    list(named),
		"volumes":             list(volume),
	}.shape()
}
