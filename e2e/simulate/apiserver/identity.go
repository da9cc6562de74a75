package apiserver

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nextIdentity counts what needs an identity of its own.
func (s *store) nextIdentity() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uids++
	return s.uids
}

// uid returns a UID that depends on nothing but the count.
func uid(n int64) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n))
}

// suffixes are the characters of generated names, as in Kubernetes.
const (
	suffixes     = "bcdfghjklmnpqrstvwxz2456789"
	suffixLength = 5
)

// suffix returns the end of a generated name.
func suffix(n int64) string {
	// The multiplier spreads consecutive numbers (Knuth, The Art of Computer Programming, 6.4).
	mixed := uint64(n) * 0x9E3779B97F4A7C15
	out := make([]byte, suffixLength)
	for i := range out {
		out[i] = suffixes[mixed>>32%uint64(len(suffixes))]
		mixed = mixed*6364136223846793005 + 1442695040888963407
	}
	return string(out)
}

// wipe removes what only the system sets, before admission sees an object that is to be created.
func wipe(meta *metav1.ObjectMeta) {
	meta.UID = ""
	meta.SelfLink = "" //nolint:staticcheck // clients still send it
	meta.CreationTimestamp = metav1.Time{}
	meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds = nil, nil
}

// now returns the time in the precision of the API.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }
