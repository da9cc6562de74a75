package conformance_test

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

const (
	merge     = "application/merge-patch+json"
	operation = "application/json-patch+json"
	strategic = "application/strategic-merge-patch+json"
	apply     = "application/apply-patch+yaml"
)

const (
	configMaps   = "/api/v1/namespaces/NS/configmaps"
	secrets      = "/api/v1/namespaces/NS/secrets"
	deployments  = "/apis/apps/v1/namespaces/NS/deployments"
	statefulSets = "/apis/apps/v1/namespaces/NS/statefulsets"
	daemonSets   = "/apis/apps/v1/namespaces/NS/daemonsets"
	replicaSets  = "/apis/apps/v1/namespaces/NS/replicasets"
	jobs         = "/apis/batch/v1/namespaces/NS/jobs"
	cronJobs     = "/apis/batch/v1/namespaces/NS/cronjobs"
	leases       = "/apis/coordination.k8s.io/v1/namespaces/NS/leases"
	events       = "/apis/events.k8s.io/v1/namespaces/NS/events"
	coreEvents   = "/api/v1/namespaces/NS/events"
)

// pod is a pod template with much of what has defaults.
const pod = `{"metadata":{"labels":{"app":"x"}},"spec":{"serviceAccountName":"sa","containers":[
{"name":"a","image":"a:1","ports":[{"containerPort":80}],"env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
{"name":"C","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}}],"envFrom":[{"secretRef":{"name":"s"}}],
"livenessProbe":{"httpGet":{"port":80}},"resources":{"limits":{"cpu":"1000m"}}},{"name":"b","image":"b"},{"name":"d","image":"r:5000/d@sha256:0123456789012345678901234567890123456789012345678901234567890123"}],
"initContainers":[{"name":"i","image":"i:latest"}],
"volumes":[{"name":"c","configMap":{"name":"c"}},{"name":"s","secret":{"secretName":"s"}},{"name":"e"},
{"name":"p","projected":{"sources":[{"configMap":{"name":"c"}},{"secret":{"name":"s"}},{"serviceAccountToken":{"path":"t"}},{"downwardAPI":{"items":[{"path":"l","fieldRef":{"fieldPath":"metadata.labels"}}]}}]}}]}}`

func workload(kind, spec string) string {
	return `{"kind":"` + kind + `","metadata":{"name":"w","labels":{"l":"1"},"annotations":{"a":"1"}},"spec":{` + spec + `"template":` + pod + `}}`
}

const selector = `"selector":{"matchLabels":{"app":"x"}},`

func post(path, body string) step {
	return step{method: http.MethodPost, path: path, body: body, save: "last"}
}

func put(path, body string) step { return step{method: http.MethodPut, path: path, body: body} }

func patch(path, contentType, body string) step {
	return step{method: http.MethodPatch, path: path, contentType: contentType, body: body}
}

func get(path string) step { return step{method: http.MethodGet, path: path} }

// differs marks a step whose answers differ in a known way.
func differs(how string, s step) step {
	s.unlike = how
	return s
}

// What the model is known to say in other words.
const (
	otherWords = "the model has shorter words for a patch that makes no object"
	jobRules   = "the model has fewer rules for Jobs"
)

func remove(path string) step { return step{method: http.MethodDelete, path: path} }

