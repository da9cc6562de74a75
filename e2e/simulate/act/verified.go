package act

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// dummy is the annotation on a workload by which a client asks for a verified reload.
const dummy = Prefix + "config-hash"

func verifiedActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	attempts := number("attempts", 1, 20, "1", "3", "5")
	bound := oneOf("bound", "false", "true")
	return []act{
		{
			name: "verified-reload", weight: 6, on: anyWorkload, with: []parameter{attempts, bound},
			words: "a client asks for a verified reload of {on}, at most {attempts} times (bound to the generation: {bound})",
			do: func(ctx context.Context, c client, s step) error {
				return c.verifiedReload(ctx, s, c.mergeDummy)
			},
		},
		{
			name: "ssa-verified-reload", weightSSA: 4, on: onWorkload(builtinResources()...), with: []parameter{attempts, bound},
			words: "a client asks by server-side apply for a verified reload of {on}, at most {attempts} times (bound: {bound})",
			do: func(ctx context.Context, c client, s step) error {
				return c.verifiedReload(ctx, s, c.applyDummy)
			},
		},
		{
			name: "verified-reload-wrong", weight: 3, on: anyWorkload, with: []parameter{required("digest", isDigest, drawDigest)},
			// The expected answer is a rejection with status 409; Do returns it like any other.
			words: "a client asks for a verified reload of {on} with the wrong digest {digest}",
			do: func(ctx context.Context, c client, s step) error {
				return c.mergeDummy(ctx, s.key, s.text("digest"))
			},
		},
	}
}

func (c client) mergeDummy(ctx context.Context, key world.Key, digest string) error {
	return c.merge(ctx, key, "client", metadata("annotations", world.Object{dummy: digest}))
}

func (c client) applyDummy(ctx context.Context, key world.Key, digest string) error {
	return c.applyOnServer(ctx, key, "client", true, world.Object{
		"apiVersion": key.Resource.APIVersion(), "kind": key.Resource.Kind,
		"metadata": world.Object{
			"name": key.Name, "namespace": key.Namespace, "annotations": world.Object{dummy: digest},
		},
	})
}

// verifiedReload computes the revision digest and writes it, again after a conflict: the config moved on meanwhile.
func (c client) verifiedReload(
	ctx context.Context, s step, write func(context.Context, world.Key, string) error,
) error {
	for try := 1; ; try++ {
		workload, err := c.get(ctx, s.key)
		if err != nil {
			return err
		}
		digest, err := c.revisionDigest(ctx, s.key.Namespace, world.Annotations(workload))
		if err != nil {
			return err
		}
		if s.flag("bound") {
			digest = fmt.Sprintf("%s@%v", digest, world.Section(workload, "metadata")["generation"])
		}
		err = write(ctx, s.key, digest)
		if !rejectedFor(err, "Conflict") || try >= s.number("attempts") {
			return err
		}
		if err := pause(ctx, conflictPause); err != nil {
			return err
		}
	}
}

// revisionDigest is the digest that SAP's pod-reloader publishes: SHA-256 over a line for each listed name as written,
// ConfigMaps first. An object that does not exist has a line without a revision.
func (c client) revisionDigest(ctx context.Context, namespace string, annotations world.Object) (string, error) {
	var lines strings.Builder
	listed := 0
	for _, list := range []struct {
		resource         world.Resource
		annotation, kind string
	}{{world.ConfigMaps, listOfConfigMaps, "configmap"}, {world.Secrets, listOfSecrets, "secret"}} {
		names, _ := annotations[list.annotation].(string)
		for _, name := range world.Items(names) {
			revision, err := c.revision(ctx, world.Key{Resource: list.resource, Namespace: namespace, Name: name})
			if err != nil {
				return "", fmt.Errorf("read %s: %w", name, err)
			}
			fmt.Fprintf(&lines, "%s/%s/%s/%s\n", list.kind, namespace, name, revision)
			listed++
		}
	}
	if listed == 0 {
		return "", skip("the workload lists nothing")
	}
	sum := sha256.Sum256([]byte(lines.String()))
	return hex.EncodeToString(sum[:]), nil
}

// revision returns UID.RESOURCEVERSION, or nothing for an object that does not exist.
func (c client) revision(ctx context.Context, key world.Key) (string, error) {
	object, err := c.get(ctx, key)
	if rejectedFor(err, "NotFound") {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	meta := world.Section(object, "metadata")
	return fmt.Sprintf("%v.%v", meta["uid"], meta["resourceVersion"]), nil
}
