package alert

// waiting has the alerts that wait, by namespace. The namespaces take turns: many alerts of one delay those of the others by little.
type waiting struct {
	alerts map[string][]Reload
	// turns has the namespaces with alerts, the next one first.
	turns []string
	count int
}

func (w *waiting) in(namespace string) int { return len(w.alerts[namespace]) }

func (w *waiting) add(r Reload) {
	if w.in(r.Namespace) == 0 {
		w.turns = append(w.turns, r.Namespace)
	}
	w.alerts[r.Namespace] = append(w.alerts[r.Namespace], r)
	w.count++
}

// take returns the oldest alert of the next namespace. There must be one.
func (w *waiting) take() Reload {
	namespace := w.turns[0]
	w.turns = w.turns[1:]
	all := w.alerts[namespace]
	r := all[0]
	all[0] = Reload{} // a slice keeps the memory of what was taken
	if all = all[1:]; len(all) == 0 {
		delete(w.alerts, namespace)
	} else {
		w.alerts[namespace] = all
		w.turns = append(w.turns, namespace)
	}
	w.count--
	return r
}
