package configstate

import "github.com/pod-reloader/pod-reloader/pkg/reference"

// Count is a number for each kind.
type Count struct {
	ConfigMaps, Secrets, SecretProviderClasses uint64
}

// Stats are counts since the start, to be exported as metrics.
type Stats struct {
	// MetadataReads and PayloadReads are the GET requests that were sent.
	MetadataReads, PayloadReads Count
	// Joined counts reads that were answered by a request that another caller had asked for.
	Joined uint64
	// Hits counts the objects whose Entries came out of the digest cache.
	Hits uint64
	// Objects are those in the metadata cache.
	Objects Count
}

// Stats returns the counts of now.
func (s *Store) Stats() Stats {
	stats := Stats{
		MetadataReads: s.client.metadata.values(),
		PayloadReads:  s.client.payload.values(),
		Joined:        s.admitted.joined() + s.live.joined() + s.fills.joined(),
		Hits:          s.hits.Load(),
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for space, objects := range s.objects {
		n := uint64(len(objects))
		switch space.kind {
		case reference.Secret:
			stats.Objects.Secrets += n
		case reference.SecretProviderClass:
			stats.Objects.SecretProviderClasses += n
		default:
			stats.Objects.ConfigMaps += n
		}
	}
	return stats
}
