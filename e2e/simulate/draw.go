package simulate

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// DrawOptions say which histories are drawn.
type DrawOptions struct {
	// Steps of each history.
	Steps int
	// Faults means that faults are among the steps.
	Faults bool
	// Flags are those of the installation; empty draws some.
	Flags []string
	// BuiltinKinds leaves out the workload of a custom kind, which only some API servers serve.
	BuiltinKinds bool
	// Graph gives every history custom resources; without it, only some have any.
	Graph bool
	// Restarts gives every history a Rollout that asks for restarts without a new template; without it, only some have one.
	Restarts bool
	// Theme gives every history acts of the theme of this name; empty draws one for some.
	Theme string
	// Situation ends every history with the situation of this name; empty draws one for some.
	Situation string
}

// Draw makes the history of a seed.
func Draw(seed uint64, o DrawOptions) history.History {
	r := rand.New(rand.NewPCG(seed, 0))
	h := history.History{Form: history.Form, Seed: seed, Setup: setup(r, o)}
	h.Setup.Flags = slices.Concat(
		h.Setup.Flags, electionFlags(seed), kindFlags(seed), prefixFlags(seed), createFlags(seed), furtherFlags(seed))
	chosen := o.theme(seed)
	chosen.install(seed, &h.Setup)
	if len(o.Flags) > 0 {
		h.Setup.Flags = o.Flags
	}
	if slices.Contains(h.Setup.Flags, directFlag) { // no write passes where nothing answers for the webhook
		h.Setup.FailurePolicy = ""
	}
	h.Setup.Flags = o.withRollouts(h.Setup.Flags)
	h.Setup.Graph = o.hasGraph(seed)
	if !knowsGraph(h.Setup) {
		h.Setup.Flags = append(slices.Clone(h.Setup.Flags), configMapFlag)
	}
	c := Catalogue()
	weights := swarm(r, c, h.Setup)
	for _, name := range pointless(h.Setup, o) {
		weights[name] = 0
	}
	for _, slow := range act.Slow() {
		weights[slow] = min(weights[slow], slowWeight(seed))
	}
	h.Steps = history.Draw(r, c, history.DrawOptions{
		Steps: o.Steps, Faults: o.Faults, SSA: h.Setup.TrackFields, Graph: h.Setup.Graph, Weights: weights, Pace: pace(r),
	})
	h.Steps = takenDefinitions(seed, c, h.Setup.Flags, changedFlags(seed, c, stoppedLists(seed, c, h.Steps)))
	random := h.Steps
	switch {
	case o.Situation != "":
		stage(&h, drawSituation(r, o.Situation, h.Setup.Graph))
	case o.Faults && r.IntN(finaleOf) == 0:
		finale(r, c, &h)
	case o.Faults:
		stageStripped(seed, &h)
		stageBeside(seed, &h)
		stageBehind(seed, &h)
		stageTaken(seed, &h)
	}
	h.Setup.Flags = o.withRollouts(h.Setup.Flags) // a situation may bring a scope of its own
	n := unstaged(random, h.Steps)
	drawn := o.replace(seed, c, chosen, h.Setup, h.Steps[:n])
	h.Steps = slices.Concat(dryRuns(seed, drawn), h.Steps[n:])
	chosen.join(seed, &h.Setup)
	h.Steps = onServed(onReplicas(h.Steps, h.Setup.All()), h)
	return h
}

// withRollouts has the program look after Rollouts where every history has one.
func (o DrawOptions) withRollouts(flags []string) []string {
	if !o.Restarts || slices.Contains(flags, customKind) {
		return flags
	}
	return append(slices.Clone(flags), customKind)
}

// replace replaces some random steps by acts without a weight.
func (o DrawOptions) replace(seed uint64, c history.Catalogue, chosen theme, s history.Setup, steps []history.Step) []history.Step {
	steps = updateStrategies(seed, c, podReferences(seed, c, steps))
	if o.Restarts {
		return onRollout(seed, c, chosen.replace(seed, s, c, steps))
	}
	return chosen.replace(seed, s, c, rolloutRestarts(seed, c, steps))
}

// onReplicas has faults of single replicas meet one that there is: they are drawn without a look at the installation.
func onReplicas(steps []history.Step, replicas int) []history.Step {
	steps = slices.Clone(steps)
	for i := range steps {
		if n, err := strconv.Atoi(strings.TrimPrefix(steps[i].On, replicaPrefix)); err == nil && isProgram(steps[i].On) {
			steps[i].On = replicaName(n % replicas)
		}
	}
	return steps
}

// electionFlags draws how often leases are renewed: by default, or more seldom, as they cost more than all else that happens while
// users do nothing. It shifts no other choice of the seed.
func electionFlags(seed uint64) []string {
	if rand.New(rand.NewPCG(seed, 6)).IntN(4) == 0 {
		return nil
	}
	return []string{"--leader-election-retry-period=4s"}
}

