package app

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewMapper returns a RESTMapper that knows an API server which does not answer from a kind that is not served: the first is an error, and
// only the second is one of [meta.IsNoMatchError].
func NewMapper(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(config, client)
	return askAgain{mapper}, err
}

// askAgain asks once more about a version that a RESTMapper of controller-runtime has not found. Its first lookup reads the aggregated
// discovery (KEP-3352). client-go leaves out what that calls stale: the versions of an aggregated API server that does not answer. The second
// lookup asks for the version itself.
type askAgain struct{ meta.RESTMapper }

// RESTMapping returns the resource of a kind.
func (a askAgain) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := a.RESTMapper.RESTMapping(gk, versions...)
	if meta.IsNoMatchError(err) && len(versions) > 0 {
		return a.RESTMapper.RESTMapping(gk, versions...)
	}
	return mapping, err
}