func TestWorkloads(t *testing.T) {
	t.Parallel()
	onFailure := strings.Replace(pod, `"spec":{`, `"spec":{"restartPolicy":"OnFailure",`, 1)
	for name, tc := range map[string]struct{ path, body, image, template string }{
		"deployments":  {deployments, workload("Deployment", selector), `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":31}}}}`, ""},
		"statefulsets": {statefulSets, workload("StatefulSet", selector), `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":31}}}}`, ""},
		"daemonsets":   {daemonSets, workload("DaemonSet", selector), `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":31}}}}`, ""},
		"replicasets":  {replicaSets, workload("ReplicaSet", selector), `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":31}}}}`, ""},
		"jobs":         {jobs, `{"metadata":{"name":"w"},"spec":{"template":` + onFailure + `}}`, `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":31}}}}`, ""},
		"cronjobs":     {cronJobs, `{"metadata":{"name":"w"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":` + onFailure + `}}}}`, `{"spec":{"suspend":true}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tc.path + "/w"
			steps := []step{
				post(tc.path, tc.body), post(tc.path, tc.body), get(w),
				put(w, tc.body), // nothing changes
				patch(w, merge, `{"metadata":{"annotations":{"b":"2"}}}`),
				patch(w, merge, `{"metadata":{"labels":{"b":"2"},"annotations":{"a":null}}}`),
				patch(w, merge, `{"metadata":{"annotations":null}}`),
				patch(w, merge, tc.image), patch(w, merge, tc.image), get(w),
				patch(w+"/status", merge, `{"metadata":{"annotations":{"s":"1"},"labels":{"s":"1"}},"spec":{"suspend":true,"replicas":5}}`),
				patch(w, operation, `[{"op":"add","path":"/metadata/annotations","value":{"x":"y"}},{"op":"test","path":"/metadata/name","value":"w"}]`),
				patch(w, operation, `[{"op":"test","path":"/metadata/name","value":"v"}]`),
				patch(w, operation, `[{"op":"remove","path":"/metadata/annotations/none"}]`),
				patch(w, strategic, `{"metadata":{"labels":{"$patch":"replace","only":"this"}}}`),
				patch(w, merge, `{"metadata":{"resourceVersion":"$last.rv"}}`),
				patch(w, merge, `{"metadata":{"generation":77,"creationTimestamp":null,"uid":"$last.uid"}}`),
				put(w, tc.body), get(w),
				remove(w + "?propagationPolicy=Background"), remove(w), get(w), put(w, tc.body),
			}
			steps = append(steps, deletions(tc.path, tc.body)...)
			if name == "jobs" {
				for n := range steps {
					if steps[n].method == http.MethodPut || strings.Contains(steps[n].body, "terminationGracePeriodSeconds\":31") {
						steps[n].unlike = jobRules
					}
				}
			}
			play(t, steps)
		})
	}
}

// deletions leave a workload to the garbage collector, which does not run here.
func deletions(path, body string) []step {
	w := path + "/w"
	held := patch(w, merge, `{"metadata":{"finalizers":["example.com/held"]}}`)
	return []step{
		post(path, body), held, remove(w + "?propagationPolicy=Foreground"), get(w), remove(w + "?propagationPolicy=Foreground"), get(w), remove(w), get(w),
		patch(w, merge, `{"metadata":{"annotations":{"late":"1"}}}`),
		remove(w + "?propagationPolicy=Orphan"), get(w), remove(w), get(w), remove(w + "?propagationPolicy=Background"), get(w),
		patch(w, merge, `{"metadata":{"finalizers":null}}`), get(w),
		post(path, body), remove(w + "?propagationPolicy=Orphan"), get(w), remove(w + "?propagationPolicy=Background"), get(w),
		post(path, body), remove(w + "?propagationPolicy=Foreground"), patch(w, merge, `{"metadata":{"finalizers":null}}`), get(w),
		post(path, body), remove(w), get(w), // a Job orphans its pods
		patch(w, merge, `{"metadata":{"finalizers":null}}`), get(w),
	}
}

func TestUpdateStrategies(t *testing.T) {
	t.Parallel()
	strategy := func(path, value string) step { return patch(path+"/w", merge, `{"spec":{"updateStrategy":`+value+`}}`) }
	for name, path := range map[string]string{"StatefulSet": statefulSets, "DaemonSet": daemonSets} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := []step{
				post(path, workload(name, selector)), strategy(path, `{"type":"OnDelete","rollingUpdate":null}`), get(path + "/w"),
				strategy(path, `{"type":"RollingUpdate"}`), strategy(path, `{"rollingUpdate":{}}`), get(path + "/w"),
			}
			if name == "StatefulSet" {
				steps = append(steps, strategy(path, `{"rollingUpdate":{"partition":2}}`), strategy(path, `{"type":"OnDelete"}`),
					strategy(path, `{"rollingUpdate":null}`), strategy(path, `null`), get(path+"/w"))
			}
			play(t, steps)
		})
	}
}

func TestConfigObjects(t *testing.T) {
	t.Parallel()
	app := configMaps + "/app"
	play(t, []step{
		post(configMaps, `{"metadata":{"name":"app"},"data":{"a":"1"},"binaryData":{"b":"AAE="}}`),
		put(app, `{"metadata":{"name":"app"},"data":{"a":"1"},"binaryData":{"b":"AAE="}}`),
		put(app, `{"metadata":{"name":"app"},"data":{"a":"2"}}`),
		put(app, `{"metadata":{"name":"app","resourceVersion":"$last.rv"},"data":{"a":"3"}}`),
		put(app, `{"metadata":{"name":"app","uid":"other"},"data":{"a":"3"}}`),
		put(app, `{"metadata":{"name":"b"},"data":{"a":"3"}}`), put(app, `{"metadata":{"name":"app","namespace":"other"}}`),
		put(app, `{"data":{}}`), put(app, `{"metadata":{"name":"app"},"data":{"a":1}}`), put(app, `{`), put(app, ``),
		put(app, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"app"}}`),
		put(app, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"app"}}`),
		patch(app, merge, `{"data":{"b":"x","a":null}}`), patch(app, merge, `{"data":null}`), patch(app, merge, `[]`), patch(app, merge, `{`),
		differs(otherWords, patch(app, merge, `{"data":{"a":1}}`)), differs(otherWords, patch(app, merge, `{"metadata":{"annotations":{"a":1}}}`)), patch(app, merge, `{"metadata":{"name":"b"}}`),
		differs(otherWords, patch(app, operation, `{}`)), patch(app, operation, `[{"op":"replace","path":"/data/none/x","value":1}]`),
		patch(app, strategic, `{"data":{"s":"t"}}`), patch(app, "text/plain", `{}`), patch(configMaps+"/none", merge, `{}`),
		post(configMaps, `{"metadata":{"name":"b","resourceVersion":"1"}}`), post(configMaps, `{"metadata":{}}`),
		post(configMaps, `{"metadata":{"name":"NO"}}`), post(configMaps, `{"metadata":{"name":"b"},"data":{"a/b":"c"}}`),
		post(configMaps, `{"metadata":{"name":"b","annotations":{"a":"`+strings.Repeat("x", 262144)+`"}}}`),
		post(configMaps, `{"metadata":{"name":"b"},"data":{"a":"`+strings.Repeat("x", 1<<20+1)+`"}}`),
		post("/api/v1/namespaces/none/configmaps", `{"metadata":{"name":"b"}}`),
		post(configMaps+"?dryRun=All", `{"metadata":{"name":"dry"}}`), get(configMaps + "/dry"),
		post(secrets, `{"metadata":{"name":"s"},"stringData":{"a":"b"}}`), put(secrets+"/s", `{"metadata":{"name":"s"},"data":{"a":"Yg=="}}`),
		patch(secrets+"/s", merge, `{"stringData":{"a":"c"}}`), put(secrets+"/s", `{"metadata":{"name":"s"},"type":"other"}`),
		{method: http.MethodDelete, path: app, body: `{"preconditions":{"uid":"other"}}`},
		{method: http.MethodDelete, path: app, body: `{"preconditions":{"resourceVersion":"1"}}`},
		patch(app, merge, `{"metadata":{"finalizers":["a.b/c"]}}`), remove(app), remove(app), get(app), post(configMaps, `{"metadata":{"name":"app"}}`),
		patch(app, merge, `{"metadata":{"finalizers":null}}`), get(app), remove(app),
		post("/api/v1/configmaps", `{"metadata":{"name":"b"}}`), put(configMaps, `{}`), patch(configMaps, merge, `{}`), post(app, `{}`), patch(app, operation, `{`),
		get("/api/v1/none"), get("/apis/none/v1/x"), get(deployments + "/x/none"),
	})
}

func TestLeasesAndEvents(t *testing.T) {
	t.Parallel()
	event := `{"metadata":{"name":"e"},"eventTime":"2026-01-01T00:00:00.000001Z","reportingController":"c","reportingInstance":"p","action":"Reload","reason":"Reloaded","type":"Normal",
"regarding":{"kind":"Deployment","namespace":"NS","name":"cart"},"note":"why"}`
	play(t, []step{
		put(leases+"/l", `{"metadata":{"name":"l"}}`), put(leases+"/l", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"a"}}`),
		post(leases, `{"metadata":{"name":"m"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2026-01-01T00:00:00.000000Z"}}`),
		put(leases+"/m", `{"metadata":{"name":"m","resourceVersion":"$last.rv"},"spec":{"holderIdentity":"b"}}`),
		put(leases+"/m", `{"metadata":{"name":"m","resourceVersion":"$last.rv"},"spec":{"holderIdentity":"b"}}`),
		put(leases+"/n", `{"metadata":{"name":"n","uid":"$last.uid","resourceVersion":"$last.rv"}}`),
		put(leases+"/n", `{"metadata":{"name":"n","resourceVersion":"$last.rv"}}`),
		post(events, event), get(coreEvents + "/e"), get(events + "/e"), post(coreEvents, event), post(events, `{"metadata":{"name":"f"}}`),
		post(events, strings.Replace(strings.Replace(event, `"why"`, `"`+strings.Repeat("x", 1025)+`"`, 1), `"e"`, `"g"`, 1)),
		patch(events+"/e", merge, `{"series":{"count":2,"lastObservedTime":"2026-01-01T00:00:01.000000Z"}}`), get(coreEvents + "/e"),
		get(events + "?fieldSelector=regarding.name%3Dcart"), get(coreEvents + "?fieldSelector=involvedObject.name%3Dnone"), get(events + "?fieldSelector=note%3Dwhy"),
		remove(events + "/e"),
	})
}

func TestValidation(t *testing.T) {
	t.Parallel()
	w := deployments + "/w"
	annotations := `"annotations":{"a":"` + strings.Repeat("x", 262144) + `"},`
	play(t, []step{
		post(deployments, workload("Deployment", selector)),
		patch(w, merge, `{"spec":{"selector":{"matchLabels":{"b":"x"}},"template":{"metadata":{"labels":{"b":"x"}}}}}`),
		patch(w, merge, `{"spec":{"selector":null}}`), differs(otherWords, patch(w, merge, `{"spec":{"replicas":"x"}}`)),
		patch(w, merge, `{"spec":{"template":{"spec":{"containers":null}}}}`),
		patch(w, merge, `{"spec":{"template":{"spec":{"restartPolicy":"Never"}}}}`),
		patch(w, merge, `{"spec":{"template":{"metadata":{`+strings.TrimSuffix(annotations, ",")+`}}}}`),
		patch(w, merge, `{"metadata":{`+strings.TrimSuffix(annotations, ",")+`}}`),
		patch(w, merge, `{"metadata":{"annotations":{"a b":"c"}}}`), patch(w, merge, `{"metadata":{"labels":{"a":"b c"}}}`), patch(w, merge, `{"metadata":{"uid":"x"}}`),
		post(jobs, `{"metadata":{"name":"j"},"spec":{"template":`+strings.Replace(pod, `"spec":{`, `"spec":{"restartPolicy":"Never",`, 1)+`}}`),
		post(jobs, `{"metadata":{"name":"k"},"spec":{"template":`+pod+`}}`),
		post(statefulSets, workload("StatefulSet", selector)), patch(statefulSets+"/w", merge, `{"spec":{"serviceName":"x"}}`),
	})
}

// TestAnnotationLimit goes to the last byte that annotations of an object, and of a pod template, may have.
func TestAnnotationLimit(t *testing.T) {
	t.Parallel()
	w := deployments + "/w"
	fill := func(bytes int) string {
		return `{"metadata":{"annotations":{"bulk":"` + strings.Repeat("x", bytes-len("bulk")) + `"}}}`
	}
	const limit, have = 262144, len("a1")
	steps := []step{post(deployments, workload("Deployment", selector))}
	for _, contentType := range []string{merge, strategic} {
		steps = append(steps,
			patch(w, contentType, fill(limit-have+1)), patch(w, contentType, fill(limit-have)),
			patch(w, contentType, `{"metadata":{"annotations":{"one":"more"}}}`), patch(w, contentType, `{"metadata":{"labels":{"l":"2"}}}`),
			patch(w, contentType, `{"spec":{"template":`+fill(limit+1)+`}}`), patch(w, contentType, `{"spec":{"template":`+fill(limit)+`}}`),
			patch(w, contentType, `{"metadata":{"annotations":{"bulk":null}},"spec":{"template":{"metadata":{"annotations":{"bulk":null}}}}}`),
		)
	}
	play(t, append(steps,
		patch(w, operation, `[{"op":"add","path":"/metadata/annotations/bulk","value":"`+strings.Repeat("x", limit-have-len("bulk")+1)+`"}]`),
		patch(w, operation, `[{"op":"add","path":"/metadata/annotations/bulk","value":"`+strings.Repeat("x", limit-have-len("bulk"))+`"}]`),
	))
}

func TestListsAndSelectors(t *testing.T) {
	t.Parallel()
	play(t, []step{
		post(configMaps, `{"metadata":{"name":"b","labels":{"l":"1"}}}`), post(configMaps, `{"metadata":{"name":"a","labels":{"l":"2"}}}`),
		get(configMaps + "?labelSelector=l%3D1"), get(configMaps + "?fieldSelector=metadata.name%3Da"), get(configMaps + "?fieldSelector=data%3Da"),
		get(configMaps + "?labelSelector=a+b"), get(configMaps + "?resourceVersion=x"), get(configMaps + "?resourceVersionMatch=Exact"),
		get(configMaps + "?labelSelector=l+in+(1,2)&resourceVersion=0"),
		get(configMaps + "?watch=true&sendInitialEvents=true"), get(configMaps + "?watch=true&resourceVersionMatch=NotOlderThan"), get(configMaps + "?sendInitialEvents=true"),
		get(configMaps + "/a?resourceVersion=99999999999"), get(configMaps + "/a?resourceVersion=0"),
	})
}

