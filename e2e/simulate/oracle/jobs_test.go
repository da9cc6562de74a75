package oracle

import (
	"encoding/base64"
	"maps"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

var (
	importJob = world.Key{Resource: world.Jobs, Namespace: "shop", Name: "import"}
	nightly   = world.Key{Resource: world.CronJobs, Namespace: "shop", Name: "nightly"}
)

// jobNamed is a Job that is to be restarted when what it mentions changes, with another UID.
func jobNamed(uid string, edits ...func(o world.Object)) world.Object {
	return edited(stamped(asked(auto()), "a"), func(o world.Object) {
		o["kind"], o["apiVersion"] = "Job", "batch/v1"
		metadata := world.Section(o, "metadata")
		metadata["name"], metadata["uid"] = importJob.Name, uid
		for _, edit := range edits {
			edit(o)
		}
	})
}

func inPlaceOf(uid string) func(o world.Object) {
	return func(o world.Object) { setAnnotation(o, prefix+replacesAnnotation, uid) }
}

func ownedByNightly(o world.Object) { world.Section(o, "metadata")["ownerReferences"] = owner(nightly) }

func isRun(o world.Object) { setAnnotation(o, runAnnotation, "manual"); ownedByNightly(o) }

func isDone(o world.Object) {
	o["status"] = world.Object{"conditions": []any{world.Object{"type": "Complete", "status": "True"}}}
}

func isSuspended(o world.Object) { world.Section(o, "spec")["suspend"] = true }

func manifestOf(uid string) world.Key {
	return world.Key{Resource: world.Secrets, Namespace: "pod-reloader", Name: "pod-reloader-job-" + uid}
}

// keeps stores the manifest of a Job.
func (s *harness) keeps(uid string) {
	data := world.Object{"job.json": base64.StdEncoding.EncodeToString([]byte(`{"kind":"Job"}`))}
	s.write(replica, "create", manifestOf(uid), world.Object{"metadata": world.Object{"name": manifestOf(uid).Name}, "data": data})
}

// beginJob creates a Job, and changes what it mentions.
func beginJob(edits ...func(o world.Object)) func(s *harness) {
	return func(s *harness) {
		s.set(configMap("app"), "1")
		s.set(configMap("extra"), "1")
		s.write(user, "create", importJob, jobNamed("one", edits...))
		s.wait(time.Minute)
		s.set(configMap("app"), "2")
		s.wait(time.Second)
	}
}

// createdAgain creates a Job again as it should be.
func (s *harness) createdAgain(edits ...func(o world.Object)) {
	s.keeps("one")
	s.remove(replica, importJob)
	s.write(replica, "create", importJob, jobNamed("two", append(edits, inPlaceOf("one"))...))
	s.remove(replica, manifestOf("one"))
}

// beginIgnored deletes a Job that is to be let alone, after a change.
func beginIgnored(s *harness) {
	beginJob()(s)
	s.wait(time.Minute)
	s.createdAgain()
}

func TestJobs(t *testing.T) {
	t.Parallel()
	deletes := func(edits ...func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			beginJob(edits...)(s)
			s.createdAgain(edits...)
		}
	}
	runLaw(t, "jobs", map[string]lawCase{
		"of an ignored kind": {options: Options{Ignored: []string{"jobs"}}, want: "jobs/deleted/ignored", because: "the flags take Jobs away", happens: beginIgnored},
		"created again":      {because: "its configuration changed", happens: deletes()},
		"suspended":          {want: "jobs/deleted/suspended", because: "it has no pods", happens: deletes(isSuspended)},
		"finished":           {want: "jobs/deleted/finished", because: "it is done", happens: deletes(isDone)},
		"finished while watches were held": {because: "what was first cannot be known", happens: func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-held", Scope: "jobs", Begin: true})
			deletes(isDone)(s)
		}},
		"finished while a replica was frozen": {because: "what was first cannot be known", happens: func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "frozen", Scope: "replica-0", Begin: true})
			deletes(isDone)(s)
		}},
		"finished after the change": {because: "how long a change settles does not decide", happens: func(s *harness) {
			beginJob()(s)
			s.change(nil, importJob, nil, jobNamed("one", isDone))
			s.wait(time.Second)
			s.createdAgain()
		}},
		"finished, rerun": {options: Options{RerunFinished: true}, because: "a flag says so", happens: deletes(isDone)},
		"controlled":      {want: "jobs/deleted/controlled", because: "it is a CronJob's", happens: deletes(ownedByNightly)},
		"without a cause": {want: "jobs/deleted/no-cause", because: "nothing changed", happens: func(s *harness) {
			s.set(configMap("app"), "1")
			s.write(user, "create", importJob, jobNamed("one"))
			s.wait(time.Minute)
			s.createdAgain()
		}},
		"without a manifest": {want: "jobs/lost", because: "it could be lost", happens: func(s *harness) {
			beginJob()(s)
			s.remove(replica, importJob)
			s.write(replica, "create", importJob, jobNamed("two", inPlaceOf("one")))
		}},
		"manifest deleted too early": {want: "jobs/lost", because: "neither is there", happens: func(s *harness) {
			beginJob()(s)
			s.keeps("one")
			s.remove(replica, importJob)
			s.remove(replica, manifestOf("one"))
		}},
		"one of two manifests deleted": {because: "the other installation has one, too", happens: func(s *harness) {
			beginJob()(s)
			s.keeps("one")
			other := manifestOf("one")
			other.Name = "second-job-one"
			s.write("replica-1.1", "create", other, world.Object{"metadata": world.Object{"name": other.Name}})
			s.remove(replica, importJob)
			s.remove("replica-1.1", other)
			s.write(replica, "create", importJob, jobNamed("two", inPlaceOf("one")))
			s.remove(replica, manifestOf("one"))
		}},
		"replaced by a user's Job, which is then deleted": {because: "the user's Job is kept instead", happens: func(s *harness) {
			beginJob()(s)
			s.keeps("one")
			s.remove(replica, importJob)
			s.write(user, "create", importJob, jobNamed("two"))
			s.remove(replica, manifestOf("one"))
			s.remove(user, importJob)
			s.quiet()
		}},
		"never created": {want: "jobs/not-created", because: "the manifest is there, the Job is not", happens: func(s *harness) {
			beginJob()(s)
			s.keeps("one")
			s.remove(replica, importJob)
			s.quiet()
		}},
		"manifest left": {want: "jobs/manifest-left", because: "the Job is there", happens: func(s *harness) {
			beginJob()(s)
			s.keeps("one")
			s.remove(replica, importJob)
			s.write(replica, "create", importJob, jobNamed("two", inPlaceOf("one")))
			s.quiet()
		}},
		"again without a change": {want: "jobs/created/twice", because: "one change, one Job", happens: func(s *harness) {
			deletes()(s)
			s.keeps("two")
			s.remove(replica, importJob)
			s.write(replica, "create", importJob, jobNamed("three", inPlaceOf("two")))
			s.remove(replica, manifestOf("two"))
		}},
		"brought back": {want: "jobs/created/revived", because: "the user has deleted it", happens: func(s *harness) {
			beginJob()(s)
			s.remove(user, importJob)
			s.write(replica, "create", importJob, jobNamed("two", inPlaceOf("one")))
		}},
		"another one": {want: "jobs/created/other", because: "its image is another", happens: func(s *harness) {
			beginJob()(s)
			s.keeps("one")
			s.remove(replica, importJob)
			s.write(replica, "create", importJob, jobNamed("two", inPlaceOf("one"), isSuspended))
			s.remove(replica, manifestOf("one"))
		}},
	})
}

