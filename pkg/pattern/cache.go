package pattern

import "sync"

// generationCost bounds each of the two generations of a Cache: some 4 MB of compiled expressions.
const generationCost = 100_000

// Cache compiles expressions and shares those that were compiled lately. The zero value is empty, nil caches nothing. It is
// safe for concurrent use.
type Cache struct {
	mu sync.Mutex
	// young has what was asked for since the last change of generations, old what was asked for in the one before.
	young, old map[string]*Pattern
	cost       int
}

// Compile is like the function of that name.
func (c *Cache) Compile(text string) (*Pattern, error) {
	if c == nil {
		return Compile(text)
	}
	if p := c.get(text); p != nil {
		return p, nil
	}
	p, err := Compile(text)
	if err != nil {
		return nil, err
	}
	return c.put(p), nil
}

func (c *Cache) get(text string) *Pattern {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.young[text]; p != nil {
		return p
	}
	if p := c.old[text]; p != nil {
		return c.putLocked(p)
	}
	return nil
}

// put keeps a pattern, or returns the one that another caller has put meanwhile.
func (c *Cache) put(p *Pattern) *Pattern {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.putLocked(p)
}

func (c *Cache) putLocked(p *Pattern) *Pattern {
	if known := c.young[p.text]; known != nil {
		return known
	}
	if c.young == nil || c.cost+p.cost > generationCost {
		c.young, c.old, c.cost = map[string]*Pattern{}, c.young, 0
	}
	c.young[p.text] = p
	c.cost += p.cost
	return p
}
