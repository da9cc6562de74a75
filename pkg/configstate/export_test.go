package configstate

// Joined counts the reads of objects for the loop that were answered by a request that another caller had asked for.
func (s *Store) Joined() uint64 { return s.reader.queues.loop.objects.Joined() }
