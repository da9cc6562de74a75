package referent

import "fmt"

// Sizes are what counts against the bounds of each namespace, and how many reasons there are for that, for tests.
func (g *Graph) Sizes() string { return fmt.Sprint(g.usage.sizes, len(g.usage.uses)) }
