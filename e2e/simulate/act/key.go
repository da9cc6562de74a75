package act

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func namespaceActs() []act {
	return []act{{
		name: "relabel-namespace", weight: 2, on: onNamespace(),
		with: []parameter{
			required("team", isLabel, pick("elsewhere", "other")), duration("pause", "0s", "100ms", "2s", "8s", "40s", "100s"),
		},
		words: "user labels {on} team={team} and back after {pause}",
		do: func(ctx context.Context, c client, s step) error {
			away := metadata("labels", world.Object{"team": s.text("team")})
			if err := c.merge(ctx, s.key, "kubectl-label", away); err != nil {
				return err
			}
			if err := pause(ctx, s.pause("pause")); err != nil {
				return err
			}
			return c.merge(ctx, s.key, "kubectl-label", metadata("labels", world.Object{"team": s.key.Name}))
		},
	}}
}

// keyActs are those on the Secret with the digest keys.
func keyActs() []act {
	seed := number("seed", 0, 1<<30, "1", "2", "3", "4", "5", "6", "7", "8", "9")
	return []act{
		{
			name: "rotate-key", weight: 2, on: onKeySecret(), with: []parameter{seed},
			words: "user adds a newer digest key (number {seed}) to {on}",
			do:    rotateKey,
		},
		{
			name: "lose-key", weight: 1, on: onKeySecret(), with: []parameter{seed},
			words: "user replaces all digest keys of {on} by a fresh one (number {seed})",
			do: func(ctx context.Context, c client, s step) error {
				return c.update(ctx, s.key, "kubectl-replace", func(secret world.Object) error {
					secret["data"] = world.Object{keyName(1): keyBytes(s.text("seed"))}
					return nil
				})
			},
		},
		{
			name: "delete-key-secret", weight: 1, on: onKeySecret(),
			words: "user deletes {on}",
			do:    func(ctx context.Context, c client, s step) error { return c.delete(ctx, s.key) },
		},
	}
}

// keyName is the data key of the n-th digest key: the last in byte order is the newest.
func keyName(n int) string { return fmt.Sprintf("%04d", n) }

// keyBytes are 32 bytes that a number determines, encoded.
func keyBytes(seed string) string {
	sum := sha256.Sum256([]byte("digest key " + seed))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func rotateKey(ctx context.Context, c client, s step) error {
	secret, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	newest := 0
	for _, name := range slices.Sorted(maps.Keys(world.Section(secret, "data"))) {
		if n, err := strconv.Atoi(name); err == nil {
			newest = max(newest, n)
		}
	}
	data := world.Object{keyName(newest + 1): keyBytes(s.text("seed"))}
	return c.merge(ctx, s.key, "kubectl-patch", world.Object{"data": data})
}
