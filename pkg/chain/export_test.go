package chain

// Remembered is how many objects something is remembered of, for tests.
func (c *Chain) Remembered() int {
	c.answers.RLock()
	defer c.answers.RUnlock()
	return len(c.held) + len(c.tracked)
}