func TestJobsAreCreatedAgainInTime(t *testing.T) {
	t.Parallel()
	late := func(edits ...func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			beginJob(edits...)(s)
			s.wait(5 * time.Minute)
			s.oracle.advance(s.now)
		}
	}
	runLaw(t, "prompt", map[string]lawCase{
		"late":      {want: "prompt/job", because: "it still has the old content", happens: late()},
		"suspended": {because: "it has no pods", happens: late(isSuspended)},
		"finished":  {because: "it is done", happens: late(isDone)},
	})
}

// cronJob is a CronJob that is run when what it mentions changes.
func cronJob(edits ...func(o world.Object)) world.Object {
	return edited(asked(auto()), func(o world.Object) {
		o["kind"], o["apiVersion"] = "CronJob", "batch/v1"
		maps.Copy(world.Section(o, "metadata"), world.Object{"name": nightly.Name, "uid": "uid-nightly"})
		template := world.Section(o, "spec", "template")
		world.Section(template, "metadata")["annotations"] = world.Object{prefix + requestAnnotation: "a"}
		o["spec"] = world.Object{"jobTemplate": world.Object{"spec": world.Object{"template": template}}}
		for _, edit := range edits {
			edit(o)
		}
	})
}

// runs is a run of the CronJob, with the template that it has.
func (s *harness) runs(name string) { s.runsWith(name, s.objects[nightly]) }

