package configstate

import (
	"context"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/zeroing"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// The content types that are asked for: protobuf only, which the API server has for all of its own kinds, and for the metadata
// of custom resources.
const (
	acceptObject = "application/vnd.kubernetes.protobuf"
	acceptMeta   = acceptObject + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptList   = acceptObject + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// objectKey identifies one config object.
type objectKey struct {
	namespace string
	ref       reference.Ref
}

// client sends requests to the API server.
type client struct {
	rest rest.Interface
	// sha1 says of which kinds State.SHA1 is computed.
	sha1 func(reference.Kind) bool
	// large admits responses that are not small: see largeInFlight. It is that of the loop, but in a copy for the webhook.
	large *fairlimit.Limit
}

func newClient(config *rest.Config, httpClient *http.Client) (*client, error) {
	if httpClient == nil {
		config = rest.CopyConfig(config)
		config.Timeout = 0 // it would end watches
		var err error
		if httpClient, err = zeroing.NewHTTPClient(config); err != nil {
			return nil, err
		}
	}
	codecs := metainternalversionscheme.Codecs.WithoutConversion() // of the Status of a refusal; nothing else is decoded
	r, err := listwatch.NewClient(config, httpClient, corev1.SchemeGroupVersion, codecs, acceptObject)
	if err != nil {
		return nil, fmt.Errorf("make a client for ConfigMaps and Secrets: %w", err)
	}
	return &client{rest: r, large: newLarge()}, nil
}

// request starts a request for config objects of a kind; the empty namespace is all of them.
func (c *client) request(kind reference.Kind, namespace, accept string) *rest.Request {
	request := c.rest.Get()
	if gvk, _ := kind.GroupVersionKind(); gvk.Group != "" {
		request.AbsPath("apis", gvk.Group, gvk.Version)
	}
	return request.
		NamespaceIfScoped(namespace, namespace != "").
		Resource(kind.Resource()).
		SetHeader("Accept", accept)
}

// stream opens a response. A connection that was lost before there was an answer is tried once more, as client-go does
// with its own reads; a server that restarts causes no error that way.
func stream(ctx context.Context, request *rest.Request) (io.ReadCloser, error) {
	body, err := request.Stream(ctx)
	if utilnet.IsProbableEOF(err) { // a reset is one, too
		return request.Stream(ctx)
	}
	return body, err
}

// meta reads the metadata of one object; false when there is none.
func (c *client) meta(ctx context.Context, k objectKey, keep wire.Keep) (meta wire.Meta, found bool, err error) {
	found, err = c.get(ctx, k, acceptMeta, "", func(message []byte) error {
		meta, err = wire.MetaOf(message, keep)
		return err
	})
	return meta, found, err
}

// content reads one object and computes its Entries; false when there is no such object. Nothing else of it remains. With
// a resourceVersion the answer may come out of the API server's cache once that has this version or a later one; without,
// it is what is stored.
func (c *client) content(ctx context.Context, k objectKey, ring digest.Ring, atLeast string) (state digest.State, found bool, err error) {
	found, err = c.get(ctx, k, acceptObject, atLeast, func(message []byte) error {
		state, err = c.state(k, message, ring)
		return err
	})
	return state, found, err
}

// contentAt is content of an object as it was at a resourceVersion of the storage, not later; false when it did not exist then. The
// API server keeps old versions for some minutes.
func (c *client) contentAt(ctx context.Context, k objectKey, ring digest.Ring, version string) (state digest.State, found bool, err error) {
	options := metav1.ListOptions{
		FieldSelector: "metadata.name=" + k.ref.Name, ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}
	request := c.request(k.ref.Kind, k.namespace, acceptObject).VersionedParams(&options, metav1.ParameterCodec)
	err = c.read(ctx, k, request, func(data []byte) error {
		message, listed, err := wire.SingleItem(data)
		if err != nil || !listed {
			return err
		}
		found = true
		state, err = c.state(k, message, ring)
		return err
	})
	return state, found, err
}

// state computes what is kept of an object.
func (c *client) state(k objectKey, message []byte, ring digest.Ring) (digest.State, error) {
	content, meta, err := contentOf(k.ref.Kind, message)
	if err == nil && meta.Name != k.ref.Name {
		err = fmt.Errorf("the response has an object %s", reference.Quote(meta.Name))
	}
	if err != nil {
		return digest.State{}, err
	}
	state := digest.StateOf(content, meta.UID, meta.ResourceVersion, ring)
	if c.sha1(k.ref.Kind) {
		state.SHA1 = content.SHA1()
	}
	return state, nil
}

func contentOf(kind reference.Kind, message []byte) (digest.Content, wire.Meta, error) {
	if kind == reference.Secret {
		secret, meta, err := wire.SecretOf(message)
		if err != nil {
			return digest.Content{}, wire.Meta{}, err
		}
		return digest.OfSecret(secret), meta, nil
	}
	object, meta, err := wire.ConfigMapOf(message)
	if err != nil {
		return digest.Content{}, wire.Meta{}, err
	}
	return digest.OfConfigMap(object), meta, nil
}

// get reads one object and lets use understand it.
func (c *client) get(
	ctx context.Context, k objectKey, accept, atLeast string, use func(message []byte) error,
) (found bool, err error) {
	request := c.request(k.ref.Kind, k.namespace, accept).Name(k.ref.Name)
	if atLeast != "" {
		request.Param("resourceVersion", atLeast)
	}
	err = c.read(ctx, k, request, func(data []byte) error {
		_, message, err := wire.Object(data)
		if err != nil {
			return err
		}
		return use(message)
	})
	if apianswer.NotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// read reads a response and lets use understand it; then the bytes are overwritten.
func (c *client) read(ctx context.Context, k objectKey, request *rest.Request, use func(data []byte) error) error {
	body, err := stream(ctx, request)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	var buffer wire.Buffer
	defer buffer.Clear()
	release := func() {}
	defer func() { release() }()
	data, err := buffer.ReadAll(body, func() error {
		admitted, err := c.large.Acquire(ctx, k.namespace, 1)
		if err == nil {
			release = admitted
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	return use(data)
}

// list reads the metadata of all objects of a kind.
func (c *client) list(
	ctx context.Context, kind reference.Kind, namespace string, options metav1.ListOptions, keep wire.Keep,
) (wire.List, error) {
	body, err := stream(ctx, c.request(kind, namespace, acceptList).VersionedParams(&options, metav1.ParameterCodec))
	if err != nil {
		return wire.List{}, err
	}
	defer func() { _ = body.Close() }()
	return wire.ReadList(body, keep)
}

// watch opens a watch of metadata.
func (c *client) watch(
	ctx context.Context, kind reference.Kind, namespace string, options metav1.ListOptions,
) (io.ReadCloser, error) {
	options.Watch = true
	return c.request(kind, namespace, acceptMeta).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
}
