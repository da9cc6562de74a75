package keyring

import (
	"context"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// SetClock makes a Keyring that has not started go by another clock.
func (k *Keyring) SetClock(now func() time.Time) { k.now = now }

// RateLimiter is what holds up the requests of a Keyring.
func (k *Keyring) RateLimiter() flowcontrol.RateLimiter { return k.secrets.rest.GetRateLimiter() }

// Ensure is one attempt to get a key.
func (k *Keyring) Ensure(ctx context.Context) error { return k.ensure(ctx) }