// runsWith is a run with the template that the CronJob has had.
func (s *harness) runsWith(name string, cronJob world.Object) {
	key := importJob
	key.Name = name
	template := world.Section(cronJob, world.TemplatePath(nightly.Resource.Plural)...)
	s.write(replica, "create", key, jobNamed("uid-"+name, isRun, func(o world.Object) { world.Section(o, "spec")["template"] = template }))
}

// beginCronJob creates the CronJob, and changes what it mentions.
func (s *harness) beginCronJob(edits ...func(o world.Object)) {
	s.createCronJob(edits...)
	s.set(configMap("app"), "2")
	s.wait(time.Second)
}

// createCronJob creates the CronJob, which the webhook stamps.
func (s *harness) createCronJob(edits ...func(o world.Object)) {
	s.set(configMap("app"), "1")
	sent := edited(cronJob(edits...), func(o world.Object) {
		delete(world.Section(o, "spec", "jobTemplate", "spec", "template", "metadata"), "annotations")
	})
	call := s.call(user, "create", nightly, nil)
	s.oracle.Request(call)
	s.change(call, nightly, sent, cronJob(edits...))
	s.wait(time.Minute)
}

// reloadCronJob stamps the CronJob.
func (s *harness) reloadCronJob() { s.reloadCronJobWith("b") }

// reloadCronJobWith stamps the CronJob with a hash.
func (s *harness) reloadCronJobWith(hash string) {
	call := s.call(replica, "patch", nightly, []byte(`{}`))
	s.oracle.Request(call)
	s.change(call, nightly, s.objects[nightly], edited(s.objects[nightly], func(o world.Object) {
		setAnnotation(world.Section(o, "spec", "jobTemplate", "spec", "template"), prefix+requestAnnotation, hash)
		setAnnotation(o, prefix+reloadAnnotation, s.lastReloadOfApp())
	}))
}

func TestRunsOfCronJobs(t *testing.T) {
	t.Parallel()
	stamped := func(names []string, edits ...func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			s.beginCronJob(edits...)
			for _, name := range names {
				s.runs(name)
			}
			s.reloadCronJob()
		}
	}
	// later runs it with the earlier change, and again after the stamp.
	later := func(before string, names ...string) func(s *harness) {
		return func(s *harness) {
			s.beginCronJob()
			s.runs("n1")
			s.set(configMap("app"), before)
			s.reloadCronJob()
			for _, name := range names {
				s.runs(name)
			}
		}
	}
	// keyed runs it before and after the digest keys are replaced.
	keyed := func(keys ...string) func(s *harness) {
		return func(s *harness) {
			s.keys("one")
			s.beginCronJob()
			s.runs("n1")
			s.keys(keys...)
			s.runs("n2")
			s.reloadCronJob()
		}
	}
	runLaw(t, "jobs", map[string]lawCase{
		"run":       {because: "once for one change", happens: stamped([]string{"n1"})},
		"not run":   {want: "jobs/run/missing", because: "the change is to be used at once", happens: stamped(nil)},
		"run twice": {want: "jobs/run/twice", because: "there is one change", happens: stamped([]string{"n1", "n2"})},
		"run with what was stamped": {
			because: "the Job has started before the last change", happens: later("3", "n2"),
		},
		"run with what it was run with": {
			want: "jobs/run/twice", because: "nothing has changed since", happens: later("2", "n2"),
		},
		"run twice with what was stamped": {
			want: "jobs/run/twice", because: "there is one change since", happens: later("3", "n2", "n3"),
		},
		"run twice across a rotation of the key": {
			want: "jobs/run/twice", because: "a rotation changes no content", happens: keyed("one", "two"),
		},
		"run twice across a loss of the key": {
			because: "what is known under it means nothing", happens: keyed("two"),
		},
		"suspended":     {because: "it is not run", happens: stamped(nil, isSuspended)},
		"run suspended": {want: "jobs/run/suspended", because: "it must not run", happens: stamped([]string{"n1"}, isSuspended)},
	})
}