func TestWatches(t *testing.T) {
	t.Parallel()
	const watch = configMaps + "?watch=true&timeoutSeconds=1"
	const streaming = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	first := post(configMaps, `{"metadata":{"name":"a","labels":{"l":"1"}}}`)
	first.save = "first"
	play(t, []step{
		first, post(configMaps, `{"metadata":{"name":"b","labels":{"l":"2"}}}`),
		patch(configMaps+"/a", merge, `{"metadata":{"labels":{"l":"2"}}}`), patch(configMaps+"/b", merge, `{"metadata":{"labels":{"l":"1"}}}`), remove(configMaps + "/b"),
		get(watch), get(watch + "&resourceVersion=0"), get(watch + "&resourceVersion=$first.rv"), get(watch + "&allowWatchBookmarks=true"),
		get(watch + "&allowWatchBookmarks=true" + streaming), get(watch + streaming), get(watch + "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"),
		get(watch + "&resourceVersion=$first.rv&labelSelector=l%3D1"), get(watch + "&resourceVersion=$first.rv&labelSelector=l%3D2"),
		get(watch + "&resourceVersion=$first.rv&fieldSelector=metadata.name%3Db"), get(configMaps + "/a?watch=true&timeoutSeconds=1"),
		get(watch + "&resourceVersion=1"),
	})
}

func TestServerSideApply(t *testing.T) {
	t.Parallel()
	w := deployments + "/w?fieldManager="
	const small = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w","labels":{"l":"1"}}}`
	body := strings.Replace(workload("Deployment", selector), `{"kind"`, `{"apiVersion":"apps/v1","kind"`, 1)
	play(t, []step{
		patch(w+"one", apply, body), patch(w+"one", apply, body), patch(w+"two", apply, strings.Replace(small, `"l":"1"`, `"l":"2"`, 1)),
		patch(w+"two&force=true", apply, strings.Replace(small, `"l":"1"`, `"l":"2"`, 1)), patch(w+"two", apply, small), patch(w, apply, small),
		patch(w+"three", merge, `{"metadata":{"annotations":{"a":"2"}}}`), patch(w+"one", apply, body), patch(w+"one", apply, small), patch(w+"one", apply, `{`),
		patch(deployments+"/none?fieldManager=one", apply, strings.Replace(small, `"w"`, `"none"`, 1)),
		patch(deployments+"/w/status?fieldManager=four", apply, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w"},"status":{"replicas":2,"readyReplicas":2,"availableReplicas":2,"updatedReplicas":2}}`),
	})
}

// withTemplate is the manifest of a workload whose pod template has some metadata.
func withTemplate(metadata string) string {
	body := strings.Replace(workload("Deployment", selector), `{"kind"`, `{"apiVersion":"apps/v1","kind"`, 1)
	return strings.Replace(body, `{"metadata":{"labels":{"app":"x"}}`, `{"metadata":{"labels":{"app":"x"}`+metadata+`}`, 1)
}

// TestManifestWithoutTheLastAnnotation drops the last annotation of the pod template that the manifest has: annotations of others go with
// it, unless another field manager owns them.
func TestManifestWithoutTheLastAnnotation(t *testing.T) {
	t.Parallel()
	w := deployments + "/w?fieldManager="
	annotated := withTemplate(`,"annotations":{"own":"1"}`)
	play(t, []step{
		patch(w+"one", apply, annotated),
		patch(w+"two", operation, `[{"op":"add","path":"/spec/template/metadata/annotations/other","value":"2"}]`),
		patch(w+"one", apply, withTemplate("")), patch(w+"one", apply, annotated),
		patch(w+"three", strategic, `{"spec":{"template":{"metadata":{"annotations":null}}}}`), get(deployments + "/w"),
	})
	adding := hook{name: "a", answer: func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		if !strings.Contains(string(r.Object.Raw), `"own":`) {
			return admissionv1.AdmissionResponse{Allowed: true}
		}
		return patching(`[{"op":"add","path":"/spec/template/metadata/annotations/hook","value":"1"}]`)(r)
	}}
	admit(t, []hook{adding}, []step{patch(w+"one", apply, annotated), patch(w+"one", apply, withTemplate("")), get(deployments + "/w")})
}
