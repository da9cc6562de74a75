package simulate

import (
	"context"
	"net/http"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
)

// user sends requests to the API server from a host of the network.
type user struct {
	client *http.Client
	// names replaces the prefix of annotations and labels in what is sent, which acts write with the default one, back that in answers; nil
	// where it is the default.
	names, back *strings.Replacer
}

// newUser makes a user of an installation with a prefix.
func newUser(client *http.Client, prefix string) user {
	if prefix == act.Prefix {
		return user{client: client}
	}
	escape := strings.NewReplacer("/", "~1") // as in a JSON pointer
	return user{
		client: client,
		names:  strings.NewReplacer(act.Prefix, prefix, escape.Replace(act.Prefix), escape.Replace(prefix)),
		back:   strings.NewReplacer(prefix, act.Prefix),
	}
}

var _ act.API = user{}

// Do sends one request.
func (u user) Do(ctx context.Context, r act.Request) (act.Response, error) {
	if u.names != nil {
		r.Body = []byte(u.names.Replace(string(r.Body)))
	}
	answer, err := act.Send(ctx, u.client, apiURL, r, "application/json")
	if u.back != nil {
		answer.Body = []byte(u.back.Replace(string(answer.Body)))
	}
	return answer, err
}