// withPolicy sets the concurrencyPolicy of a CronJob.
func withPolicy(policy string) func(o world.Object) {
	return func(o world.Object) { world.Section(o, "spec")["concurrencyPolicy"] = policy }
}

var byHand = world.Key{Resource: world.Jobs, Namespace: "shop", Name: "by-hand"}

// runsByHand is a Job of the CronJob that a user creates.
func (s *harness) runsByHand(edits ...func(o world.Object)) {
	s.write(user, "create", byHand, jobNamed("by-hand", append(edits, isRun)...))
}

func TestConcurrencyPolicyOfCronJobs(t *testing.T) {
	t.Parallel()
	// while runs a CronJob some time after a user has created a Job from it.
	while := func(policy string, age time.Duration, edits ...func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			s.createCronJob(withPolicy(policy))
			s.runsByHand(edits...)
			s.wait(age)
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.runs("n1")
			s.reloadCronJob()
		}
	}
	deleted := func(policy string, edits ...func(o world.Object)) func(s *harness) {
		return func(s *harness) {
			s.createCronJob(withPolicy(policy))
			s.runsByHand(edits...)
			s.wait(20 * time.Second)
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.remove(replica, byHand)
			s.runs("n1")
			s.reloadCronJob()
		}
	}
	runLaw(t, "jobs", map[string]lawCase{
		"Allow, active":        {because: "they may run at the same time", happens: while("Allow", 20*time.Second)},
		"Forbid, active":       {want: "jobs/run/concurrent", because: "one Job at a time", happens: while(forbid, 20*time.Second)},
		"Forbid, finished":     {because: "it runs no more", happens: while(forbid, 20*time.Second, isDone)},
		"Forbid, just created": {because: "the program may have listed the Jobs before", happens: while(forbid, time.Second)},
		"Replace, left":        {want: "jobs/run/concurrent", because: "one Job at a time", happens: while(replace, 20*time.Second)},
		"Replace, deleted":     {because: "the new run replaces it", happens: deleted(replace)},
		"Forbid, deleted":      {want: "jobs/deleted/controlled", because: "it is to finish", happens: deleted(forbid)},
		"Allow, deleted":       {want: "jobs/deleted/controlled", because: "it does no harm", happens: deleted("Allow")},
		"Replace, finished": {want: "jobs/deleted/finished", because: "the history limits are the CronJob controller's", happens: deleted(replace, isDone, func(o world.Object) {
			world.Section(o, "status")["completionTime"] = "2030-01-01T00:01:00Z"
		})},
		"Replace, no change": {want: "jobs/deleted/no-cause", because: "nothing is to be run", happens: func(s *harness) {
			s.createCronJob(withPolicy(replace))
			s.runsByHand()
			s.wait(20 * time.Second)
			s.remove(replica, byHand)
		}},
	})
}

func TestForbiddenRunDelaysNoStamp(t *testing.T) {
	t.Parallel()
	waits := func(policy string) func(s *harness) {
		return func(s *harness) {
			s.createCronJob(withPolicy(policy))
			s.runsByHand()
			s.set(configMap("app"), "2")
			for range 10 {
				s.wait(30 * time.Second)
				s.oracle.advance(s.now)
			}
		}
	}
	runLaw(t, "prompt", map[string]lawCase{
		"Allow":  {want: "prompt/modified", because: "nothing hinders it", happens: waits("Allow")},
		"Forbid": {want: "prompt/modified", because: "only the run waits", happens: waits(forbid)},
	})
}