// kindFlags draws which kinds of workloads the flags name besides the configuration, or take away; mostly none. It shifts no other choice
// of the seed.
func kindFlags(seed uint64) []string {
	sets := [][]string{
		{argoFlag},
		{argoFlag + "=True"},
		{argoFlag + "=1"},
		{argoFlag + "=yes"},
		{argoFlag, argoFlag + "=false"},
		{ignoredFlag + "=jobs"},
		{ignoredFlag + "=cronjobs"},
		{ignoredFlag + "=Jobs,CronJobs"},
		{ignoredFlag + "=jobs", ignoredFlag + "=cronjobs", argoFlag},
	}
	r := rand.New(rand.NewPCG(seed, 8))
	if r.IntN(5) > 0 {
		return nil
	}
	return sets[r.IntN(len(sets))]
}

// prefixFlags draws another prefix of annotations and labels for some histories. It is as long as the default one, since some acts count
// the bytes of annotations. It shifts no other choice of the seed.
func prefixFlags(seed uint64) []string {
	return [][]string{{prefixFlag + "restarts.team-a.example/"}, {prefixFlag + "restarts.team-a.example"}, 15: nil}[rand.New(rand.NewPCG(seed, 9)).IntN(16)]
}

// createFlags draws whether creations restart the workloads with annotations of Reloader. It shifts no other choice of the seed.
func createFlags(seed uint64) []string {
	if rand.New(rand.NewPCG(seed, 10)).IntN(4) > 0 {
		return nil
	}
	return []string{createFlag}
}

// furtherFlags draws flags about what is looked at and what triggers; in most histories none. It shifts no other choice of the seed.
func furtherFlags(seed uint64) []string {
	sets := [][]string{
		{directFlag},
		{directFlag},
		{directFlag, deleteFlag},
		{autoFlag},
		{autoFlag},
		{autoFlag, deleteFlag},
		{deleteFlag},
		{deleteFlag, untrackedFlag + "=secrets"},
		{secretsFlag + "=false"},
		{secretsFlag + "=false", autoFlag},
		{untrackedFlag + "=configmaps"},
		{untrackedFlag + "=configmaps,secrets", autoFlag},
		{labelledFlag + "=note!=b"},
		{labelledFlag + "=note!=b", autoFlag},
		{"--namespaces-to-ignore=bank", deleteFlag},
		{"--object-selector=note!=b", autoFlag},
	}
	r := rand.New(rand.NewPCG(seed, 13))
	if r.IntN(3) > 0 {
		return nil
	}
	return sets[r.IntN(len(sets))]
}

// unstaged is how many of the first steps of a history are still those that were drawn at random, or take the places of faults: neither a
// finale nor a situation.
func unstaged(random, steps []history.Step) int {
	n := 0
	for n < min(len(random), len(steps)) && random[n].Wait == steps[n].Wait {
		_, fault := findFault(random[n].Do)
		if same := random[n].Do == steps[n].Do && random[n].On == steps[n].On; !same && !fault {
			break
		}
		n++
	}
	return n
}

// podReferences replaces some steps by edits of what pod specs reference; in most histories none. It shifts no other choice of the seed.
func podReferences(seed uint64, c history.Catalogue, steps []history.Step) []history.Step {
	return replaceSome(rand.New(rand.NewPCG(seed, 12)), oneInThree, c, steps, act.EditPodReferences)
}

// updateStrategies replaces some steps by edits of the strategies by which pods wait for a user, and by deletions of such pods; in most
// histories none. It shifts no other choice of the seed.
func updateStrategies(seed uint64, c history.Catalogue, steps []history.Step) []history.Step {
	return replaceSome(rand.New(rand.NewPCG(seed, 14)), oneInThree, c, steps, act.SetUpdateStrategy, act.SetUpdateStrategy, act.DeletePod)
}

// rolloutRestarts replaces some steps after the creation of a Rollout by ones about its restarts without a new template; in most histories
// none. It shifts no other choice of the seed.
func rolloutRestarts(seed uint64, c history.Catalogue, steps []history.Step) []history.Step {
	made := slices.IndexFunc(steps, func(s history.Step) bool { return s.Do == act.CreateRollout }) + 1
	if made == 0 {
		return steps
	}
	r := rand.New(rand.NewPCG(seed, 15))
	return slices.Concat(steps[:made], replaceSome(r, oneInThree, c, steps[made:], act.AskRestart, act.AskRestart, act.RestartRollout))
}

// onRollout puts the creation of a Rollout that asks for restarts before the steps, has half of those about other workloads be about it
// where they can, and replaces some by acts about its restarts.
func onRollout(seed uint64, c history.Catalogue, steps []history.Step) []history.Step {
	r := rand.New(rand.NewPCG(seed, 16))
	steps = slices.Clone(steps)
	for i := range steps {
		moved := steps[i]
		moved.On = act.Rollout
		if e, ok := c.Find(moved.Do); ok && !e.Fault && r.IntN(2) == 0 && e.Check(moved) == nil {
			steps[i] = moved
		}
	}
	return slices.Concat([]history.Step{
		{Do: act.CreateRollout, On: act.Rollout}, {Do: act.AskRestart, On: act.Rollout, With: map[string]string{"to": "restart"}},
	}, replaceSome(r, 1, c, steps, act.AskRestart, act.AskRestart, act.RestartRollout))
}

