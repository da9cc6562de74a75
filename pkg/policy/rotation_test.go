package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/podstatus"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

var class = reference.Ref{Kind: reference.SecretProviderClass, Name: "vault"}

// pod is the status of one pod, with the version that the pod was started with.
type pod struct {
	podstatus.Status
	started int
}

// fleet is a workload whose pods mount a class, and what is recorded on it.
type fleet struct {
	t     *testing.T
	pods  []pod
	known Known
	// provider is the version in the store, written the last resourceVersion.
	provider, written, reloads int
	// old are the pods that a rollout replaces.
	old []string
}

func (f *fleet) next() string {
	f.written++
	return strconv.Itoa(f.written)
}

// mount starts a pod: the driver mounts what the store has.
func (f *fleet) mount() {
	f.next()
	f.pods = append(f.pods, pod{started: f.provider, Status: podstatus.Status{
		Name: fmt.Sprint("pod-", f.written), UID: fmt.Sprint("uid-", f.written), ResourceVersion: strconv.Itoa(f.written),
		Class: class.Name, Objects: map[string]string{"password": strconv.Itoa(f.provider)},
	}})
}

// rotate lets the driver look at one pod.
func (f *fleet) rotate(i int) {
	if version := strconv.Itoa(f.provider); f.pods[i].Objects["password"] != version {
		f.pods[i].Objects = map[string]string{"password": version}
		f.pods[i].Rotated, f.pods[i].ResourceVersion = true, f.next()
	}
}

func (f *fleet) remove(i int) { f.pods = slices.Delete(f.pods, i, i+1) }

func (f *fleet) input() Input {
	var statuses []podstatus.Status
	for _, p := range f.pods {
		statuses = append(statuses, p.Status)
	}
	state, _ := podstatus.State("ns", class.Name, statuses, digesttest.Ring(f.t, "12"))
	return Input{
		Namespace: "ns", Ring: digesttest.Ring(f.t, "12"), Known: f.known, Intent: intent(annotation.Trigger{}, class),
		Current: map[reference.Ref]digest.State{class: state},
	}
}

// look does what the loop does: it adopts, or stamps. It reports whether it stamped.
func (f *fleet) look() bool {
	f.t.Helper()
	in := f.input()
	a := Assess(in)
	if a.Verdict.Action == Reload {
		f.stamp()
		f.reloads++
		return true
	}
	require.Equal(f.t, Nothing, a.Verdict.Action)
	if len(a.Verdict.Adopt) > 0 {
		rec, err := a.Adopt(in, "")
		require.NoError(f.t, err)
		f.known = Known{Record: rec}
	}
	return false
}

// stamp records the state that new pods start with.
func (f *fleet) stamp() {
	rec, err := NewRecord(f.input(), "", false)
	require.NoError(f.t, err)
	f.known = Known{Record: rec}
}

func newFleet(t *testing.T, pods int) *fleet {
	t.Helper()
	f := &fleet{t: t, provider: 1, known: known(newest(t), items{class: record.Item{}})}
	for range pods {
		f.mount()
	}
	return f
}

func TestFirstPodsAreAdopted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	require.False(t, f.look(), "a workload is created without pods: its class is recorded as absent")
	assert.NotEmpty(t, f.known.Record.Items([]reference.Ref{class})[class].Entry)
	f.remove(0)
	f.remove(0)
	require.False(t, f.look(), "it was scaled to 0")
	f.provider = 2
	f.mount()
	require.False(t, f.look(), "its pods start with the new version")
	f.provider = 1
	f.rotate(0)
	require.True(t, f.look(), "the version that they started with was adopted")
}

// A class is recorded as absent when its workload is created. While no replica runs, a pod mounts it and the driver rotates what the pod has.
func TestRotationBeforeTheFirstLookRestarts(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	f.provider = 2
	f.rotate(0)
	require.True(t, f.look(), "the pod was started with the version from before")
	require.False(t, f.look(), "it is stamped")
}

func TestRotationRestartsOnceWhicheverPodGoesFirst(t *testing.T) {
	t.Parallel()
	for _, first := range []int{0, 1} {
		f := newFleet(t, 2)
		f.look()
		f.provider = 2
		require.False(t, f.look(), "no pod has it yet")
		f.rotate(0)
		require.True(t, f.look(), "a pod has other versions than it was started with")
		require.False(t, f.look(), "it is stamped")
		f.remove(first)
		require.False(t, f.look(), "the pod that is left may have the version from before")
		f.stamp()
		require.False(t, f.look(), "nor does a release in between record that version")
		f.rotate(0)
		require.False(t, f.look(), "it is rotated to the same version")
		f.mount()
		f.remove(0)
		require.False(t, f.look(), "a pod of the rollout has the same version")
		f.provider = 3
		f.rotate(0)
		require.True(t, f.look(), "the next rotation counts again")
	}
}

