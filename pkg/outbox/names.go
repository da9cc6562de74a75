package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/skim"
)

// acceptNames asks for metadata only: a message can be longer than 1 MiB.
const acceptNames = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// Names calls use with the namespace and name of each Event of one page, also of a page that cannot be read to its end; an empty namespace
// stands for all. It returns the token of the next page, if there is one. The Events are read one by one: the users of a
// namespace decide how large they are.
func (c *Client) Names(
	ctx context.Context, namespace string, o metav1.ListOptions, use func(namespace, name string),
) (next string, err error) {
	body, err := c.events.RESTClient().Get().NamespaceIfScoped(namespace, namespace != "").Resource("events").
		VersionedParams(&o, metav1.ParameterCodec).SetHeader("Accept", acceptNames).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	page := namesPage{reader: skim.NewReader(body), use: use}
	err = page.reader.Object(page.member)
	if err == nil && !page.listed {
		err = errors.New("the response is no list")
	}
	if err != nil {
		return "", fmt.Errorf("read a list of Events: %w", err)
	}
	// The connection can be used again only when its end has been seen.
	_, err = io.Copy(io.Discard, body)
	return page.meta.Continue, err
}

// namesPage is a page that is being read.
type namesPage struct {
	reader *skim.Reader
	use    func(namespace, name string)
	meta   metav1.ListMeta
	listed bool
}

// member reads one member of the list.
func (p *namesPage) member(key string) error {
	if key == "items" {
		p.listed = true
		return p.reader.List(p.item)
	}
	text, err := p.reader.Next()
	if err != nil || key != "metadata" {
		return err
	}
	return json.Unmarshal(text, &p.meta)
}

func (p *namesPage) item(text []byte) error {
	var event struct {
		Metadata struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(text, &event); err != nil {
		return err
	}
	p.use(event.Metadata.Namespace, event.Metadata.Name)
	return nil
}
