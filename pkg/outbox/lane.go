package outbox

// lane has the items of one namespace that are due.
type lane struct {
	// first are those that were not tried yet, again those that have failed.
	first, again []*item
	flying       int
	// queued says that the lane waits for its turn.
	queued bool
	taken  int
}

// retryEvery is how often a retry goes before a first attempt, so that neither starves the other.
const retryEvery = 4

func (l *lane) put(i *item) {
	if i.attempts == 0 {
		l.first = append(l.first, i)
		return
	}
	l.again = append(l.again, i)
}

// take returns the next item; false if there is none.
func (l *lane) take() (*item, bool) {
	l.taken++
	from := &l.first
	if len(l.first) == 0 || len(l.again) > 0 && l.taken%retryEvery == 0 {
		from = &l.again
	}
	if len(*from) == 0 {
		return nil, false
	}
	i := (*from)[0]
	(*from)[0] = nil
	*from = (*from)[1:]
	return i, true
}

func (l *lane) empty() bool { return len(l.first)+len(l.again) == 0 }
