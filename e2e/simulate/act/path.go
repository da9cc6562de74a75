package act

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func collectionPath(r world.Resource, namespace string) string {
	path := "/api/" + r.Version
	if r.Group != "" {
		path = "/apis/" + r.Group + "/" + r.Version
	}
	if r.Namespaced {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Plural
}

func objectPath(key world.Key) string {
	return collectionPath(key.Resource, key.Namespace) + "/" + url.PathEscape(key.Name) // a listed name may be any text
}

func query(manager string) string {
	if manager == "" {
		return ""
	}
	return "?" + url.Values{"fieldManager": {manager}}.Encode()
}

// parseKey reads e.g. "deployments/shop/cart" or "namespaces/shop", of one of the given resources.
func parseKey(text string, resources []world.Resource) (world.Key, error) {
	parts := strings.Split(text, "/")
	i := slices.IndexFunc(resources, func(r world.Resource) bool { return r.Plural == parts[0] })
	if i < 0 {
		return world.Key{}, fmt.Errorf("%q is not one of %s", text, plurals(resources))
	}
	r := resources[i]
	switch {
	case r.Namespaced && len(parts) == 3:
		return world.Key{Resource: r, Namespace: parts[1], Name: parts[2]}, nil
	case !r.Namespaced && len(parts) == 2:
		return world.Key{Resource: r, Name: parts[1]}, nil
	case r.Namespaced:
		return world.Key{}, fmt.Errorf("%q does not have the form %s/NAMESPACE/NAME", text, r.Plural)
	}
	return world.Key{}, fmt.Errorf("%q does not have the form %s/NAME", text, r.Plural)
}

func plurals(resources []world.Resource) string {
	names := make([]string, 0, len(resources))
	for _, r := range resources {
		names = append(names, r.Plural)
	}
	return strings.Join(names, ", ")
}
