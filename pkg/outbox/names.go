package outbox

import (
	"context"
	"encoding/json"
	"fmt"

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
	var page metav1.ListMeta
	err = skim.ReadList(body, &page, func(text []byte) error {
		var event struct {
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(text, &event); err != nil {
			return err
		}
		use(event.Metadata.Namespace, event.Metadata.Name)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read a list of Events: %w", err)
	}
	return page.Continue, nil
}
