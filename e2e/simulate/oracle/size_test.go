package oracle

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// tooLong is a user's write that the API server refuses.
func (s *harness) tooLong(contentType string, body world.Object) {
	encoded, err := json.Marshal(body)
	require.NoError(s.t, err)
	call := s.call(user, "patch", cart, encoded)
	call.ContentType = contentType
	if contentType == "application/json" {
		call.Verb = "update"
	}
	s.oracle.Request(call)
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: http.StatusUnprocessableEntity, Failure: &metav1.Status{
		Code: http.StatusUnprocessableEntity, Message: `Deployment.apps "cart" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes`,
	}})
}

// bulky is a body with an annotation of some bytes, on the workload.
func bulky(bytes int) world.Object {
	return world.Object{"metadata": world.Object{"annotations": world.Object{"b": strings.Repeat("x", bytes-1)}}}
}

func TestAnnotationsTooLong(t *testing.T) {
	t.Parallel()
	const merge, strategic = "application/merge-patch+json", "application/strategic-merge-patch+json"
	lists := len(prefix+"configmaps") + len(" app,extra,, app")
	write := func(contentType string, body world.Object) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.tooLong(contentType, body)
		}
	}
	runLaw(t, "unharmed", map[string]lawCase{
		"fits without managed annotations": {want: "unharmed/too-long", because: "the program's own made it too long", happens: write(merge, bulky(annotationLimit-lists))},
		"does not fit":                     {because: "the user's own are too long", happens: write(merge, bulky(annotationLimit-lists+1))},
		"fits, strategic":                  {want: "unharmed/too-long", because: "annotations are merged alike", happens: write(strategic, bulky(annotationLimit-lists))},
		"fits as a whole":                  {want: "unharmed/too-long", because: "a PUT has everything", happens: write("application/json", bulky(annotationLimit))},
		"does not fit as a whole":          {because: "the user's own are too long", happens: write("application/json", bulky(annotationLimit+1))},
		"template fits without its hash":   {want: "unharmed/too-long", because: "the hash made it too long", happens: write(merge, world.Object{"spec": world.Object{"template": bulky(annotationLimit)}})},
		"template does not fit":            {because: "the user's own are too long", happens: write(merge, world.Object{"spec": world.Object{"template": bulky(annotationLimit + 1)}})},
		"does not fit with the list of custom resources": {because: "that is the user's, too", happens: func(s *harness) {
			s.trackGraph("")
			s.tooLong(merge, bulky(annotationLimit-len(prefix+"configmaps")))
		}},
		"webhook away": {because: "the program could not make space", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.tooLong(merge, bulky(annotationLimit-lists))
		}},
		"a rollout stops": {want: "unharmed/rollout", because: "without the managed annotations the ReplicaSet were valid", happens: func(s *harness) {
			s.begin()
			s.recordsCart()
			s.refuses(annotationLimit - 200)
		}},
		"a rollout stops because of an earlier copy": {because: "nothing removes it from the ReplicaSet", happens: func(s *harness) {
			s.begin()
			s.refuses(annotationLimit - 200)
		}},
		"a rollout stops because of an earlier copy and the present one": {because: "only the earlier one is too much", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"last-reload", strings.Repeat("z", copied)) })
			s.refuses(annotationLimit - 2*copied - 100)
		}},
		"a rollout stops anyway": {because: "the user's own are too long for a ReplicaSet", happens: func(s *harness) {
			s.begin()
			s.refuses(annotationLimit + 1)
		}},
	})
}

// copied is the length of an annotation of the program that the Deployment controller copies.
const copied = 300

// recordsCart gives cart the annotation of the program that its ReplicaSets have.
func (s *harness) recordsCart() {
	s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"config-record", strings.Repeat("y", copied)) })
}

// refuses is a ReplicaSet of cart with annotations of some bytes and the program's, which is refused.
func (s *harness) refuses(bytes int) {
	set := world.Key{Resource: world.ReplicaSets, Namespace: cart.Namespace, Name: "cart-b"}
	annotations := world.Object{"b": strings.Repeat("x", bytes-1), prefix + "config-record": strings.Repeat("y", copied)}
	if last := world.Text(world.Annotations(s.objects[cart]), prefix+"last-reload"); last != "" {
		annotations[prefix+"last-reload"] = last
	}
	s.oracle.Refused(s.now, set, world.Object{"metadata": world.Object{"ownerReferences": owner(cart), "annotations": annotations}})
}

func TestRestartWithoutSpaceForItsAnnotation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		left int
		want string
	}{
		"no space":                            {100, ""},
		"no more than is left to ReplicaSets": {leftToController, ""},
		"little space":                        {3500, "explained/annotation-missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, Options{})
			s.begin()
			s.edit(cart, func(o world.Object) { setAnnotation(o, "b", strings.Repeat("x", annotationLimit-tt.left)) })
			s.set(configMap("app"), "2")
			s.wait(2 * time.Second)
			s.stamp(cart, "b", "")
			s.expectOnly("explained", tt.want, "what does not fit cannot be written")
		})
	}
}

