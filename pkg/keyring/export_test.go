package keyring

import "time"

// SetClock makes a Keyring that has not started go by another clock.
func (k *Keyring) SetClock(now func() time.Time) { k.now = now }