// oneInThree is how many histories there are for each in which some steps are replaced.
const oneInThree = 3

// replaceSome replaces some steps by acts of some names, in one history of some. Faults stay, and so does what creates and deletes config
// objects: a finale goes by that.
func replaceSome(r *rand.Rand, of int, c history.Catalogue, steps []history.Step, names ...string) []history.Step {
	if r.IntN(of) > 0 {
		return steps
	}
	return replaceEach(r, replacedOf, c, steps, names...)
}

// replacedOf is how many steps there are for each that is replaced.
const replacedOf = 6

// replaceEach replaces one step of some.
func replaceEach(r *rand.Rand, of int, c history.Catalogue, steps []history.Step, names ...string) []history.Step {
	steps = slices.Clone(steps)
	for i, old := range steps {
		_, fault := findFault(old.Do)
		if fault || old.Do == act.CreateConfig || old.Do == act.DeleteConfig || r.IntN(of) > 0 {
			continue
		}
		name := names[0]
		if len(names) > 1 {
			name = names[r.IntN(len(names))]
		}
		drawn, _ := c.Find(name)
		steps[i] = drawn.Draw(r, steps[:i])
		steps[i].Do, steps[i].Wait = name, old.Wait
	}
	return steps
}

// dryRuns draws which steps of a history are dry runs, or have one before the write; in most histories none. It shifts no other choice
// of the seed.
func dryRuns(seed uint64, steps []history.Step) []history.Step {
	r := rand.New(rand.NewPCG(seed, 11))
	if r.IntN(3) > 0 {
		return steps
	}
	return act.DryRuns(r, steps)
}

// graphOf is how many histories there are for each that has custom resources.
const graphOf = 6

// hasGraph draws whether the history of a seed has custom resources. It shifts no other choice of the seed.
func (o DrawOptions) hasGraph(seed uint64) bool {
	if o.BuiltinKinds {
		return false
	}
	if o.Situation != "" {
		return slices.ContainsFunc(situationKinds(), func(k situationKind) bool { return k.name == o.Situation && k.graph })
	}
	return o.Graph || rand.New(rand.NewPCG(seed, 4)).IntN(graphOf) == 0
}

// slowOf is how many histories there are for each that may have acts which make it slow: a list of thousands of names costs more
// than all other steps of a history.
const slowOf = 4

// slowWeight is the most that such an act weighs.
func slowWeight(seed uint64) int {
	if seed%slowOf != 0 {
		return 0
	}
	return unit
}

// pointless returns the acts that would be about nothing in this installation.
func pointless(s history.Setup, o DrawOptions) []string {
	var acts []string
	if o.BuiltinKinds { // tours have them in the comparison with a real control plane
		acts = append(acts, act.JobActs()...)
	}
	if o.BuiltinKinds || !slices.ContainsFunc(s.Flags, namesRollouts) {
		acts = append(acts, act.CreateRollout)
	}
	if s.Graph || !slices.Contains(s.Flags, configMapFlag) { // these would replace the configuration of the graph
		acts = append(acts, act.WriteConfiguration, act.DeleteConfiguration)
	}
	return acts
}

// setup draws an installation: mostly an ordinary one.
func setup(r *rand.Rand, o DrawOptions) history.Setup {
	s := history.Setup{Replicas: replicas(r, o), TrackFields: r.IntN(10) == 0, NoStreamingLists: r.IntN(6) == 0}
	s.OtherWebhooks = []string{"", "", "before", "after", "around", "checksum"}[r.IntN(6)]
	s.Flags = installationFlags(r)
	if o.Faults && r.IntN(8) == 0 {
		s.FailurePolicy = "Fail"
	}
	return s
}

// installationFlags draws the flags of an installation; often none.
func installationFlags(r *rand.Rand) []string {
	sets := [16][]string{
		{"--settle=0s", "--refractory=0s"},
		{"--settle=3s", "--settle-max=8s", "--refractory=20s"},
		{"--missing-required=reload"},
		{"--hash=revision"},
		{"--namespace-selector=team=shop"},
		{"--workers=1"},
		{"--workers=1"},
		{customKind},
		{configMapFlag},
		{configMapFlag, customKind},
		{strategyFlag + "env-vars"},
		{strategyFlag + "env-vars"},
		{strategyFlag + "annotations"},
		{rerunFlag},
		nil,
		nil,
	}
	return sets[r.IntN(len(sets))]
}

// replicas is how many there are: without faults, more than one make little difference.
func replicas(r *rand.Rand, o DrawOptions) int {
	if o.Faults {
		return []int{1, 2, 2, 3}[r.IntN(4)]
	}
	return []int{1, 1, 1, 2}[r.IntN(4)]
}
