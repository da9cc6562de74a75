package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// seenObject is a ConfigMap or a Secret as a client has seen it.
type seenObject struct {
	// Kind is "configmap" or "secret".
	Kind, Namespace, Name string
	// Version is "UID.resourceVersion", empty for an object that does not exist.
	Version string
}

// revision is the digest with which a client proves which state of the configuration it has seen, from the published recipe and without
// a key: it is what the author of a client would write, and shares nothing with the program. It is the SHA-256 over a line for each
// object: ConfigMaps first, in the order of the annotation, then Secrets.
func revision(objects ...seenObject) string {
	hash := sha256.New()
	for _, o := range objects {
		fmt.Fprintf(hash, "%s/%s/%s/%s\n", o.Kind, o.Namespace, o.Name, o.Version)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// parseSeen reads objects of which kubectl printed a line each, as kind/namespace/name/UID.resourceVersion.
func parseSeen(output string) ([]seenObject, error) {
	var objects []seenObject
	for line := range strings.Lines(output) {
		parts := strings.Split(strings.TrimSpace(line), "/")
		if len(parts) != 4 {
			return nil, fmt.Errorf("%q is not kind/namespace/name/version", line)
		}
		objects = append(objects, seenObject{strings.ToLower(parts[0]), parts[1], parts[2], parts[3]})
	}
	return objects, nil
}