// Without a Record, the program cannot know that what has changed is that a required object was deleted.
func TestRestartWithoutSpaceForTheRecord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		left   int
		record string
		want   string
	}{
		"no space": {2000, "", ""}, "a record": {2000, "v1", "kept/missing-required"}, "space": {100_000, "", "kept/missing-required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, Options{})
			s.begin()
			s.edit(cart, func(o world.Object) {
				setAnnotation(o, "b", strings.Repeat("x", annotationLimit-tt.left))
				if tt.record != "" {
					setAnnotation(o, prefix+recordAnnotation, tt.record)
				}
			})
			s.remove(user, configMap("app"))
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app deleted")
			s.expectOnly("kept", tt.want, "the pods could not start")
		})
	}
}

// leavesOnTemplate is a user's write after which the annotations of cart's template, managed annotations not counted, leave some bytes.
func (s *harness) leavesOnTemplate(bytes int) {
	s.edit(cart, func(o world.Object) {
		template := world.Section(o, "spec", "template")
		setAnnotation(template, prefix+"config-hash", "")
		setAnnotation(template, "b", strings.Repeat("x", annotationLimit-len("b")-bytes))
	})
	s.wait(time.Minute)
}

// failsToReload is what the program does where the template has no space: its request changes nothing, and it says so.
func (s *harness) failsToReload() {
	s.wait(time.Second)
	s.event(cart, "failed-1", "Warning", "ReloadFailed")
}

// hashSize is how many bytes the annotation needs that restarts pods.
const hashSize = len(prefix+"config-hash") + 64

func TestReloadWithoutSpaceOnTheTemplate(t *testing.T) {
	t.Parallel()
	change := func(left int, then func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.leavesOnTemplate(left)
			s.set(configMap("app"), "2")
			then(s)
			s.later(time.Minute)
		}
	}
	silence := func(*harness) {}
	runLaw(t, "prompt", map[string]lawCase{
		"full, and an Event says so":       {because: "the program must not make the workload invalid", happens: change(hashSize-1, (*harness).failsToReload)},
		"full, and nothing says so":        {want: "prompt/modified", because: "the user must hear of it", happens: change(hashSize-1, silence)},
		"space for the hash":               {want: "prompt/modified", because: "the pods can be restarted", happens: change(hashSize, (*harness).failsToReload)},
		"full, and an Event about another": {want: "prompt/modified", because: "it says nothing of a reload", happens: change(hashSize-1, func(s *harness) { s.event(cart, "w", "Warning", "ConfigMissing") })},
		"full, and an Event of long ago": {want: "prompt/modified", because: "it was about an earlier change", happens: func(s *harness) {
			s.begin()
			s.failsToReload()
			change(hashSize-1, silence)(s)
		}},
		"space again": {want: "prompt/modified", because: "nothing prevents the reload any more", happens: change(hashSize-1, func(s *harness) {
			s.failsToReload()
			s.leavesOnTemplate(hashSize)
			s.set(configMap("app"), "3")
		})},
	})
	pods := func(left int, then func(s *harness)) func(s *harness) {
		return quietly(unjudged(func(s *harness) {
			s.begin()
			s.leavesOnTemplate(left)
			s.rollout(cart)
			s.set(configMap("app"), "2")
			then(s)
		}))
	}
	runLaw(t, "current", map[string]lawCase{
		"full, and an Event says so": {because: "no reload is possible", happens: pods(hashSize-1, (*harness).failsToReload)},
		"full, and nothing says so":  {want: "current/modified", because: "the user must hear of it", happens: pods(hashSize-1, silence)},
		"space for the hash":         {want: "current/modified", because: "the pods can be restarted", happens: pods(hashSize, (*harness).failsToReload)},
	})
}

func TestRequestsWithoutSpaceOnTheTemplate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		left     int
		warnings []string
		want     string
	}{
		"full":            {hashSize - 1, []string{"the annotations are too large"}, ""},
		"full, no answer": {hashSize - 1, nil, "cost/patches"},
		"space":           {hashSize, []string{"the annotations are too large"}, "cost/patches"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, Options{})
			s.begin()
			s.leavesOnTemplate(tt.left)
			for range 20 {
				s.wait(time.Minute)
				call := s.call(replica, "patch", cart, nil)
				s.oracle.Request(call)
				s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200, Warnings: tt.warnings})
			}
			s.quiet()
			s.expectOnly("cost", tt.want, "what cannot be stored is a failed attempt")
		})
	}
}
