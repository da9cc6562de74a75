package fairlimit

// Tenants returns how many tenants are kept.
func (l *Limit) Tenants() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tenants)
}
