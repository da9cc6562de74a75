package configstate

import (
	"context"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// readClass returns the state of a SecretProviderClass as the API server has it now. All statuses of the namespace are read
// for it, once for all who ask at the same time.
func (r *reader) readClass(ctx context.Context, by *lanes, k objectKey) (digest.State, error) {
	ring := r.ring()
	if ring.Empty() {
		return digest.State{}, digest.ErrNoKey
	}
	read, err := by.statuses.Do(ctx, k.namespace, func(ctx context.Context) (podStatuses, error) {
		return r.client.readPodStatuses(ctx, k.namespace, "")
	})
	if err != nil {
		return digest.State{}, err
	}
	return read.state(k, ring, r.client.sha1(k.ref.Kind)), nil
}

// classAt returns the state that a SecretProviderClass had at a resourceVersion; false when it had no content then.
func (r *reader) classAt(ctx context.Context, k objectKey, ring digest.Ring, version string) (digest.State, bool, error) {
	read, err := r.client.readPodStatuses(ctx, k.namespace, version)
	if err != nil {
		return digest.State{}, false, err
	}
	state := read.state(k, ring, r.client.sha1(k.ref.Kind))
	return state, !state.Absent, nil
}
