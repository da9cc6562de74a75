package act

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// act is one kind of thing that users do.
type act struct {
	name              string
	weight, weightSSA int
	weightGraph       int
	on                target
	with              []parameter
	// words is a sentence with placeholders: {on}, {NAME} for a parameter and {NAME|q} for a quoted one. A part in
	// brackets is left out if one of its parameters has no value.
	words string
	// agree checks parameters against each other and the target; nil if there is nothing to check.
	agree func(s step) error
	do    func(ctx context.Context, c client, s step) error
}

// step is a history.Step that was checked.
type step struct {
	key  world.Key
	with map[string]string
}

// all has every act. It is never changed.
var all = withDryRuns(slices.Concat(
	configActs(), configLifeActs(), burstActs(), releaseActs(), templateActs(), metadataActs(), manifestActs(), helmActs(), undoActs(),
	listActs(), excludeActs(), managedActs(), copyActs(), verifiedActs(), namespaceActs(), keyActs(), rolloutActs(), configurationActs(), bulkActs(),
	dialectActs(), jobActs(), graphActs(), podReferenceActs(), updateStrategyActs(), rolloutRestartActs(), deletionActs(),
	kustomizeActs(), selfHealActs(), reloaderActs(),
))

// Catalogue has all acts. Those that need server-side apply have only a WeightSSA, those on custom resources only a WeightGraph.
func Catalogue() history.Catalogue {
	catalogue := make(history.Catalogue, 0, len(all))
	for _, a := range all {
		catalogue = append(catalogue, history.Entry{
			Name: a.name, Weight: a.weight, WeightSSA: a.weightSSA, WeightGraph: a.weightGraph,
			Draw: a.draw, Words: a.sentence,
			Check: func(s history.Step) error { _, err := a.check(s); return err },
		})
	}
	return catalogue
}

// Do carries out one step, pauses included. It returns a RejectedError for a rejected write, and an error that wraps
// ErrSkipped where there was nothing to act on.
func Do(ctx context.Context, api API, s history.Step) error {
	i := slices.IndexFunc(all, func(a act) bool { return a.name == s.Do })
	if i < 0 {
		return fmt.Errorf("do: %q is no act of a user", s.Do)
	}
	checked, err := all[i].check(s)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Do, err)
	}
	if err := all[i].do(ctx, client{api}, checked); err != nil {
		return fmt.Errorf("%s on %s: %w", s.Do, s.On, err)
	}
	return nil
}

func (a act) draw(r *rand.Rand, before []history.Step) history.Step {
	s := history.Step{Do: a.name, On: a.on.draw(r, before)}
	key, err := a.on.parse(s.On)
	if err != nil {
		panic(fmt.Sprintf("act %s draws %q: %v", a.name, s.On, err))
	}
	for _, p := range a.with {
		if value := p.draw(r, key); value != omit {
			if s.With == nil {
				s.With = map[string]string{}
			}
			s.With[p.name] = value
		}
	}
	return s
}

// check returns the step in a form that can be carried out. Its error names the field that is wrong.
func (a act) check(s history.Step) (step, error) {
	key, err := a.on.parse(s.On)
	if err != nil {
		return step{}, fmt.Errorf("on: %w", err)
	}
	checked := step{key, make(map[string]string, len(a.with))}
	maps.Copy(checked.with, s.With)
	for _, p := range a.with {
		value, there := s.With[p.name]
		switch {
		case !there && p.required:
			return step{}, fmt.Errorf("with.%s: missing", p.name)
		case !there && p.fallback != omit:
			checked.with[p.name] = p.fallback
		case there:
			if err := p.check(value); err != nil {
				return step{}, fmt.Errorf("with.%s: %w", p.name, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.With)) {
		if !slices.ContainsFunc(a.with, func(p parameter) bool { return p.name == name }) {
			return step{}, fmt.Errorf("with.%s: unknown parameter of %s", name, a.name)
		}
	}
	if a.agree != nil {
		return checked, a.agree(checked)
	}
	return checked, nil
}

func (a act) sentence(s history.Step) string {
	words, replacements := a.words, []string{"{on}", s.On, "[", "", "]", ""}
	for _, p := range a.with {
		value, there := s.With[p.name]
		if !there {
			value = p.fallback
		}
		if value == omit {
			words = withoutPart(words, "{"+p.name)
		}
		replacements = append(replacements, "{"+p.name+"}", value, "{"+p.name+"|q}", strconv.Quote(value))
	}
	return strings.NewReplacer(replacements...).Replace(words)
}

// withoutPart removes the part in brackets that has a placeholder.
func withoutPart(words, placeholder string) string {
	i := strings.Index(words, placeholder)
	if i < 0 {
		return words
	}
	from, to := strings.LastIndex(words[:i], "["), strings.Index(words[i:], "]")
	if from < 0 || to < 0 {
		return words
	}
	return words[:from] + words[i+to+1:]
}

func (s step) text(name string) string { return s.with[name] }

// has reports whether an optional parameter without a fallback was given.
func (s step) has(name string) bool { _, ok := s.with[name]; return ok }

// The parameters were checked: their errors cannot occur.

func (s step) pause(name string) time.Duration {
	d, _ := time.ParseDuration(s.with[name])
	return d
}

func (s step) number(name string) int {
	n, _ := strconv.Atoi(s.with[name])
	return n
}

func (s step) flag(name string) bool { return s.with[name] == "true" }
