package controlplane

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Request is one request to the API, as the audit log has it.
type Request struct {
	ID        string
	User      string
	UserAgent string
	// Verb is Kubernetes': get, list, watch, create, update, patch, delete, deletecollection, or
	// the HTTP method in lower case where URI is no resource.
	Verb string
	URI  string
	// Group, Resource, Subresource, Namespace and Name say what it was about; empty for a URI
	// that is no resource.
	Group, Resource, Subresource, Namespace, Name string

	Received time.Time
	// Took is how long the answer took; 0 while there is none.
	Took time.Duration
	// Code is the HTTP status of the answer; 0 when it was never given.
	Code int
	// Message is the API server's reason where it did not succeed.
	Message string
	// Decision is allow or forbid; Reason is the authorizer's, like the binding that allowed it.
	Decision, Reason string
	// Body and Response are there for writes of users whose bodies are recorded. Of a patch,
	// Body is the patch.
	Body, Response json.RawMessage
}

// Denied reports whether RBAC or an admission policy forbade the request.
func (r Request) Denied() bool {
	return r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized
}

// Writes reports whether the request is a write, dry run or not.
func (r Request) Writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// What is the request in short, like "patch deployments" or "update deployments/status".
func (r Request) What() string {
	switch {
	case r.Resource == "":
		return r.Verb + " " + r.URI
	case r.Subresource != "":
		return r.Verb + " " + r.Resource + "/" + r.Subresource
	default:
		return r.Verb + " " + r.Resource
	}
}

// Requests are some, in the order in which they were received.
type Requests []Request

// By keeps the requests of one user.
func (rs Requests) By(user string) Requests {
	return rs.Where(func(r Request) bool { return r.User == user })
}

// In keeps the requests on objects of one namespace.
func (rs Requests) In(namespace string) Requests {
	return rs.Where(func(r Request) bool { return r.Namespace == namespace })
}

// Denied keeps the requests that were forbidden.
func (rs Requests) Denied() Requests { return rs.Where(Request.Denied) }

// Writes keeps the requests to change something.
func (rs Requests) Writes() Requests { return rs.Where(Request.Writes) }

// Within keeps the requests whose answer took less than d.
func (rs Requests) Within(d time.Duration) Requests {
	return rs.Where(func(r Request) bool { return r.Took > 0 && r.Took < d })
}

// Where keeps the requests that fit.
func (rs Requests) Where(fits func(Request) bool) Requests {
	return slices.DeleteFunc(slices.Clone(rs), func(r Request) bool { return !fits(r) })
}

// Count counts the requests by [Request.What].
func (rs Requests) Count() map[string]int {
	count := map[string]int{}
	for _, r := range rs {
		count[r.What()]++
	}
	return count
}

// auditEvent is the part of an audit.k8s.io/v1 Event that a Request is made of.
type auditEvent struct {
	AuditID    string
	Stage      string
	RequestURI string
	Verb       string
	UserAgent  string
	User       struct{ Username string }
	ObjectRef  struct {
		Resource, Namespace, Name, APIGroup, Subresource string
	}
	ResponseStatus struct {
		Code    int
		Message string
	}
	RequestObject            json.RawMessage
	ResponseObject           json.RawMessage
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
	Annotations              map[string]string
}

func (e auditEvent) request() *Request {
	return &Request{
		ID: e.AuditID, User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb, URI: e.RequestURI,
		Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Received: e.RequestReceivedTimestamp,
	}
}

// complete adds what only later stages of a request have. The name of a created object is not in
// its URI, so it comes late too.
func (e auditEvent) complete(r *Request) {
	r.Code, r.Message = e.ResponseStatus.Code, e.ResponseStatus.Message
	r.Decision = e.Annotations["authorization.k8s.io/decision"]
	r.Reason = e.Annotations["authorization.k8s.io/reason"]
	r.Took = e.StageTimestamp.Sub(e.RequestReceivedTimestamp)
	r.Body, r.Response = e.RequestObject, e.ResponseObject
	if r.Name == "" {
		r.Name = e.ObjectRef.Name
	}
}