// A pod that is started between a change and its rotation must not make the others miss it.
func TestNewPodDoesNotHideRotation(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.look()
	f.provider = 2
	f.mount()
	require.False(t, f.look(), "the new pod has the new version, the others are not rotated")
	f.rotate(0)
	require.True(t, f.look(), "the others were started with the version from before")
}

// Some providers give each pod a version of its own.
func TestVersionsOfNewPodsRestartNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.look()
	for range 5 {
		f.provider++
		f.mount()
		require.False(t, f.look(), "the new pod has started with the new version")
		f.remove(0)
		require.False(t, f.look(), "a pod that is removed is no change")
	}
}

// A StatefulSet creates a pod again under its name. Where the status of the old pod is still there, the driver updates it, which
// looks like a rotation.
func TestStatusOfPodThatIsCreatedAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.look()
	again := func(i int) {
		f.pods[i].Objects = map[string]string{"password": strconv.Itoa(f.provider)}
		f.pods[i].started, f.pods[i].Rotated, f.pods[i].ResourceVersion = f.provider, true, f.next()
	}
	again(0)
	require.False(t, f.look(), "it has mounted the recorded version")
	f.provider = 2
	f.rotate(0)
	require.True(t, f.look(), "a pod has started with version 1, and has version 2 mounted")
	for i := range f.pods {
		again(i)
		require.False(t, f.look(), "pods of the rollout mount the recorded version")
	}
	f.provider = 3
	again(1)
	require.True(t, f.look(), "another version counts, since the other pod has an older one")
	f.rotate(0)
	require.False(t, f.look(), "once")
}

func TestOtherKeyStillComparesRotation(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	in := f.input()
	item, ok := record.ItemOf(oldest(t), in.Current[class])
	require.True(t, ok, "the class has an Entry under the recorded key")
	item.Hint = "50"
	f.known = known(oldest(t), items{class: item})
	require.False(t, f.look(), "nothing is later than the recorded version")
	f.written, f.provider = 60, 2
	f.rotate(1)
	require.True(t, f.look(), "a pod has rotated after the recorded version")
}

// The Entry that is carried is the recorded one, under its key. A stamp under another key needs the current Entry still.
func TestCarriedEntryKeepsThoseOfOtherKeys(t *testing.T) {
	t.Parallel()
	in := newFleet(t, 2).input()
	state := in.Current[class]
	recorded := known(oldest(t), items{class: record.Item{Entry: "0123456789abcdef", Hint: "50"}})
	entry := digest.Entry{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	carried := recorded.Carry(in.Current)[class]
	assert.Equal(t, "50", carried.ResourceVersion, "no later version is known")
	assert.Equal(t, entry, carried.Entries[oldest(t)])
	assert.Equal(t, state.Entries[newest(t)], carried.Entries[newest(t)])
	assert.NotEqual(t, carried.Entries[oldest(t)], in.Current[class].Entries[oldest(t)], "what is given does not change")

	unread := map[reference.Ref]digest.State{class: {UID: state.UID, ResourceVersion: state.ResourceVersion}}
	carried = recorded.Carry(unread)[class]
	assert.Equal(t, map[digest.KeyID]digest.Entry{oldest(t): entry}, carried.Entries, "there are no others to keep")
}

// roll looks, and begins to replace all pods where that stamps.
func (f *fleet) roll() {
	if f.look() {
		f.old = nil
		for _, p := range f.pods {
			f.old = append(f.old, p.Name)
		}
	}
}

// replace replaces one pod of the rollout, which starts the new one first, or ends the old one first.
func (f *fleet) replace(surge bool) {
	i := slices.IndexFunc(f.pods, func(p pod) bool { return slices.Contains(f.old, p.Name) })
	if i < 0 {
		return
	}
	if surge {
		f.mount()
		f.remove(i)
		return
	}
	f.remove(i)
	f.roll()
	f.mount()
}

// step lets something happen.
func (f *fleet) step(random *rand.Rand) {
	switch random.IntN(8) {
	case 0:
		f.provider++
	case 1, 2:
		f.rotate(random.IntN(len(f.pods)))
	case 3:
		f.mount()
	case 4:
		if len(f.pods) > 1 {
			f.remove(random.IntN(len(f.pods)))
		}
	case 5:
		f.replace(random.IntN(2) == 0)
	default:
		f.roll()
	}
}

// Versions that only grow are rotated in any order, while pods come and go and rollouts are under way.
func TestRotationsOfFleetRestartOncePerVersion(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		f := newFleet(t, 1+random.IntN(4))
		f.look()
		for range 60 {
			f.step(random)
		}
		for i := range f.pods {
			f.rotate(i)
		}
		f.roll()
		for range f.pods {
			f.replace(random.IntN(2) == 0)
			require.False(t, f.look(), "seed %d: a rollout causes no reload", seed)
		}
		assert.LessOrEqual(t, f.reloads, f.provider-1, "seed %d: once per version", seed)
		for _, p := range f.pods {
			assert.Equal(t, f.provider, p.started, "seed %d: %s runs an old version", seed, p.Name)
		}
	}
}
